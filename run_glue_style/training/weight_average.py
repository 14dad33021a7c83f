"""Exponential average of a model's weights: often better than the last weights, at the price of one copy."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .sharding import assign, own_part, whole


class WeightAverage:
    """Average of all trained weights and of all float buffers (batch normalisation's statistics).

    Unlike `torch.optim.swa_utils.AveragedModel` it leaves out what is frozen: a word table can be a hundred times
    larger than everything that is trained. The decay rises from 0.1 to its value, so early weights are forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self._live: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._live += [buffer for buffer in model.buffers() if buffer.is_floating_point()]
        self._average = [tensor.detach().clone() for tensor in self._live]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the current weights; call it after each update of the model."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        averages, live = ([own_part(tensor.detach()) for tensor in tensors] for tensors in (self._average, self._live))
        torch._foreach_lerp_(averages, live, 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside the block the model has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for live, average in zip(self._live, self._average, strict=True):
            kept = live.clone()
            live.copy_(average)
            average.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"updates": self.updates, "average": [whole(tensor).clone() for tensor in self._average]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        self.updates = state["updates"]
        averages: list[Tensor] = state["average"]
        for average, saved in zip(self._average, averages, strict=True):
            assign(average, saved)
