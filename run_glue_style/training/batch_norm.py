"""Batch normalisation's statistics as the model sees its features at prediction, without dropout.

Dropout changes the mean and the variance of what comes after it, most of all before a normalisation of lengths. The
running statistics are gathered under dropout, so at prediction they are off: Li et al., "Understanding the Disharmony
between Dropout and Batch Normalization by Variance Shift" (2018). Averaged weights have no statistics of their own at
all. Both are mended by a few forward passes.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


@torch.no_grad()
def recalibrate_batch_norm(model: nn.Module, batches: Iterable[Mapping[str, Tensor]]) -> None:
    """Replace the running statistics by those of `batches`, with dropout off. Leaves the model in eval mode.

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
