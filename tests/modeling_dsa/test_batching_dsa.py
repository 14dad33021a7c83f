"""modeling_dsa.batching_dsa: batches of distinct texts within their bounds, and results in the order of the texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_dsa.batching_dsa import (
    Batch,
    Text,
    TextBatches,
    TextTokenizer,
    Vectors,
    compute_in_batches,
    encode_sentences,
    softmax,
    unit_vectors,
)
from modeling_dsa.text.special_tokens import SEP
from modeling_dsa.text.tokenization import build_tokenizer

WORDS = ("a", "man", "sleeps", ".", "dog")
TOKENIZER = build_tokenizer(WORDS, lowercase=True).backend_tokenizer
SENTENCE = st.lists(st.sampled_from(["a", "man", "sleeps", ".", "dog", "zqxv", SEP, "\ud800"]), max_size=40).map(
    " ".join
)


def sums(batch: Batch) -> Vectors:
    """What depends on a text's tokens alone: their number, and the sums of their ids and types. (batch, 3)"""
    columns = [batch.attention_mask, batch.input_ids, batch.token_type_ids * batch.input_ids]
    return np.stack([column.sum(1) for column in columns], axis=1)


def expected(texts: list[Text]) -> list[list[int]]:
    rows = []
    for text in texts:
        parts = [part.replace("\ud800", "\ufffd") for part in ([text] if isinstance(text, str) else text)]
        encoding = TOKENIZER.encode(parts[0], parts[1] if len(parts) == 2 else None)
        second = sum(token * kind for token, kind in zip(encoding.ids, encoding.type_ids, strict=True))
        rows.append([len(encoding.ids), sum(encoding.ids), second])
    return rows


@given(
    st.lists(st.one_of(SENTENCE, st.tuples(SENTENCE, SENTENCE)), max_size=30),
    st.integers(1, 12),
    st.integers(1, 3),
)
def test_every_text_has_the_result_of_its_own_tokens(texts: list[Text], batch_size: int, threads: int) -> None:
    tokenizer = TextTokenizer(TOKENIZER)
    found = compute_in_batches(tokenizer, texts, sums, 3, "int64", batch_size=batch_size, threads=threads)
    assert found.tolist() == expected(texts)
    batches = TextBatches(tokenizer, texts, batch_size, at_a_time=threads)
    every = [batches[number] for number in range(len(batches))]
    widths = [batch.input_ids.shape[1] for batch in every]
    assert widths == sorted(widths, reverse=True)
    for batch in every:
        assert len(batch.index) <= min(batch_size, -(-len(set(texts)) // threads))
        assert len(batch.index) == 1 or batch.input_ids.size <= 16 * batch_size
    assert sum(len(batch.index) for batch in every) == len(set(texts))
    assert sum(batch.text_count for batch in every) == len(texts)


def test_what_an_earlier_call_of_the_tokenizer_asked_for_does_not_stay() -> None:
    tokenizer = TextTokenizer(build_tokenizer(WORDS, lowercase=True).backend_tokenizer)
    before = tokenizer.rows([f"a {SEP} man"], False, True)
    tokenizer.tokenizer.encode_special_tokens = True
    assert tokenizer.rows([f"a {SEP} man"], False, True) == before


def test_mistakes_are_told() -> None:
    for text in (5, ("a",), ("a", None)):
        with pytest.raises(ValueError, match=r"at index 1 is .* which is neither a string nor a pair of strings"):
            compute_in_batches(TextTokenizer(TOKENIZER), ["a", text], sums, 3)  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"at index 0 is 5, which is neither a string nor a pair of strings"):
        compute_in_batches(TextTokenizer(TOKENIZER), [5], sums, 3)  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"The sentence at index 0 is \('a', 'b'\), which is no string"):
        encode_sentences(TextTokenizer(TOKENIZER), [("a", "b")], sums, 3)  # type: ignore[list-item]


def test_unit_vectors_have_the_length_1_or_0() -> None:
    found = unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -1e-6], [3e30, 4e30], [3e-30, 4e-30]], np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0], [0.6, 0.8], [0.6, 0.8]], rtol=1e-6)


def test_softmax_gives_probabilities_of_any_scores() -> None:
    scores = np.log([[[1.0, 3.0], [2.0, 6.0]]])
    np.testing.assert_allclose(softmax(scores), [[[0.25, 0.75], [0.25, 0.75]]])
    assert softmax(np.array([[1e6, -1e6]])).tolist() == [[1, 0]]
