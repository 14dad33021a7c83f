"""From examples to batches: the order of groups, processes' shares, and labels."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import tokenized
from torch.utils.data import BatchSampler

from run_glue_style.training.tokenized_examples import TokenizedExamples
from run_glue_style.training.training_batches import GlobalBatches, GroupedSampler, PaddingCollator

ORDER = [7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 4, 6]
GENERATOR = np.random.default_rng(0)
GROUPS: list[int] = GENERATOR.integers(0, 12, 200).tolist()  # about 17 examples each, scattered


def epoch(number: int, seed: int = 0, groups: Sequence[int] = GROUPS) -> list[int]:
    sampler = GroupedSampler(groups, seed)
    sampler.set_epoch(number)
    return list(sampler)


@pytest.mark.parametrize("number", [0, 1, 7])
def test_every_example_comes_once_and_a_group_in_one_piece(number: int) -> None:
    order = epoch(number)
    assert sorted(order) == list(range(200))
    assert len(GroupedSampler(GROUPS, 0)) == 200
    pieces = [group for group, _ in itertools.groupby(GROUPS[example] for example in order)]
    assert len(pieces) == len(set(GROUPS))


def test_order_is_of_seed_and_epoch_alone() -> None:
    orders = {(seed, number): tuple(epoch(number, seed)) for seed in (0, 1, 2**62) for number in (0, 1)}
    assert len(set(orders.values())) == 6
    sampler = GroupedSampler(GROUPS, 1)
    for number in (1, 0, 1):  # whatever was drawn before
        sampler.set_epoch(number)
        assert tuple(sampler) == tuple(sampler) == orders[1, number]


def test_groups_and_the_examples_of_a_group_are_shuffled() -> None:
    groups = [0] * 50 + [1] * 50
    orders = [epoch(number, groups=groups) for number in range(20)]
    assert {groups[order[0]] for order in orders} == {0, 1}
    assert len({tuple(example for example in order if example < 50) for order in orders}) == 20
    assert all(sorted(order[:50]) != order[:50] for order in orders)


def test_groups_are_any_integers_or_none() -> None:
    assert sorted(epoch(0, groups=[5, 3, 9, -2])) == [0, 1, 2, 3]
    assert epoch(0, groups=[]) == []


@pytest.mark.parametrize("examples", range(2, 13))
@pytest.mark.parametrize(("size", "processes"), [(4, 1), (2, 2), (1, 4), (3, 2), (6, 1), (2, 3)])
def test_pieces_make_the_batches_of_one_process(examples: int, size: int, processes: int) -> None:
    order = ORDER[:examples]
    batches = GlobalBatches(order, size, processes)
    pieces = list(batches)
    assert len(batches) == len(pieces)
    assert len(pieces) % processes == 0
    joined = [list(itertools.chain(*pieces[start : start + processes])) for start in range(0, len(pieces), processes)]
    whole = list(BatchSampler(order, size * processes, drop_last=False))
    if len(whole[-1]) < max(2, processes):
        whole.pop()
    assert joined == whole
    assert [batches.global_size(index) for index in range(len(whole))] == [len(batch) for batch in whole]
    for start in range(0, len(pieces), processes):
        sizes = [len(piece) for piece in pieces[start : start + processes]]
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) >= 1


def test_full_batches_of_a_process_stand_together() -> None:
    assert list(GlobalBatches(ORDER[:7], 2, 2)) == [[7, 3], [11, 0], [5, 9], [1]]


@pytest.mark.parametrize("labels", [[0.5, 2.0], [[1.0, 2.0, 3.0]] * 2])
def test_labels_may_be_numbers_or_vectors_in_memory_of_torch_s_own(labels: list[Any]) -> None:
    classes = tokenized("train", 2)
    examples = TokenizedExamples(classes.tokenized, classes.texts, labels)
    batch = PaddingCollator(0)(examples)
    assert batch["labels"].dtype == torch.float32
    assert batch["labels"].tolist() == labels
    assert batch["labels"].data_ptr() != examples.labels.ctypes.data
