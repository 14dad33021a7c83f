"""Batches that processes share: together those of one process, in its order."""

import itertools

import pytest
from torch.utils.data import BatchSampler

from run_glue_style.training.global_batches import GlobalBatches

ORDER = [7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 4, 6]


@pytest.mark.parametrize("rows", range(2, 13))
@pytest.mark.parametrize(("size", "processes"), [(4, 1), (2, 2), (1, 4), (3, 2), (6, 1), (2, 3)])
def test_pieces_make_the_batches_of_one_process(rows: int, size: int, processes: int) -> None:
    order = ORDER[:rows]
    batches = GlobalBatches(order, size, processes)
    pieces = list(batches)
    assert len(batches) == len(pieces)
    assert len(pieces) % processes == 0
    joined = [list(itertools.chain(*pieces[start : start + processes])) for start in range(0, len(pieces), processes)]
    whole = list(BatchSampler(order, size * processes, drop_last=False))
    if len(whole[-1]) < max(2, processes):
        whole.pop()
    assert joined == whole
    assert [batches.rows_of(number) for number in range(len(whole))] == [len(batch) for batch in whole]
    for start in range(0, len(pieces), processes):
        sizes = [len(piece) for piece in pieces[start : start + processes]]
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) >= 1


def test_full_batches_of_a_process_stand_together() -> None:
    assert list(GlobalBatches(ORDER[:7], 2, 2)) == [[7, 3], [11, 0], [5, 9], [1]]


def test_rest_that_not_every_process_can_share_is_left_out() -> None:
    assert list(GlobalBatches(ORDER[:5], 4, 1)) == [ORDER[:4]]
    assert list(GlobalBatches(ORDER[:8], 2, 3)) == [[7, 3], [11, 0], [5, 9]]
