"""modeling_dsa.encoding.caching_tokenizer: the same ids as without a memory, whatever the texts and their order."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_runs import pairs
from tokenizers import Tokenizer, normalizers, pre_tokenizers

from modeling_dsa.batching_dsa import Text, TextTokenizer
from modeling_dsa.encoding import caching_tokenizer
from modeling_dsa.encoding.caching_tokenizer import CachingTokenizer, text_tokenizer
from modeling_dsa.text.tokenization import build_tokenizer

SHIPPED = sorted((Path(__file__).parents[3] / "model_cards").glob("dsa-*/tokenizer.json"))
WORDS = ("a", "man", "sleeps", ".", "j", "j.", "no", "no.", "mr.", "5", "'s", "n't", "is", "``", "''", "--", "(")
TOKENIZERS = [
    build_tokenizer((*WORDS, "cannot"), lowercase=lowercase, pieces=pieces).backend_tokenizer
    for lowercase in (True, False)
    for pieces in ((), ("##s", "##a"))
]
# What the rules look at, alone and together; a space stands between any two or none does.
PARTS = st.sampled_from(
    [
        *(
            "a",
            "J",
            "No",
            "Mr",
            "s",
            "t",
            "n't",
            "cannot",
            "5",
            "1,000",
            ".",
            ",",
            "'",
            '"',
            "“",
            "’",
            "…",
            "-",
            "–",
            "—",
            "/",
        ),
        *(
            "-LRB-",
            "\\*",
            "(",
            "[SEP]",
            "[PAD]",
            "\u200b",
            "\u0301",
            "é",
            "中",
            "🙂",
            "www.",
            "@",
            ".com",
            "\n",
            "\u00a0",
        ),
        *("\ud83d", "x" * 70),
    ]
)
TEXTS = st.lists(st.tuples(PARTS, st.sampled_from(["", " ", "  "])).map("".join), max_size=12).map("".join)

# Whether a point is a token of its own is decided by what follows, which draws seldom put together.
POINTS: list[Text] = ["j. a", "j. (", "no. 5", "no. a", "no.", ("a j.", "a")]


def as_lists(tokenizer: TextTokenizer, texts: list[Text]) -> list[list[int]]:
    ids, types, lengths = tokenizer.tokens(texts, with_types=True)
    assert types is not None
    return [ids.tolist(), types.tolist(), lengths.tolist()]


@example(TOKENIZERS[0], POINTS)
@example(TOKENIZERS[-1], POINTS)
@given(st.sampled_from(TOKENIZERS), st.lists(st.one_of(TEXTS, st.tuples(TEXTS, TEXTS)), max_size=8))
def test_ids_are_those_of_the_tokenizer(tokenizer: Tokenizer, texts: list[Text]) -> None:
    caching = text_tokenizer(tokenizer)
    assert isinstance(caching, CachingTokenizer)
    expected = as_lists(TextTokenizer(tokenizer), texts)
    for _ in range(2):  # while it learns, and when it knows
        assert as_lists(caching, texts) == expected


@pytest.mark.parametrize("bounds", [{"_MOST_CHUNKS": 2000}, {"_FEW_CHUNKS": 99, "_JUDGED_CHUNKS": 2000, "_PAUSE": 1}])
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_a_shipped_model_has_one_that_remembers(
    path: Path, bounds: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it must forget, and when it pauses."""
    for name, bound in bounds.items():
        monkeypatch.setattr(caching_tokenizer, name, bound)
    tokenizer = Tokenizer.from_file(str(path))
    caching = text_tokenizer(tokenizer)
    assert isinstance(caching, CachingTokenizer)
    texts: list[Text] = [(pair["premise"], pair["hypothesis"]) for pair in pairs("train")[:3000]]
    for start in range(0, len(texts), 250):
        part = texts[start : start + 250]
        assert as_lists(caching, part) == as_lists(TextTokenizer(tokenizer), part)
        assert len(caching._last) <= caching_tokenizer._MOST_CHUNKS


def test_another_tokenizer_is_used_as_it_is() -> None:
    own = build_tokenizer(WORDS, lowercase=True).backend_tokenizer
    own.add_tokens(["a man"])
    other = build_tokenizer(WORDS, lowercase=True).backend_tokenizer
    other.pre_tokenizer = pre_tokenizers.Sequence([])
    bare = build_tokenizer(WORDS, lowercase=True).backend_tokenizer
    bare.normalizer = normalizers.Lowercase()
    for tokenizer in (own, other, bare):
        assert type(text_tokenizer(tokenizer)) is TextTokenizer
    assert text_tokenizer(own).tokens(["a man sleeps"])[0].tolist() == own.encode("a man sleeps").ids


def test_an_added_token_inside_a_word_is_found() -> None:
    tokenizer = build_tokenizer(WORDS, lowercase=True).backend_tokenizer
    tokenizer.add_tokens(["leep"])
    caching = text_tokenizer(tokenizer)
    assert isinstance(caching, CachingTokenizer)
    assert as_lists(caching, ["a man sleeps"]) == as_lists(TextTokenizer(tokenizer), ["a man sleeps"])
