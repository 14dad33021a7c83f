"""Products and convolutions of tokens, (tokens, width), in the forms that are fast on a CPU."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

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


def multiplies_for_itself(tokens: Tensor) -> bool:
    """Whether gradients come from plain matrix products: faster than the library's for float32 on a CPU."""
    return tokens.device.type == "cpu" and not torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()


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
    if kernel == 1 and torch.is_grad_enabled() and multiplies_for_itself(tokens):
        product: Tensor = _Product.apply(tokens, weight[:, :, 0], bias)
        return product
    return _slide(tokens, weight, bias)


def _slide(tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As `convolve`, by the library, whose gradients are slow."""
    count, kernel = tokens.shape[0], weight.shape[2]
    if padded_count(count) > count:
        tokens = F.pad(tokens, (0, 0, 0, padded_count(count) - count))
    image = tokens[None, None].permute(0, 3, 1, 2)  # (1, in_channels, 1, tokens)
    # Dilation does nothing to a kernel of 1, but with one thread torch hands only a dilated one to oneDNN.
    dilation = 2 if kernel == 1 else 1
    image = F.conv2d(image, weight[:, :, None], bias, padding=(0, kernel // 2), dilation=(1, dilation))
    return image.permute(0, 2, 3, 1).reshape(-1, weight.shape[0])[:count]  # (tokens, out_channels)


class _Product(torch.autograd.Function):
    """Tokens (N, in) times a weight (out, in), plus a bias (out,) or None."""

    @staticmethod
    def forward(tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _slide(tokens, weight[:, :, None], bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], _: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (gradient,) = gradients  # (N, out)
        tokens, weight = ctx.saved_tensors
        return (
            gradient @ weight if ctx.needs_input_grad[0] else None,
            gradient.t() @ tokens if ctx.needs_input_grad[1] else None,
            gradient.sum(0) if ctx.needs_input_grad[2] else None,
        )
