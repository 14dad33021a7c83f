"""Layers of the classifier on a pair's or a sentence's features."""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config_fields_dsa import DSAConfigFields
from .folding_dsa import FoldedWeights
from .layers_dsa import dropout


class ClassifierLayer(nn.Module):
    """A hidden layer of the classifier: batch normalisation (where the config has it) and dropout on its input, then
    linear and LeakyReLU.

    It is no `nn.Linear`, which a tool that quantises or adapts models would take for the product alone.
    """

    def __init__(self, config: DSAConfigFields, input_size: int, output_size: int) -> None:
        super().__init__()
        linear = nn.Linear(input_size, output_size)
        self.weight, self.bias = linear.weight, linear.bias
        self.norm = nn.BatchNorm1d(input_size, eps=config.batch_norm_eps) if config.classifier_batch_norm else None
        self.dropout_rate = config.classifier_dropout
        self.negative_slope = config.negative_slope
        self.folded: FoldedClassifierLayer | None = None

    def train(self, mode: bool = True) -> Any:
        """As in torch; training unfolds, also where the base was unfolded without its head, as by new tokens."""
        if mode:
            self.folded = None
        return super().train(mode)

    def forward(self, input: Tensor) -> Tensor:
        """(batch, input_size) -> (batch, output_size)"""
        if self.folded is not None and not torch.is_grad_enabled() and not torch.compiler.is_compiling():
            if not self.folded.made_of.have_changed():
                return F.leaky_relu(self.folded(input), self.negative_slope)
            self.folded = None
        features = input if self.norm is None else self._normalize(self.norm, input)
        features = dropout(features, self.dropout_rate, self.training)
        return F.leaky_relu(F.linear(features, self.weight, self.bias), self.negative_slope)

    def _normalize(self, norm: nn.BatchNorm1d, input: Tensor) -> Tensor:
        """(batch, input_size) -> the same; one example alone, which has no spread, by the running statistics."""
        if norm.training and len(input) == 1 and type(norm) is nn.BatchNorm1d:
            mean, variance = cast(Tensor, norm.running_mean), cast(Tensor, norm.running_var)
            return F.batch_norm(input, mean, variance, norm.weight, norm.bias, eps=norm.eps)
        return cast(Tensor, norm(input))


class FoldedClassifierLayer(nn.Module):
    """The batch normalisation and the product of a [`ClassifierLayer`], as one product, for prediction."""

    weight: Tensor
    bias: Tensor

    @torch.no_grad()
    def __init__(self, layer: ClassifierLayer, norm: nn.BatchNorm1d) -> None:
        """Fold a layer that has this normalisation."""
        super().__init__()
        self.made_of = FoldedWeights(layer)
        scale = norm.weight * (cast(Tensor, norm.running_var) + norm.eps).rsqrt()
        bias = layer.bias + layer.weight @ (norm.bias - cast(Tensor, norm.running_mean) * scale)
        self.register_buffer("weight", layer.weight * scale, persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        """(batch, input_size) -> (batch, output_size)"""
        return F.linear(input, self.weight, self.bias)


class HighwayLayer(ClassifierLayer):
    """g * LeakyReLU(W x + b) + (1 - g) * x with g = sigmoid(W_g x + b_g), as in highway networks."""

    def __init__(self, config: DSAConfigFields, size: int) -> None:
        super().__init__(config, size, size)
        self.gate = nn.Linear(size, size)  # W_g and b_g

    def forward(self, input: Tensor) -> Tensor:
        """(batch, size) -> (batch, size)"""
        gate = torch.sigmoid(self.gate(dropout(input, self.dropout_rate, self.training)))
        return gate * super().forward(input) + (1 - gate) * input
