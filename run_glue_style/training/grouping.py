"""Batches in which the rows of a group stand together, so that a text which many rows share is encoded once."""

from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler


class GroupedSampler(Sampler[int]):
    """Every row once an epoch: groups in random order, and the rows of a group in random order one after another.

    In batches of at least as many rows as the largest group has, a group stands in two batches at most. The order is a
    function of seed and epoch alone, so each process of a run and a run that goes on draw the same one.
    """

    def __init__(self, groups: Sequence[int], seed: int) -> None:
        """Set up epoch 0.

        Args:
            groups: The group of each row, any integers. (rows,)
            seed: Seed of the order, 0 or more.
        """
        numbers = np.unique(np.asarray(groups), return_inverse=True)[1]  # (rows,)
        self.groups, self.seed, self.epoch = numbers, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Take the order of this epoch; accelerate's loaders call it."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[int]:
        generator = np.random.default_rng([self.seed, self.epoch])
        rows = len(self.groups)
        rank = generator.permutation(self.groups.max(initial=-1) + 1)  # (groups,)
        order: list[int] = np.lexsort((generator.permutation(rows), rank[self.groups])).tolist()
        return iter(order)
