"""What a loaded model must be to give vectors: complete and finite. It goes to the Hub with the model."""

import math
import os
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import torch
from torch import nn

_WIDTHS = (
    *("embedding_size", "hidden_size", "first_layer_size", "growth_size", "attention_head_size", "latent_size"),
    "tree_size",
    *("attention_hidden_size", "feedforward_size", "gated_size", "projection_size", "classifier_hidden_sizes"),
)
_COUNTS = (
    *("num_hidden_layers", "num_attention_heads", "encoder_attention_heads", "routing_iterations"),
    *("num_training_samples", "num_prediction_samples"),
)
_MOST = 10_000  # heads, iterations or samples: each is an object of Python
_MOST_LAYERS = 1_000  # making ten thousand takes a minute
_LARGEST = 2**31 - 1  # of all other numbers, which torch counts with


def refuse_oversized_config(config: Any) -> None:
    """Refuse sizes that this machine cannot hold, before anything is made: a config may come from a stranger.

    Raises:
        ValueError: The word table, or a square matrix of the largest width, needs more than all memory, or there are
            more layers or larger numbers than anybody computes with.
    """
    # Windows does not say how much there is.
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    for name in _COUNTS:
        if getattr(config, name) > _MOST:
            raise ValueError(f"{name} is {getattr(config, name):,} in the config: {_MOST:,} is the most.")
    kernels, hidden = len(config.kernel_sizes), len(config.classifier_hidden_sizes)
    if (layers := max(kernels * config.num_hidden_layers, hidden)) > _MOST_LAYERS:
        raise ValueError(f"The config has {layers:,} layers: {_MOST_LAYERS:,} is the most.")
    for name in _WIDTHS:
        value = getattr(config, name) or 0
        width = max(value, default=0) if isinstance(value, list | tuple) else value
        if width**2 * 4 > memory:
            raise ValueError(f"{name} is {width:,} in the config: its weights need more memory than this machine has.")
    if config.vocab_size * config.embedding_size * 4 > memory:
        raise ValueError(
            f"vocab_size is {config.vocab_size:,} in the config: its word table needs more memory than this machine "
            "has."
        )
    for field in fields(config):  # and not what was written beside them, which no model reads
        value = getattr(config, field.name)
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise ValueError(f"{field.name} is {value:,} in the config: {_LARGEST:,} is the most.")


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
        raise ValueError(f"{source}: the file of weights lacks {names[0]}{others}; save or download the model again.")


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
