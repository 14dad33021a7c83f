"""Layers on packed tokens: convolution and dropout in the forms that are fast on a CPU, and the layer h of both."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config_fields_dsa import DSAConfigFields

BLOCK_TOKENS = 1536  # Measured on two cores with 1 MB of cache each: 2,048 is as good, 1,024 and 4,096 are slower.


def in_blocks(compute: Callable[[slice], Tensor], tokens: Tensor, reach: int = 0) -> Tensor:
    """Compute something of packed tokens, for prediction on a CPU in blocks of tokens.

    What a layer gives then stays in the cache. And for every large tensor the system hands out fresh, emptied pages,
    which costs as much as the arithmetic for a text of 65,536 tokens.

    Args:
        compute: From a slice of the tokens, `slice(None)` for all, to what is wanted of them.
            (tokens of the slice, width)
        tokens: Anything with one entry a token. (N, ...)
        reach: How many neighbours on each side the result of a token depends on.

    Returns:
        (N, width)
    """
    in_one = torch.is_grad_enabled() or torch.compiler.is_compiling() or tokens.device.type != "cpu"
    if in_one or tokens.shape[0] <= BLOCK_TOKENS:
        return compute(slice(None))
    count, found = tokens.shape[0], None
    size = -(-count // -(-count // BLOCK_TOKENS))  # blocks of one size
    for start in range(0, count, size):
        first, end = max(start - reach, 0), min(start + size, count)
        block = compute(slice(first, min(end + reach, count)))  # (tokens of the slice, width)
        if found is None:
            found = block.new_empty(count, block.shape[1])
        found[start:end] = block[start - first : end - first]
    assert found is not None
    return found


def padded_count(count: int) -> int:
    """Round a number of tokens up, by at most a sixteenth (by 15 in small batches).

    The CPU library compiles a kernel for each new shape. Real batches differ by a few tokens each, and without
    rounding a step of training would spend a tenth of its time and more on compilation.
    """
    if torch.compiler.is_compiling():  # a compiler looks after its shapes itself
        return count
    step = max(16, 1 << max(count.bit_length() - 5, 0))
    return -(-count // step) * step


def convolve(tokens: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A 1D convolution over tokens with 'same' zero padding, (tokens, in_channels) -> (tokens, out_channels).

    The tokens are handed to the library as a channels-last image of height 1: no transposition, and on a CPU two to
    three times the speed of `nn.Conv1d` on (1, channels, tokens) or, for a kernel of 1, of `nn.Linear`.

    Args:
        tokens: (tokens, in_channels)
        weight: (out_channels, in_channels, kernel)
        bias: (out_channels,)
    """
    count, kernel = tokens.shape[0], weight.shape[2]
    if torch.compiler.is_compiling():
        if kernel == 1:
            return F.linear(tokens, weight[:, :, 0], bias)
        return F.conv1d(tokens.t()[None], weight, bias, padding=kernel // 2)[0].t()[:count]  # (tokens, out_channels)
    if count == 0:  # a batch of empty sentences, which the library refuses
        return F.linear(tokens, weight.sum(2), bias)
    # torch keeps small dilated inputs on its own, slow path; other devices multiply fast as they are.
    if kernel == 1 and (count < 256 or tokens.device.type != "cpu"):
        return F.linear(tokens, weight[:, :, 0], bias)
    in_training = torch.is_grad_enabled() and weight.requires_grad and tokens.device.type == "cpu"
    if in_training and not torch.is_autocast_enabled("cpu"):
        convolved: Tensor = _Convolution.apply(tokens, weight, bias)
        return convolved
    return _slide(tokens, weight, bias)


def _slide(tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As `convolve`, by the library."""
    count, kernel = tokens.shape[0], weight.shape[2]
    if padded_count(count) > count:
        tokens = F.pad(tokens, (0, 0, 0, padded_count(count) - count))
    image = tokens[None, None].permute(0, 3, 1, 2)  # (1, in_channels, 1, tokens)
    # Dilation does nothing to a kernel of 1, but with one thread torch hands only a dilated one to oneDNN.
    dilation = 2 if kernel == 1 else 1
    image = F.conv2d(image, weight[:, :, None], bias, padding=(0, kernel // 2), dilation=(1, dilation))
    return image.permute(0, 2, 3, 1).reshape(-1, weight.shape[0])[:count]  # (tokens, out_channels)


class _Convolution(torch.autograd.Function):
    """The same with other gradients: matrix products, which are faster than the library's on a CPU."""

    @staticmethod
    def forward(tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _slide(tokens, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], _: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (gradient,) = gradients  # (tokens, out_channels)
        tokens, weight = ctx.saved_tensors
        kernel = weight.shape[2]
        of_tokens = of_weight = of_bias = None
        seen = gradient  # of each token what those get that see it, (tokens, kernel * out_channels)
        if kernel > 1:  # by the weight by which they see it: the last of a kernel is for the first of them
            padded = F.pad(gradient, (0, 0, (kernel - 1) // 2, kernel // 2))
            seen = torch.cat([padded[first : first + len(gradient)] for first in reversed(range(kernel))], dim=1)
        if ctx.needs_input_grad[0]:
            of_tokens = seen @ weight.permute(2, 0, 1).flatten(0, 1)  # (tokens, in_channels)
        if ctx.needs_input_grad[1]:
            of_weight = (seen.t() @ tokens).unflatten(0, (kernel, -1))  # (kernel, out_channels, in_channels)
            of_weight = of_weight.permute(1, 2, 0)  # (out_channels, in_channels, kernel)
        if ctx.needs_input_grad[2]:
            of_bias = gradient.sum(0)
        return of_tokens, of_weight, of_bias


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

    def forward(self, tokens: Tensor, inside: Tensor | None = None) -> Tensor:
        """(tokens, in_channels) -> (tokens, out_channels); with `inside` (tokens, 1), tokens where it is 0 become 0."""
        # LeakyReLU keeps factors of 0 and above, so that it can go first, and one product do for dropout and `inside`.
        tokens = F.leaky_relu(super().forward(tokens), self.negative_slope)
        return dropout(tokens, self.dropout_rate, self.training, inside)


class DropoutLinear(TokenConv1d):
    """A linear map with dropout on its input, as in DiSAN's released code."""

    def __init__(self, config: DSAConfigFields, in_size: int, out_size: int, bias: bool = True) -> None:
        super().__init__(in_size, out_size, bias=bias)
        self.dropout_rate = config.hidden_dropout

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, in_size) -> (N, out_size)"""
        return super().forward(dropout(tokens, self.dropout_rate, self.training))
