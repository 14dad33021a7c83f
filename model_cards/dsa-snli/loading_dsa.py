"""What a loaded model must be to give vectors: complete and finite. It goes to the Hub with the model."""

import math
import os
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from .config_fields_dsa import ANY_SIZE, LAYERS

_MOST_ENTRIES = 1_000  # of a list: each makes a layer, or a part of what one reads


def refuse_oversized_config(config: Any) -> None:
    """Refuse sizes that this machine cannot hold, before anything is made: a config may come from a stranger.

    Raises:
        ValueError: A weight with one of its numbers as a side needs more than all memory, or there are more layers or
            larger numbers than anybody computes with.
    """
    # Windows does not say how much there is.
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    for field in fields(config):  # and not what was written beside them, which no model reads
        value, size = getattr(config, field.name), field.metadata.get("size", ANY_SIZE)
        entries = value if isinstance(value, list | tuple) else [value]
        if len(entries) > _MOST_ENTRIES:
            raise ValueError(f"{field.name} has {len(entries):,} entries in the config: {_MOST_ENTRIES:,} is the most.")
        for number in entries:
            if not isinstance(number, int):
                continue
            if abs(number) > size.most:
                raise ValueError(f"{field.name} is {number:,} in the config: {size.most:,} is the most.")
            if size.weight(number, config) * 4 > memory:
                raise ValueError(
                    f"{field.name} is {number:,} in the config: its weights need more memory than this machine has."
                )
    if (layers := len(config.kernel_sizes) * config.num_hidden_layers) > LAYERS.most:
        raise ValueError(f"The config has {layers:,} layers: {LAYERS.most:,} is the most.")


def refuse_missing_weights(source: str, missing: Iterable[str]) -> None:
    """Refuse a file of weights that lacks some, which would be drawn at random.

    Args:
        source: Where the model comes from, for the message.
        missing: Names of the weights that the file lacks and should have.

    Raises:
        ValueError: There are some.
    """
    names = sorted(missing)
    if names:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise ValueError(
            f"{source}: the file of weights lacks {names[0]}{others}: leave out options that ask for another model "
            "than was saved, such as another pooling; or save or download the model again."
        )


@torch.no_grad()
def refuse_nonfinite_weights(source: str, model: nn.Module) -> None:
    """Refuse weights or statistics that are NaN or infinite; those that are offloaded to a disk are not read.

    Raises:
        ValueError: There are some.
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_meta or not tensor.is_floating_point() or not tensor.numel():
            continue
        # The extremes carry NaN along, and need no mask as large as a word table.
        if not torch.stack(torch.aminmax(tensor)).isfinite().all():
            raise ValueError(f"{source}: the weights {name} are not finite; save or download the model again.")
