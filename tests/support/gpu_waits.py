"""Counts what makes a program wait for a GPU, on a CPU, where nothing waits."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Numbers that are read, and shapes that depend on numbers.
_OPERATORS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "bincount", "repeat_interleave")


class _Operators(TorchDispatchMode):
    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self.counts = counts

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, options = func.overloadpacket.__name__, kwargs or {}
        knows_its_size = options.get("output_size") is not None
        # Also backwards: the gradient of what a mask has chosen goes where the mask says.
        if (name in _OPERATORS and not knows_its_size) or ("index" in name and any(map(_has_mask, args))):
            self.counts[name] += 1
        return func(*args, **options)


def _has_mask(argument: Any) -> bool:
    """Whether it holds indices of which some are a mask."""
    return isinstance(argument, list | tuple) and any(
        isinstance(index, Tensor) and index.dtype == torch.bool for index in argument
    )


class _Lists(TorchFunctionMode):
    """What reads a tensor's memory, which is no operator on a CPU."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self.counts = counts

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.tolist, Tensor.numpy, Tensor.cpu):
            self.counts[func.__name__] += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def gpu_waits() -> Iterator[Counter[str]]:
    """Inside the block the counter grows by the name of each wait."""
    counts: Counter[str] = Counter()
    with _Lists(counts), _Operators(counts):
        yield counts
