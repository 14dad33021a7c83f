"""modeling_dsa.packing_dsa: which words make which sentence, and sums and softmaxes over each."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import PAD, SEP, join_pair, packing_of, pad_rows
from torch import Tensor

from modeling_dsa.packing_dsa import pack, split_pairs

# Few different words, so that equal sentences are common.
SENTENCE = st.lists(st.integers(3, 5), max_size=4)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=5)
LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def split(tensor: Tensor, lengths: list[int]) -> list[Tensor]:
    """(heads, N, ...) -> for each sentence (heads, words, ...)"""
    return list(tensor.split(lengths, dim=1))


@pytest.mark.parametrize(
    ("ids", "mask", "types", "words", "second"),
    [
        ([5, 6, SEP, 7], None, None, [1, 1, 0, 1], [0, 0, 0, 1]),
        ([5, 6, SEP, 7], None, [0, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 1]),
        ([5, 6, SEP, 7, SEP, PAD], None, None, [1, 1, 0, 1, 0, 0], [0, 0, 0, 1, 0, 0]),
        ([PAD, PAD, 5, SEP, 7, PAD], None, None, [0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0]),
        ([5, 6, 7, PAD], None, None, [1, 1, 1, 0], [0, 0, 0, 0]),
        ([SEP, 6, 7], None, None, [0, 1, 1], [0, 1, 1]),
        ([5, 6, SEP], None, None, [1, 1, 0], [0, 0, 0]),
        ([5, 6, 7, 8], None, [0, 1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1]),
        ([5, 6, 7, 8], [0, 1, 0, 1], [0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1]),
        ([5, PAD, 7], [1, 1, 1], None, [1, 1, 1], [0, 0, 0]),  # the mask is stronger than the padding id
        ([9, SEP, 5, SEP, 7], [0, 0, 1, 1, 1], None, [0, 0, 1, 0, 1], [0, 0, 0, 0, 1]),  # ids below the mask are noise
        ([5, 6, SEP, 7], None, [0, 0, 0, 0], [1, 1, 0, 1], [0, 0, 0, 1]),  # no mark: the separator decides
        ([5, SEP, 6, 7], None, [0, 0, 0, 1], [1, 0, 1, 1], [0, 0, 0, 1]),  # the marks are stronger than the separator
    ],
)
def test_split_pairs(
    ids: list[int], mask: list[int] | None, types: list[int] | None, words: list[int], second: list[int]
) -> None:
    given_mask, given_types = (None if value is None else torch.tensor([value]) for value in (mask, types))
    is_word, is_second = split_pairs(torch.tensor([ids]), given_mask, given_types, PAD, SEP)
    assert is_word[0].tolist() == [bool(word) for word in words]
    assert (is_second & is_word)[0].tolist() == [bool(word) for word in second]


def test_split_pairs_without_special_ids_takes_everything() -> None:
    is_word, is_second = split_pairs(torch.tensor([[PAD, SEP, 7]]), None, None, None, None)
    assert is_word.all()
    assert not is_second.any()


@settings(max_examples=150, deadline=None)
@given(PAIRS, st.data(), st.booleans())
def test_pack_finds_each_sentence_once(
    pairs: list[tuple[list[int], list[int]]], data: st.DataObject, deduplicate: bool
) -> None:
    lefts = data.draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    ids, mask = pad_rows([join_pair(*pair) for pair in pairs], lefts, data.draw(st.integers(0, 3)))
    is_word, is_second = split_pairs(ids, mask, None, PAD, SEP)
    places, packing = pack(ids, is_word, is_second, deduplicate)

    sentences = [sentence for pair in pairs for sentence in pair]
    expected: list[list[int]] = []
    for sentence in sentences:
        if not deduplicate or sentence not in expected:
            expected.append(sentence)
    assert packing.lengths.tolist() == [len(sentence) for sentence in expected]
    packed = ids.flatten()[places]
    assert packed.tolist() == [word for sentence in expected for word in sentence]
    assert packing.offsets.tolist() == [sum(map(len, expected[:number])) for number in range(len(expected))]
    assert packing.sentence_of_word.tolist() == [n for n, sentence in enumerate(expected) for _ in sentence]
    assert [expected[number] for number in packing.sentence_of_row.flatten().tolist()] == sentences
    assert packing.sentence_of_row.shape == (len(pairs), 2)
    # Back in their places, the words of all copies are the words of the batch.
    assert torch.equal(packing.unpack_words(packed[:, None])[..., 0], ids * is_word)
    numbers = torch.arange(len(expected), dtype=torch.float64)[:, None]
    assert torch.equal(packing.unpack_sentences(numbers)[..., 0].long(), packing.sentence_of_row)


def test_words_keep_their_order_where_two_sentences_are_interleaved() -> None:
    ids = torch.tensor([[3, 4, 5, 6, 7, 8]])
    second = torch.tensor([[0, 1, 0, 1, 1, 0]]).bool()
    places, packing = pack(ids, torch.ones_like(second), second, deduplicate=True)
    assert ids.flatten()[places].tolist() == [3, 5, 8, 4, 6, 7]
    assert packing.lengths.tolist() == [3, 3]


@given(LENGTHS, st.integers(0, 4))
def test_gapped_rows_keep_sentences_apart(lengths: list[int], gap: int) -> None:
    packing = packing_of(lengths)
    rows, total = packing.gapped_rows(gap)
    assert total == sum(lengths) + gap * (len(lengths) - 1)
    taken, sentences = rows.tolist(), packing.sentence_of_word.tolist()
    assert all(0 <= row < total for row in taken)
    for before, after, one, other in zip(taken, taken[1:], sentences, sentences[1:], strict=False):
        assert after - before == 1 if one == other else after - before > gap


@settings(deadline=None)
@given(LENGTHS, st.sampled_from([0.1, 1.0, 1000.0]))
def test_softmax_and_weighted_sum_work_on_each_sentence_alone(lengths: list[int], scale: float) -> None:
    packing = packing_of(lengths)
    generator = torch.Generator().manual_seed(sum(lengths))
    scores = scale * torch.randn(2, sum(lengths), dtype=torch.float64, generator=generator)
    values = torch.randn(2, sum(lengths), 3, dtype=torch.float64, generator=generator)
    weights = packing.softmax(scores)
    expected = torch.cat([part.softmax(1) for part in split(scores, lengths)], dim=1)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)
    sums = packing.weighted_sum(weights, values)
    parts = zip(split(expected, lengths), split(values, lengths), strict=True)
    expected_sums = torch.stack([(weight[..., None] * value).sum(1) for weight, value in parts], dim=1)
    torch.testing.assert_close(sums, expected_sums, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lengths", [[3, 1, 2], [0, 2, 0, 0, 3, 0], [1]], ids=str)
def test_gradients_pass_through_softmax_and_weighted_sum(lengths: list[int]) -> None:
    torch.manual_seed(0)
    packing = packing_of(lengths)
    scores = torch.randn(2, sum(lengths), dtype=torch.float64, requires_grad=True)
    values = torch.randn(2, sum(lengths), 3, dtype=torch.float64, requires_grad=True)
    functions: list[tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = [
        (packing.softmax, (scores,)),
        (packing.weighted_sum, (scores, values)),
    ]
    for function, inputs in functions:
        assert torch.autograd.gradcheck(function, inputs)


def test_a_batch_of_no_words_is_packed() -> None:
    packing = packing_of([0, 0])
    assert packing.softmax(torch.zeros(2, 0)).shape == (2, 0)
    assert torch.equal(packing.weighted_sum(torch.zeros(2, 0), torch.zeros(2, 0, 3)), torch.zeros(2, 2, 3))


@pytest.mark.parametrize("deduplicate", [True, False])
def test_a_batch_of_no_columns_is_packed(deduplicate: bool) -> None:
    """What a tokenizer makes of empty texts."""
    nothing = torch.zeros(2, 0, dtype=torch.long)
    places, packing = pack(nothing, nothing.bool(), nothing.bool(), deduplicate)
    assert places.shape == (0,)
    assert packing.sentence_of_row.shape == (2, 2)
    assert packing.unpack_words(torch.zeros(0, 5)).shape == (2, 0, 5)
