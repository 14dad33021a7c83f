"""The order in which groups of rows are read."""

from collections.abc import Sequence
from itertools import chain, groupby

import numpy as np
import pytest
from accelerate.data_loader import BatchSamplerShard
from torch.utils.data import BatchSampler

from run_glue_style.training.grouping import GroupedSampler

GENERATOR = np.random.default_rng(0)
GROUPS: list[int] = GENERATOR.integers(0, 12, 200).tolist()  # about 17 rows each, scattered over the rows
LARGEST = max(GROUPS.count(group) for group in GROUPS)


def epoch(number: int, seed: int = 0, groups: Sequence[int] = GROUPS) -> list[int]:
    sampler = GroupedSampler(groups, seed)
    sampler.set_epoch(number)
    return list(sampler)


@pytest.mark.parametrize("number", [0, 1, 7])
def test_every_row_comes_once_and_a_group_in_one_piece(number: int) -> None:
    order = epoch(number)
    assert sorted(order) == list(range(200))
    assert len(GroupedSampler(GROUPS, 0)) == 200
    pieces = [group for group, _ in groupby(GROUPS[row] for row in order)]
    assert len(pieces) == len(set(GROUPS))


def test_order_is_of_seed_and_epoch_alone() -> None:
    orders = {(seed, number): tuple(epoch(number, seed)) for seed in (0, 1, 2**62) for number in (0, 1)}
    assert len(set(orders.values())) == 6
    sampler = GroupedSampler(GROUPS, 1)
    for number in (1, 0, 1):  # whatever was drawn before
        sampler.set_epoch(number)
        assert tuple(sampler) == tuple(sampler) == orders[1, number]


def test_groups_and_the_rows_of_a_group_are_shuffled() -> None:
    groups = [0] * 50 + [1] * 50
    orders = [epoch(number, groups=groups) for number in range(20)]
    assert {groups[order[0]] for order in orders} == {0, 1}
    assert len({tuple(row for row in order if row < 50) for order in orders}) == 20
    assert all(sorted(order[:50]) != order[:50] for order in orders)


def test_group_stands_in_two_batches_at_most() -> None:
    for number in range(5):
        batches = list(BatchSampler(GroupedSampler(GROUPS, number), LARGEST, drop_last=False))
        for group in set(GROUPS):
            assert sum(any(GROUPS[row] == group for row in batch) for batch in batches) <= 2


def test_rows_without_company_are_in_random_order() -> None:
    assert sorted(epoch(0, groups=[5, 3, 9, -2])) == [0, 1, 2, 3]
    assert epoch(0, groups=[]) == []


def test_two_processes_read_every_row_once() -> None:
    batches = BatchSampler(GroupedSampler(GROUPS, 3), 16, drop_last=False)
    shards = [list(BatchSamplerShard(batches, 2, process, even_batches=False)) for process in range(2)]
    read = list(chain.from_iterable(chain.from_iterable(shards)))
    assert sorted(read) == list(range(200))
    # accelerate fills up the last batches, so that no process waits for another.
    evened = [list(BatchSamplerShard(batches, 2, process)) for process in range(2)]
    assert [len(shard) for shard in evened] == [7, 7]
    assert set(chain.from_iterable(chain.from_iterable(evened))) == set(range(200))
