"""Batches that all processes of a run share: so many rows for each, in the order in which one process would read them.

accelerate deals out whole batches, and where an epoch's rows do not fill the last ones it repeats rows from the epoch's
beginning. Here the rest is dealt out evenly instead, so every row counts once, and several processes make the same
updates as one with batches of as many rows as they have together.
"""

from collections.abc import Iterator, Sequence, Sized
from typing import cast

from torch.utils.data import BatchSampler, Sampler


class GlobalBatches(Sampler[list[int]]):
    """The rows of each process in turn: batch k of process p is item k * processes + p.

    accelerate gives item i to process i % processes. A global batch is cut into pieces whose sizes differ by one row at
    most. Rows that are left over are no batch of their own where there is only one, which batch normalisation cannot
    train on, or where a process would get none.
    """

    def __init__(self, sampler: Sampler[int] | Sequence[int], batch_size: int, processes: int) -> None:
        """Set up an epoch.

        Args:
            sampler: Order of the rows.
            batch_size: Rows for each process, 1 or more.
            processes: How many share a batch.
        """
        # accelerate puts a sampler that knows seed and epoch in this one's place. It would take an attribute
        # `batch_size` for a promise that all batches are full.
        self.sampler = sampler
        self._global_size, self._processes = batch_size * processes, processes

    def __len__(self) -> int:
        full, rest = divmod(self._rows(), self._global_size)
        return (full + self._is_batch(rest)) * self._processes

    def __iter__(self) -> Iterator[list[int]]:
        for rows in BatchSampler(self.sampler, self._global_size, drop_last=False):
            if self._is_batch(len(rows)):
                size, larger = divmod(len(rows), self._processes)
                start = 0
                for process in range(self._processes):
                    end = start + size + (process < larger)
                    yield rows[start:end]
                    start = end

    def rows_of(self, number: int) -> int:
        """How many rows all processes together have in their batch of this number, counted from 0."""
        return min(self._global_size, self._rows() - number * self._global_size)

    def _rows(self) -> int:
        return len(cast(Sized, self.sampler))

    def _is_batch(self, rows: int) -> bool:
        return rows >= max(2, self._processes)
