"""modeling_dsa.packing_dsa: which tokens make which sentence, and sums, softmaxes and rectangles over each."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from gpu_waits import gpu_waits
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import EXAMPLE_PAIRS, PAD, SEP, SYSTEM_CASES, join_pair, packing_of, pad_rows, small_config
from torch import Tensor

from modeling_dsa import DSAForNLI, packing_dsa
from modeling_dsa.packing_dsa import Packing, pack, sentence_masks, whole_sentences

# Few different tokens, so that equal sentences are common.
SENTENCE = st.lists(st.integers(3, 5), max_size=4)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=5)
OF_PAIRS = small_config(sentences_per_example=2)
LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def split(tensor: Tensor, lengths: list[int]) -> list[Tensor]:
    """(heads, N, ...) -> for each sentence (heads, tokens, ...)"""
    return list(tensor.split(lengths, dim=1))


@pytest.mark.parametrize(
    ("ids", "mask", "types", "tokens", "second"),
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
def test_pairs_are_split_by_types_or_separators(
    ids: list[int], mask: list[int] | None, types: list[int] | None, tokens: list[int], second: list[int]
) -> None:
    given_mask, given_types = (None if value is None else torch.tensor([value]) for value in (mask, types))
    ((of_first, of_second),) = whole_sentences(OF_PAIRS, torch.tensor([ids]), given_mask, given_types)
    assert (of_first | of_second).tolist() == [bool(token) for token in tokens]
    assert of_second.tolist() == [bool(token) for token in second]


def test_without_special_ids_all_tokens_are_the_first_sentence() -> None:
    config = small_config(sentences_per_example=2, pad_token_id=None, sep_token_id=None)
    ((of_first, of_second),) = whole_sentences(config, torch.tensor([[PAD, SEP, 7]]), None, None)
    assert of_first.all()
    assert not of_second.any()


@pytest.mark.parametrize(
    ("sentences", "limit", "expected"),
    [
        (1, None, [[[1, 1, 1, 0, 1, 1, 0]]]),
        (1, 4, [[[1, 1, 1, 0, 1, 0, 0]]]),
        (2, None, [[[1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0]]]),
        (2, 1, [[[1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0]]]),
    ],
)
def test_a_config_says_which_tokens_a_sentence_has(
    sentences: int, limit: int | None, expected: list[list[list[int]]]
) -> None:
    config = small_config(sentences_per_example=sentences, max_sentence_tokens=limit)
    ids = torch.tensor([[5, 6, 7, SEP, 8, 9, PAD]])
    masks = sentence_masks(config, ids, None, None)
    assert torch.equal(masks, torch.tensor(expected).bool())
    indices, packing = pack(ids, masks, deduplicate=False)
    assert indices.tolist() == masks.any(1).flatten().nonzero().flatten().tolist()
    assert packing.lengths.tolist() == masks.sum(2).flatten().tolist()


@settings(max_examples=150)
@given(PAIRS, st.data(), st.booleans())
def test_pack_finds_each_sentence_once(
    pairs: list[tuple[list[int], list[int]]], data: st.DataObject, deduplicate: bool
) -> None:
    lefts = data.draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    ids, mask = pad_rows([join_pair(*pair) for pair in pairs], lefts, data.draw(st.integers(0, 3)))
    masks = sentence_masks(OF_PAIRS, ids, mask, None)
    indices, packing = pack(ids, masks, deduplicate)

    sentences = [sentence for pair in pairs for sentence in pair]
    expected: list[list[int]] = []
    for sentence in sentences:
        if not deduplicate or sentence not in expected:
            expected.append(sentence)
    assert packing.lengths.tolist() == [len(sentence) for sentence in expected]
    packed = ids.flatten()[indices]
    assert packed.tolist() == [token for sentence in expected for token in sentence]
    assert packing.offsets.tolist() == [sum(map(len, expected[:number])) for number in range(len(expected))]
    assert packing.sentence_of_token.tolist() == [n for n, sentence in enumerate(expected) for _ in sentence]
    assert [expected[number] for number in packing.sentence_of_example.flatten().tolist()] == sentences
    assert packing.sentence_of_example.shape == (len(pairs), 2)
    # Laid out as in the batch, the tokens of all copies are the tokens of the batch.
    assert torch.equal(packing.unpack_tokens(packed[:, None])[..., 0], ids * masks.any(1))
    numbers = torch.arange(len(expected), dtype=torch.float64)[:, None]
    assert torch.equal(packing.unpack_sentences(numbers)[..., 0].long(), packing.sentence_of_example)


def test_words_keep_their_order_where_two_sentences_are_interleaved() -> None:
    ids = torch.tensor([[3, 4, 5, 6, 7, 8]])
    second = torch.tensor([[0, 1, 0, 1, 1, 0]]).bool()
    indices, packing = pack(ids, torch.stack([~second, second], dim=1), deduplicate=True)
    assert ids.flatten()[indices].tolist() == [3, 5, 8, 4, 6, 7]
    assert packing.lengths.tolist() == [3, 3]


@given(PAIRS, st.integers(1, 5), st.booleans(), st.booleans(), st.data())
def test_sentences_cut_to_a_number_of_tokens_are_packed_like_shorter_sentences(
    pairs: list[tuple[list[int], list[int]]], limit: int, deduplicate: bool, interleaved: bool, data: st.DataObject
) -> None:
    if interleaved:  # both sentences of an example mixed token by token, told apart by token types
        types = [data.draw(st.permutations([0] * len(first) + [1] * len(second))) for first, second in pairs]
        rows = []
        for pair, marks in zip(pairs, types, strict=True):
            tokens = [iter(sentence) for sentence in pair]
            rows.append([next(tokens[mark]) for mark in marks])
        ids, mask = pad_rows(rows)
        given_types = pad_rows(types)[0]
    else:
        ids, mask = pad_rows([join_pair(*pair) for pair in pairs], data.draw(st.integers(0, 2)))
        given_types = None
    config = small_config(sentences_per_example=2, max_sentence_tokens=limit)
    indices, packing = pack(ids, sentence_masks(config, ids, mask, given_types), deduplicate)

    short = [(first[:limit], second[:limit]) for first, second in pairs]
    short_ids, short_mask = pad_rows([join_pair(*pair) for pair in short])
    short_indices, expected = pack(short_ids, sentence_masks(config, short_ids, short_mask, None), deduplicate)
    assert torch.equal(ids.flatten()[indices], short_ids.flatten()[short_indices])
    for name in ("lengths", "offsets", "sentence_of_token", "sentence_of_example", "segment_of_token", "packed_index"):
        assert torch.equal(getattr(packing, name), getattr(expected, name)), name
    unpacked = packing.unpack_tokens(ids.flatten()[indices][:, None])[..., 0]
    read = unpacked != 0  # what was left out is 0 there
    assert torch.equal(unpacked[read], ids[read])
    assert read.sum() == sum(len(sentence) for pair in short for sentence in pair)


def test_pack_keeps_sentences_of_one_hash_apart() -> None:
    """Two different sentences whose tokens' hashes have one sum, made by solving the hash for the tokens' numbers."""
    whole = 1 << 64
    shift = 0x5851F42D4C957F2D * pow(0x2545F4914F6CDD1D, -1, whole)  # a step to the next position, in ids

    def as_int64(number: int) -> int:
        return (number + whole // 2) % whole - whole // 2

    first, second = 1234, 987
    twin = [as_int64(second + shift), as_int64(first - shift)]
    ids = torch.tensor([[first, second], twin, [7, 8], twin, [first, second]])
    sums = packing_dsa._hash_tokens(ids, torch.arange(2).expand(5, 2)).sum(1)
    assert sums[0] == sums[1] != sums[2]

    indices, packing = pack(ids, torch.ones_like(ids).bool()[:, None], deduplicate=True)
    sentences = ids.flatten()[indices].view(-1, 2)[packing.sentence_of_example.flatten()]
    assert torch.equal(sentences, ids)
    assert packing.sentence_of_example[0] == packing.sentence_of_example[4]


def test_sentences_that_differ_in_order_or_length_are_different() -> None:
    rows = [[5, 6, 7], [7, 6, 5], [5, 6], [6, 5, 7], [5, 6, 7, 7], [], [5, 6, 7]]
    ids, mask = pad_rows(rows)
    _, packing = pack(ids, mask.bool()[:, None], deduplicate=True)
    assert packing.sentence_of_example.flatten().tolist() == [0, 1, 2, 3, 4, 5, 0]


def test_positions_count_the_tokens_of_each_sentence() -> None:
    assert packing_of([3, 0, 1, 2]).positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert packing_of([0]).positions.tolist() == []


@given(PAIRS, st.booleans(), st.data())
def test_splitting_by_class_tells_copies_in_rows_of_different_classes_apart(
    pairs: list[tuple[list[int], list[int]]], deduplicate: bool, data: st.DataObject
) -> None:
    classes = data.draw(st.lists(st.integers(0, 2), min_size=len(pairs), max_size=len(pairs)))
    ids, mask = pad_rows([join_pair(*pair) for pair in pairs], data.draw(st.integers(0, 2)))
    masks = sentence_masks(OF_PAIRS, ids, mask, None)
    indices, packing = pack(ids, masks, deduplicate)
    sentence_classes, sentences, tokens, finer = packing.split_by_class(torch.tensor(classes), max(classes) + 1)

    of_row = [(tuple(sentence), number) for pair, number in zip(pairs, classes, strict=True) for sentence in pair]
    packed = ids.flatten()[indices][tokens]
    texts = [tuple(packed[finer.sentence_of_token == number].tolist()) for number in range(len(finer.lengths))]
    together = list(zip(texts, sentence_classes.tolist(), strict=True))
    assert [together[number] for number in finer.sentence_of_example.flatten().tolist()] == of_row
    if deduplicate:
        assert sorted(together) == sorted(set(of_row))
    else:
        assert sorted(together) == sorted(of_row)
    assert torch.equal(finer.lengths, packing.lengths[sentences])
    assert finer.lengths.tolist() == [len(text) for text in texts]
    assert finer.offsets.tolist() == [sum(map(len, texts[:number])) for number in range(len(texts))]
    assert torch.equal(packing.sentence_of_token[tokens], sentences[finer.sentence_of_token])
    # What is computed on the finer packing still is laid out as in the batch.
    assert torch.equal(finer.unpack_tokens(packed[:, None])[..., 0], ids * masks.any(1))


def pack_rectangles(packing: Packing) -> list[list[int]]:
    """The tokens that stand inside all rectangles."""
    groups = packing.rectangles()
    return [tokens[row][inside[row]].tolist() for tokens, inside in groups for row in range(len(tokens))]


@given(st.lists(st.one_of(st.integers(0, 4), st.integers(0, 60)), min_size=1, max_size=12))
def test_rectangles_hold_every_sentence_with_tokens_once(lengths: list[int]) -> None:
    packing = packing_of(lengths)
    starts = packing.offsets.tolist()
    expected = [list(range(start, start + n)) for start, n in zip(starts, lengths, strict=True) if n]
    assert sorted(pack_rectangles(packing)) == expected
    for tokens, inside in packing.rectangles():
        assert tokens.shape == inside.shape
        assert torch.all((tokens >= 0) & (tokens < sum(lengths)))
        shortest, longest = int(inside.sum(1).min()), inside.shape[1]
        assert shortest >= min(longest * 2 // 3, longest - 4)


def test_a_rectangle_stays_within_its_bound_or_holds_one_sentence() -> None:
    lengths = [300] * 500 + [40_000, 40_000, 100_000]
    sizes = [tuple(index.shape) for index, _ in packing_of(lengths).rectangles()]
    assert sizes[:3] == [(1, 100_000), (1, 40_000), (1, 40_000)]
    assert sum(sentences for sentences, _ in sizes) == len(lengths)
    assert all(sentences * tokens < 1 << 16 for sentences, tokens in sizes[1:])


@given(LENGTHS, st.integers(0, 4))
def test_gapped_indices_keep_sentences_apart(lengths: list[int], gap: int) -> None:
    packing = packing_of(lengths)
    rows, total = packing.gapped_indices(gap)
    assert total == sum(lengths) + gap * (len(lengths) - 1)
    taken, sentences = rows.tolist(), packing.sentence_of_token.tolist()
    assert all(0 <= row < total for row in taken)
    for before, after, one, other in zip(taken, taken[1:], sentences, sentences[1:], strict=False):
        assert after - before == 1 if one == other else after - before > gap


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
    shared = packing.weighted_sum(weights, values[0])  # the same values for both heads
    torch.testing.assert_close(shared, packing.weighted_sum(weights, values[:1].expand(2, -1, -1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("lengths", [[3, 1, 2], [0, 2, 0, 0, 3, 0], [1]], ids=str)
def test_gradients_pass_through_softmax_and_weighted_sum(lengths: list[int]) -> None:
    torch.manual_seed(0)
    packing = packing_of(lengths)
    scores = torch.randn(2, sum(lengths), dtype=torch.float64, requires_grad=True)
    values = torch.randn(2, sum(lengths), 3, dtype=torch.float64, requires_grad=True)
    functions: list[tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = [
        (packing.softmax, (scores,)),
        (packing.weighted_sum, (scores, values)),
        (packing.weighted_sum, (scores, values[0].detach().requires_grad_())),
    ]
    for function, inputs in functions:
        assert torch.autograd.gradcheck(function, inputs)


def test_a_batch_of_no_tokens_is_packed() -> None:
    packing = packing_of([0, 0])
    assert packing.softmax(torch.zeros(2, 0)).shape == (2, 0)
    assert torch.equal(packing.weighted_sum(torch.zeros(2, 0), torch.zeros(2, 0, 3)), torch.zeros(2, 2, 3))
    assert torch.equal(packing.weighted_sum(torch.zeros(2, 0), torch.zeros(0, 3)), torch.zeros(2, 2, 3))
    assert packing.rectangles() == []
    classes, sentences, tokens, finer = packing.split_by_class(torch.tensor([1, 0]), 2)
    assert (classes.tolist(), sentences.tolist(), tokens.tolist()) == ([1, 0], [0, 1], [])
    assert finer.unpack_tokens(torch.zeros(0, 5)).shape == (*packing.batch_shape, 5)


@pytest.mark.parametrize("deduplicate", [True, False])
def test_a_batch_of_no_columns_is_packed(deduplicate: bool) -> None:
    """What a tokenizer makes of empty texts."""
    nothing = torch.zeros(2, 0, dtype=torch.long)
    indices, packing = pack(nothing, sentence_masks(OF_PAIRS, nothing, None, None), deduplicate)
    assert indices.shape == (0,)
    assert packing.sentence_of_example.shape == (2, 2)
    assert packing.unpack_tokens(torch.zeros(0, 5)).shape == (2, 0, 5)


OF_RECTANGLES = {"tolist": 1}  # the sentences' lengths, once for all layers
WAITS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "dense_cnn, dynamic": ({}, {}),
    "directional": (SYSTEM_CASES["disan"], OF_RECTANGLES),
    "distance": (SYSTEM_CASES["distance-san"], OF_RECTANGLES),
    "bilstm": (SYSTEM_CASES["bilstm"], OF_RECTANGLES),
    "residual_bilstm": (SYSTEM_CASES["residual"], OF_RECTANGLES),
    # Which sentences stand under which classes, and how many tokens these have; on a CPU alone, two of `one_hot`.
    "variational": (SYSTEM_CASES["variational"], {"tolist": 2, "_unique2": 1, "_local_scalar_dense": 2}),
    "reinforced": (SYSTEM_CASES["reinforced"], OF_RECTANGLES),
}


@pytest.mark.parametrize(("changes", "more"), WAITS.values(), ids=WAITS)
def test_a_training_step_waits_for_a_gpu_where_a_shape_depends_on_the_tokens(
    changes: dict[str, Any], more: dict[str, int]
) -> None:
    model = DSAForNLI(small_config(sentences_per_example=2, **changes)).train()
    ids, mask = pad_rows([join_pair(*pair) for pair in EXAMPLE_PAIRS])
    with gpu_waits() as counts:
        model(input_ids=ids, attention_mask=mask, labels=torch.zeros(len(ids), dtype=torch.long)).loss.backward()
    assert counts == {"nonzero": 2, "index": 1} | more
