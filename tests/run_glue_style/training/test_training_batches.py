"""From examples to batches: the order of groups, processes' shares, and padding against that of transformers."""

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from numpy.typing import NDArray
from small_runs import small_tokenizer, tokenized
from torch.utils.data import BatchSampler
from transformers import DataCollatorWithPadding

from run_glue_style.training.training_batches import GlobalBatches, GroupedSampler, PaddingCollator

ORDER = [7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 4, 6]
GENERATOR = np.random.default_rng(0)
GROUPS: list[int] = GENERATOR.integers(0, 12, 200).tolist()  # about 17 examples each, scattered
LARGEST = max(GROUPS.count(group) for group in GROUPS)


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


def test_group_stands_in_two_batches_at_most() -> None:
    for number in range(5):
        batches = list(BatchSampler(GroupedSampler(GROUPS, number), LARGEST, drop_last=False))
        for group in set(GROUPS):
            assert sum(any(GROUPS[example] == group for example in batch) for batch in batches) <= 2


def test_examples_without_company_are_in_random_order() -> None:
    assert sorted(epoch(0, groups=[5, 3, 9, -2])) == [0, 1, 2, 3]
    assert epoch(0, groups=[]) == []


def test_two_processes_read_every_example_once() -> None:
    batches = BatchSampler(GroupedSampler(GROUPS, 3), 16, drop_last=False)
    shards = [list(BatchSamplerShard(batches, 2, process, even_batches=False)) for process in range(2)]
    read = list(itertools.chain.from_iterable(itertools.chain.from_iterable(shards)))
    assert sorted(read) == list(range(200))
    # accelerate fills up the last batches, so that no process waits for another.
    evened = [list(BatchSamplerShard(batches, 2, process)) for process in range(2)]
    assert [len(shard) for shard in evened] == [7, 7]
    assert set(itertools.chain.from_iterable(itertools.chain.from_iterable(evened))) == set(range(200))


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


def test_rest_that_not_every_process_can_share_is_left_out() -> None:
    assert list(GlobalBatches(ORDER[:5], 4, 1)) == [ORDER[:4]]
    assert list(GlobalBatches(ORDER[:8], 2, 3)) == [[7, 3], [11, 0], [5, 9]]


@pytest.mark.parametrize("kind", [list, np.asarray])
def test_batches_are_those_of_transformers(kind: type) -> None:
    tokenizer = small_tokenizer()
    examples = tokenized("train", 40)
    examples[7] = {name: [] for name in examples[7]} | {"labels": 2}  # a text without words
    expected = DataCollatorWithPadding(tokenizer)(examples)
    given = [
        {name: kind(value) if name != "labels" else value for name, value in example.items()} for example in examples
    ]
    batch = PaddingCollator(tokenizer.pad_token_id)(given)
    assert batch.keys() == expected.keys()
    for name in expected:
        assert batch[name].dtype == torch.long
        assert torch.equal(batch[name], expected[name].long())


def test_padding_is_that_of_the_tokenizer() -> None:
    examples = [
        {"input_ids": [1, 2], "attention_mask": [1, 1], "labels": 0},
        {"input_ids": [3], "attention_mask": [1], "labels": 1},
    ]
    batch = PaddingCollator(9)(examples)
    assert batch["input_ids"].tolist() == [[1, 2], [3, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]
    assert batch["labels"].tolist() == [0, 1]


def test_vectors_have_memory_of_torch_s_own() -> None:
    class Vectors:
        arrays: ClassVar[dict[str, NDArray[Any]]] = {
            "input_ids": np.ones((2, 1), np.int64),
            "labels": np.ones((2, 3), np.float32),
        }

        def padded(self, pad_token_id: int) -> dict[str, NDArray[Any]]:
            return self.arrays

    batch = PaddingCollator(0)(Vectors())
    assert torch.equal(batch["labels"], torch.ones(2, 3))
    assert batch["labels"].data_ptr() != Vectors.arrays["labels"].ctypes.data


@pytest.mark.parametrize(("labels", "dtype"), [([0.5, 2.0], torch.float32), ([np.ones(3), np.zeros(3)], torch.float32)])
def test_labels_may_be_numbers_or_vectors(labels: list[object], dtype: torch.dtype) -> None:
    batch = PaddingCollator(0)([{"input_ids": [1], "labels": label} for label in labels])
    assert batch["labels"].dtype == dtype
    assert batch["labels"].tolist() == np.asarray(labels).tolist()
