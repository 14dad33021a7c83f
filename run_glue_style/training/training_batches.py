"""From examples to padded batches: their order, each process's share of a batch, and padding."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import BatchSampler, Sampler
from transformers import BatchEncoding

Batch: TypeAlias = dict[str, Tensor]

_TARGETS = ("labels", "log_class_shares")  # what a loss needs beside the model's inputs


def model_inputs(batch: Mapping[str, Tensor]) -> Batch:
    """What a model reads of a training batch."""
    return {name: tensor for name, tensor in batch.items() if name not in _TARGETS}


class GroupedSampler(Sampler[int]):
    """Every example once an epoch: groups in random order, and a group's examples in random order, one after another.

    A text that many examples share is then encoded once: in batches of at least as many examples as the largest group
    has, a group lies in two batches at most. The order is a function of seed and epoch alone, so each process of a run
    and a resumed run draw the same one.
    """

    def __init__(self, groups: Sequence[int], seed: int) -> None:
        """Set up epoch 0.

        Args:
            groups: The group of each example, any integers. (examples,)
            seed: Seed of the order, 0 or more.
        """
        indices = np.unique(np.asarray(groups), return_inverse=True)[1]  # (examples,)
        self.groups, self.seed, self.epoch = indices, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Take the order of this epoch; accelerate's loaders call it."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[int]:
        generator = np.random.default_rng([self.seed, self.epoch])
        rank = generator.permutation(self.groups.max(initial=-1) + 1)  # (groups,)
        order: list[int] = np.lexsort((generator.permutation(len(self.groups)), rank[self.groups])).tolist()
        return iter(order)


class GlobalBatches(Sampler[list[int]]):
    """The examples of each process in turn: batch k of process p is item k * processes + p.

    accelerate gives item i to process i % processes. By itself it deals out whole batches, and where an epoch's
    examples do not fill the last ones it repeats some from the epoch's beginning. Here a global batch is cut into
    pieces whose sizes differ by one example at most, so every example counts once, and several processes make the same
    updates as one with batches of as many examples as they have together. Examples that are left over are no batch of
    their own where there is only one, which batch normalisation cannot train on, or where a process would get none.
    """

    def __init__(self, sampler: Sampler[int] | Sequence[int], batch_size: int, processes: int) -> None:
        """Set up an epoch.

        Args:
            sampler: Order of the examples.
            batch_size: Examples for each process, 1 or more.
            processes: How many share a batch.
        """
        # accelerate puts a sampler that knows seed and epoch in this one's place. It would take an attribute
        # `batch_size` for a promise that all batches are full.
        self.sampler = sampler
        self._global_size, self._processes = batch_size * processes, processes

    def __len__(self) -> int:
        full, rest = divmod(self._examples(), self._global_size)
        return (full + self._is_batch(rest)) * self._processes

    def __iter__(self) -> Iterator[list[int]]:
        for examples in BatchSampler(self.sampler, self._global_size, drop_last=False):
            if self._is_batch(len(examples)):
                size, larger = divmod(len(examples), self._processes)
                start = 0
                for process in range(self._processes):
                    end = start + size + (process < larger)
                    yield examples[start:end]
                    start = end

    def global_size(self, index: int) -> int:
        """How many examples all processes together have in their batch of this index."""
        return min(self._global_size, self._examples() - index * self._global_size)

    def _examples(self) -> int:
        return len(cast(Sized, self.sampler))

    def _is_batch(self, examples: int) -> bool:
        return examples >= max(2, self._processes)


class PaddableExamples(Protocol):
    """Examples that make a padded batch of themselves, faster than one by one."""

    def padded(self, pad_token_id: int) -> dict[str, NDArray[Any]]:
        """All of them, padded on the right: arrays (batch, tokens), and `labels` (batch, ...)."""


@dataclass(frozen=True)
class PaddingCollator:
    """Makes a batch of examples, padded on the right to the longest one.

    It does what `DataCollatorWithPadding` does with a tokenizer of this package, which pads lists in Python: at 256
    pairs of a headline and a body of news that takes longer than the update of a small model.

    Attributes:
        pad_token_id: The padding of `input_ids`; that of all else is 0.
    """

    pad_token_id: int

    def __call__(self, examples: PaddableExamples) -> BatchEncoding:
        """Tensors (batch, tokens), and `labels` (batch, ...): int64 for classes, float32 for all else."""
        arrays = examples.padded(self.pad_token_id)
        return BatchEncoding({name: _as_tensor(array) for name, array in arrays.items()})


def _as_tensor(array: NDArray[Any]) -> Tensor:
    """As a tensor; vectors, which are multiplied, as a copy: products round by where memory begins, and numpy's begins
    anywhere."""
    return torch.tensor(array) if np.issubdtype(array.dtype, np.floating) else torch.from_numpy(array)


def label_array(labels: Any) -> NDArray[Any]:
    """Labels as a model takes them: int64 for classes, float32 for numbers and vectors. (examples, ...)"""
    array = np.asarray(labels)
    return array.astype(np.int64 if np.issubdtype(array.dtype, np.integer) else np.float32, copy=False)
