"""A saved encoder with more channels, layers and heads than it had, whose vectors are at first the saved one's.

After Chen, Goodfellow and Shlens, "Net2Net: Accelerating Learning via Knowledge Transfer" (2016), by zeros: new parts
are drawn, and what reads them begins with 0. A larger student need not learn again what a smaller one knows.
"""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from modeling_dsa import DSAConfig, DSAModel

# Fields that may be larger than the saved model's. Not hidden_size: each token is brought to one length over all of it.
GROWING = ("first_layer_size", "growth_size", "num_hidden_layers", "num_attention_heads")

Parts = Sequence[Sequence[int]]  # the sizes of what stands side by side, in groups that each may get more at their end


def grows(stored: DSAConfig, config: DSAConfig) -> bool:
    """Whether a config is a saved one's with larger sizes, and else the same encoder.

    Args:
        stored: The saved model's.
        config: That of the model that is trained.
    """
    if (config.encoder, config.pooling) != ("dense_cnn", "dynamic") or config.projection_size is None:
        return False
    larger = [name for name in GROWING if getattr(config, name) > getattr(stored, name)]
    as_stored = DSAConfig.from_dict({**config.to_dict(), **{name: getattr(stored, name) for name in larger}})
    return bool(larger) and _shapes(as_stored) == _shapes(stored)


@torch.no_grad()
def grow(model: DSAModel, saved: Mapping[str, Tensor], stored: DSAConfig) -> None:
    """Give a model that was just drawn the weights of a smaller one.

    Args:
        model: One whose config `grows`.
        saved: The smaller one's weights by name.
        stored: Its config.
    """
    before, after = dict(_layout(stored)), dict(_layout(model.config))
    for name, weights in model.state_dict().items():
        layer = name.rpartition(".")[0]
        if layer not in before:  # neither what the encoder reads nor what it gives has grown
            if layer not in after:
                weights.copy_(saved[name])
            continue
        rows, columns = map(_places, before[layer], after[layer])
        if weights.ndim == 1:
            weights[rows] = saved[name]
            continue
        whole = torch.zeros_like(weights[rows])
        whole[:, columns] = saved[name]
        weights[rows] = whole


def _layout(config: DSAConfig) -> Iterator[tuple[str, tuple[Parts, Parts]]]:
    """Each layer that may grow, with the parts of its rows and of its columns."""
    size, words = config.growth_size, [config.embedding_size]
    features = [config.first_layer_size, *[size] * config.num_hidden_layers]
    heads = [config.attention_head_size] * config.num_attention_heads
    branches = range(len(config.kernel_sizes))
    for branch in branches:
        yield f"encoder.branches.{branch}.first", ([features[:1]], [words])
        for layer in range(config.num_hidden_layers):
            yield f"encoder.branches.{branch}.layers.{layer}", ([[size]], [features[: layer + 1]])
    yield "encoder.compression", ([[config.hidden_size]], [*([features] * len(branches)), words])
    yield "pooling.projection", ([heads], [[config.hidden_size]])
    assert config.projection_size is not None
    yield "projection", ([[config.projection_size]], [heads])


def _places(before: Parts, after: Parts) -> Tensor:
    """Where what was side by side before stands among what is after. (size before,)"""
    places, start = [], 0
    for old, new in zip(before, after, strict=True):
        for number, size in enumerate(new):
            places.append(torch.arange(start, start + (old[number] if number < len(old) else 0)))
            start += size
    return torch.cat(places)


def _shapes(config: DSAConfig) -> dict[str, torch.Size]:
    with torch.device("meta"):
        return {name: tensor.shape for name, tensor in DSAModel(config).state_dict().items()}
