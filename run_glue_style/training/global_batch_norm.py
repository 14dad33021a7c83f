"""Batch normalisation over the rows of all processes, on any device.

Each process alone would normalise by its own rows: two processes would then learn another model than one that has
their rows in one batch, and keep the statistics of the first process's rows only. `torch.nn.SyncBatchNorm` does this on
a GPU and refuses a CPU.
"""

from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn


class _AllGather(torch.autograd.Function):
    """A tensor of each process: (...) -> (processes, ...). The gradient is the sum of what all processes ask for."""

    @staticmethod
    def forward(_ctx: Any, tensor: Tensor) -> Tensor:
        gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, tensor)
        return torch.stack(gathered)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient)
        return gradient[dist.get_rank()]


class GlobalBatchNorm1d(nn.BatchNorm1d):
    """In training it normalises by mean and variance of all processes' rows, which all must pass; else as its base.

    The processes may have different numbers of rows. For a tensor (rows, features).
    """

    def forward(self, input: Tensor) -> Tensor:
        """(rows, features) -> (rows, features)"""
        if not self.training:
            return super().forward(input)
        values = input.to(torch.promote_types(input.dtype, torch.float32))
        own_mean = values.mean(0)
        own = torch.cat([own_mean, (values - own_mean).square().sum(0), own_mean.new_tensor([len(values)])])
        gathered: Tensor = _AllGather.apply(own)
        means, squares, rows = gathered.split([self.num_features, self.num_features, 1], dim=1)  # (processes, ...)
        total = rows.sum()
        mean = (rows * means).sum(0) / total  # (features,)
        squares = (squares + rows * (means - mean).square()).sum(0)  # (features,)
        self._remember(mean, squares / (total - 1))
        scale = self.weight * (squares / total + self.eps).rsqrt()
        normalized: Tensor = (values - mean) * scale + self.bias
        return normalized.to(input.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        batches = cast(Tensor, self.num_batches_tracked).add_(1)
        weight = 1 / float(batches) if self.momentum is None else self.momentum
        for kept, new in ((self.running_mean, mean), (self.running_var, variance)):
            cast(Tensor, kept).lerp_(new.to(cast(Tensor, kept).dtype), weight)


def share_batch_norm(model: nn.Module) -> None:
    """Let all batch normalisation of a model see the rows of all processes. Call it before the optimiser is made."""
    for module in list(model.modules()):
        for name, norm in list(module.named_children()):
            if type(norm) is nn.BatchNorm1d:
                with torch.device("meta"):
                    shared = GlobalBatchNorm1d(norm.num_features, norm.eps, norm.momentum)
                shared.load_state_dict(norm.state_dict(), assign=True)
                setattr(module, name, shared.train(norm.training))
