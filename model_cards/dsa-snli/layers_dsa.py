"""Layers on packed tokens: convolution, dropout in the form that is fast on a CPU, and the layer h of both."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config_fields_dsa import DSAConfigFields
from .convolution_dsa import convolve
from .windows_dsa import Windows


class TokenConv1d(nn.Conv1d):
    """A 1D convolution over tokens, (tokens, in_channels) -> (tokens, out_channels), 'same' zero padding.

    An even kernel k sees k / 2 tokens before its own and k / 2 - 1 after it.

    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int = 1, bias: bool = True) -> None:
        super().__init__(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """(tokens, in_channels) -> (tokens, out_channels)"""
        return convolve(tokens, self.weight, self.bias)


def dropout(values: Tensor, rate: float, training: bool, factors: Tensor | None = None) -> Tensor:
    """`F.dropout` for large tensors, and then a product; on a CPU the rate is rounded to a multiple of 2 ** -16.

    torch's CPU generator draws one number an element, which costs more than the convolution around it. Here one
    64-bit draw decides four elements.

    Args:
        values: (N, width)
        rate: Share of the values that become 0.
        training: Whether any do.
        factors: What the values are multiplied with, without a gradient of its own. (N, 1)

    Returns:
        (N, width)
    """
    dropped = round(rate * 2**16) if training else 0
    if factors is not None:
        factors = factors.to(values.dtype)
    if dropped == 0 or values.device.type != "cpu" or dropped == 2**16 or torch.compiler.is_compiling():
        if dropped:
            values = F.dropout(values, rate)
        return values if factors is None else values * factors
    draws = torch.empty((values.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    draws = draws.view(torch.int16)[: values.numel()].view(values.shape)  # uniform over all 2 ** 16 values
    # In place and in float32, which holds every draw: a comparison of integers is not vectorised.
    kept = draws.float().ge_(dropped - 2**15).to(values.dtype)
    scale = 2**16 / (2**16 - dropped)
    return values * kept.mul_(scale if factors is None else scale * factors)


class ConvLayer(TokenConv1d):
    """The composite function h: convolution, dropout, LeakyReLU (Section 3.1)."""

    def __init__(self, config: DSAConfigFields, in_channels: int, out_channels: int, kernel_size: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size)
        self.dropout_rate = config.hidden_dropout
        self.negative_slope = config.negative_slope

    def forward(self, tokens: Tensor, windows: Windows | None = None) -> Tensor:
        """(tokens, in_channels) -> (tokens, out_channels); a kernel above 1 needs `windows` to keep sentences apart."""
        convolve_tokens, inside = (convolve, None) if windows is None else (windows.convolve, windows.inside)
        convolved = convolve_tokens(tokens, self.weight, self.bias)
        # LeakyReLU keeps factors of 0 and above, so that it can go first, and one product do for dropout and `inside`.
        activated = F.leaky_relu(convolved, self.negative_slope)
        return dropout(activated, self.dropout_rate, self.training, inside)


class DropoutLinear(TokenConv1d):
    """A linear map with dropout on its input, as in DiSAN's released code."""

    def __init__(self, config: DSAConfigFields, in_size: int, out_size: int, bias: bool = True) -> None:
        super().__init__(in_size, out_size, bias=bias)
        self.dropout_rate = config.hidden_dropout

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, in_size) -> (N, out_size)"""
        return super().forward(dropout(tokens, self.dropout_rate, self.training))
