"""Weights that FSDP has shared out among the processes: each holds a part of every tensor.

Where nothing is shared out, a tensor is whole and its own part.
"""

import copy
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import PreTrainedModel


def is_shared_out(model: nn.Module) -> bool:
    """Whether FSDP has shared out its weights."""
    return isinstance(model, FSDPModule)


def share_out_again(model: nn.Module) -> None:
    """Drop whole weights that a forward pass without a backward one has left: a change of the parts is not in them."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def whole(tensor: Tensor) -> Tensor:
    """The tensor with all processes' parts, which all must ask for."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def own_part(tensor: Tensor) -> Tensor:
    """What this process holds of it, in the same memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def assign(tensor: Tensor, values: Tensor) -> None:
    """Give a tensor the values of a whole one that each process has."""
    if isinstance(tensor, DTensor):
        values = distribute_tensor(values.to(tensor.device), tensor.device_mesh, tensor.placements, src_data_rank=None)
    tensor.copy_(values)


def whole_copy(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> PreTrainedModel:
    """A copy of a model on the CPU, none of it shared out; all processes must ask for one that is.

    Args:
        model: To be copied.
        weights: Those of the copy in place of the model's own, by name.
    """
    own = {name: whole(tensor).to("cpu", copy=True) for name, tensor in model.state_dict().items()}
    # FSDP puts a class of its own before the model's.
    model_class = next(base for base in type(model).__mro__ if not issubclass(base, FSDPModule))
    with torch.device("meta"):  # nothing is drawn
        copied = cast(type[PreTrainedModel], model_class)(copy.deepcopy(model.config))
    copied.load_state_dict({**own, **weights}, assign=True)
    return copied
