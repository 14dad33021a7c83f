"""modeling_dsa.encoding.plain_tokenizer: the same ids, whether texts need normalising or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_dsa.batching_dsa import Text, TextTokenizer
from modeling_dsa.encoding.caching_tokenizer import CachingTokenizer
from modeling_dsa.encoding.plain_tokenizer import PlainTokenizer
from modeling_dsa.text.tokenization import build_tokenizer
from modeling_dsa.text.word_rules import is_plain, normalizer, usual_normalized

# Brackets' codes are rare among characters drawn one by one.
ASCII_TEXTS = st.lists(st.characters(max_codepoint=127) | st.sampled_from(["-LRB-", "-rcb-", "LSB"])).map("".join)


@given(ASCII_TEXTS)
def test_a_plain_text_keeps_its_characters(text: str) -> None:
    if is_plain(text):
        assert normalizer(lowercase=False).normalize_str(text) == text


@given(st.lists(st.characters(max_codepoint=0x24F) | st.sampled_from([*"‘’‚“”„–—…\\\"'`-/ ([", "-LRB-"])).map("".join))
def test_a_usual_text_is_normalised_by_the_same_rules(text: str) -> None:
    assert usual_normalized(text) in (None, normalizer(lowercase=False).normalize_str(text))


@pytest.mark.parametrize("lowercase", [True, False])
def test_texts_of_both_kinds_keep_their_order(lowercase: bool) -> None:
    tokenizer = build_tokenizer(["a", "A", "man", "``", "''", "!"], lowercase=lowercase).backend_tokenizer
    texts: list[Text] = ["A man!", '[SEP]"a" – man', "“a” man中", ("a man", "A"), ("a", "‘man’"), "man \ud83d", "", "a"]
    plain, expected = PlainTokenizer(tokenizer), TextTokenizer(tokenizer)
    for given_ones in (texts, texts[::2], texts[1:2]):
        for special in (True, False):
            own = plain.tokens(given_ones, with_types=True, add_special_tokens=special)
            others = expected.tokens(given_ones, with_types=True, add_special_tokens=special)
            assert [part.tolist() for part in own if part is not None] == [
                part.tolist() for part in others if part is not None
            ]


@pytest.mark.parametrize("kind", [PlainTokenizer, CachingTokenizer])
def test_tokens_that_are_added_later_are_found(kind: type[PlainTokenizer]) -> None:
    tokenizer = build_tokenizer(["a", "man", "sleeps"], lowercase=True).backend_tokenizer
    of_kind = kind(tokenizer)
    of_kind.tokens(["a man sleeps"])
    tokenizer.add_tokens(["a man"])
    assert of_kind.tokens(["a man sleeps"])[0].tolist() == [tokenizer.token_to_id("a man"), 5]
