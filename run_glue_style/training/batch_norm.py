"""Batch normalisation in training: over all processes' examples, and with the statistics that prediction sees."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn


@torch.no_grad()
def recalibrate_batch_norm(model: nn.Module, batches: Iterable[Mapping[str, Tensor]]) -> None:
    """Replace the running statistics by those of `batches`, with dropout off. Leaves the model in eval mode.

    Dropout changes the mean and the variance of what comes after it, most of all before a normalisation of lengths. The
    running statistics are gathered under dropout, so at prediction they are off: Li et al., "Understanding the
    Disharmony between Dropout and Batch Normalization by Variance Shift" (2018). Averaged weights have no statistics of
    their own at all. A few forward passes fix both.

    Args:
        model: Any model; without batch normalisation nothing happens.
        batches: Keyword arguments of its forward. Their statistics are averaged, so they should have one size.
    """
    model.eval()
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average over all batches
        norm.train()
    for batch in batches:
        model(**batch)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.eval()


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
    """In training it normalises by mean and variance of all processes' examples, on any device; else as its base.

    Each process alone would normalise by its own examples: two processes would then learn another model than one that
    has their examples in one batch, and keep the statistics of the first process's examples only.
    `torch.nn.SyncBatchNorm` does this on a GPU and refuses a CPU. All processes must pass examples, and may pass
    different numbers of them.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(batch, features) -> (batch, features)"""
        if not self.training:
            return super().forward(input)
        values = input.to(torch.promote_types(input.dtype, torch.float32))
        own_mean = values.mean(0)  # (features,)
        own = torch.cat([own_mean, (values - own_mean).square().sum(0), own_mean.new_tensor([len(values)])])
        gathered: Tensor = _AllGather.apply(own)  # (processes, 2 * features + 1)
        means, squares, counts = gathered.split([self.num_features, self.num_features, 1], dim=1)  # (processes, ...)
        total = counts.sum()
        mean = (counts * means).sum(0) / total  # (features,)
        squares = (squares + counts * (means - mean).square()).sum(0)  # (features,)
        self._update_running_statistics(mean, squares / (total - 1))
        scale = self.weight * (squares / total + self.eps).rsqrt()  # (features,)
        normalized: Tensor = (values - mean) * scale + self.bias
        return normalized.to(input.dtype)

    @torch.no_grad()
    def _update_running_statistics(self, mean: Tensor, variance: Tensor) -> None:
        batches = cast(Tensor, self.num_batches_tracked).add_(1)
        weight = 1 / float(batches) if self.momentum is None else self.momentum
        for kept, new in ((self.running_mean, mean), (self.running_var, variance)):
            cast(Tensor, kept).lerp_(new.to(cast(Tensor, kept).dtype), weight)


def share_batch_norm(model: nn.Module) -> None:
    """Let all batch normalisation of a model see all processes' examples. Call it before the optimizer is made."""
    for module in list(model.modules()):
        for name, norm in list(module.named_children()):
            if type(norm) is nn.BatchNorm1d:
                with torch.device("meta"):
                    shared = GlobalBatchNorm1d(norm.num_features, norm.eps, norm.momentum)
                shared.load_state_dict(norm.state_dict(), assign=True)
                setattr(module, name, shared.train(norm.training))
