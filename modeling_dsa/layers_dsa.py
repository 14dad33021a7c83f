"""Layers on packed rows: convolution and dropout in the forms that are fast on a CPU, and the layer h of both."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config_fields_dsa import DSAConfigFields

BLOCK_TOKENS = 1536  # Measured on two cores with 1 MB of cache each: 2,048 is as good, 1,024 and 4,096 are slower.


def in_blocks(compute: Callable[[slice], Tensor], words: Tensor, reach: int = 0) -> Tensor:
    """Compute something of packed words, for prediction on a CPU in blocks of words.

    A layer's rows then stay in the cache. And for every large tensor the system hands out fresh, emptied pages, which
    costs as much as the arithmetic for a text of 65,536 words.

    Args:
        compute: From a slice of the words, `slice(None)` for all, to their rows. (words of the slice, width)
        words: What has a row for each word. (N, ...)
        reach: How many neighbours on each side a word's row depends on.

    Returns:
        (N, width)
    """
    in_one = torch.is_grad_enabled() or torch.compiler.is_compiling() or words.device.type != "cpu"
    if in_one or words.shape[0] <= BLOCK_TOKENS:
        return compute(slice(None))
    count, found = words.shape[0], None
    size = -(-count // -(-count // BLOCK_TOKENS))  # blocks of one size
    for start in range(0, count, size):
        first, end = max(start - reach, 0), min(start + size, count)
        rows = compute(slice(first, min(end + reach, count)))  # (words of the slice, width)
        if found is None:
            found = rows.new_empty(count, rows.shape[1])
        found[start:end] = rows[start - first : end - first]
    assert found is not None
    return found


def padded_count(rows: int) -> int:
    """Round a number of rows up, by at most a sixteenth (by 15 in small batches).

    The CPU library compiles a kernel for each new shape. Batches of real words differ by a few rows each, and without
    rounding a step of training would spend a tenth of its time and more on compilation.
    """
    if torch.compiler.is_compiling():  # a compiler looks after its shapes itself
        return rows
    step = max(16, 1 << max(rows.bit_length() - 5, 0))
    return -(-rows // step) * step


def convolve_rows(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A 1D convolution over rows with 'same' zero padding, (rows, in_channels) -> (rows, out_channels).

    The rows are handed to the library as a channels-last image of height 1: no transposition, and on a CPU two to
    three times the speed of `nn.Conv1d` on (1, channels, rows) or, for a kernel of 1, of `nn.Linear`.

    Args:
        rows: (rows, in_channels)
        weight: (out_channels, in_channels, kernel)
        bias: (out_channels,)
    """
    count, kernel = rows.shape[0], weight.shape[2]
    if torch.compiler.is_compiling():
        if kernel == 1:
            return F.linear(rows, weight[:, :, 0], bias)
        return F.conv1d(rows.t()[None], weight, bias, padding=kernel // 2)[0].t()[:count]  # (rows, out_channels)
    if count == 0:  # a batch of empty sentences, which the library refuses
        return F.linear(rows, weight.sum(2), bias)
    # torch keeps small dilated inputs on its own, slow path; other devices multiply fast as they are.
    if kernel == 1 and (count < 256 or rows.device.type != "cpu"):
        return F.linear(rows, weight[:, :, 0], bias)
    if padded_count(count) > count:
        rows = F.pad(rows, (0, 0, 0, padded_count(count) - count))
    image = rows[None, None].permute(0, 3, 1, 2)  # (1, in_channels, 1, rows)
    # Dilation does nothing to a kernel of 1, but with one thread torch hands only a dilated one to oneDNN.
    dilation = 2 if kernel == 1 else 1
    image = F.conv2d(image, weight[:, :, None], bias, padding=(0, kernel // 2), dilation=(1, dilation))
    return image.permute(0, 2, 3, 1).reshape(-1, weight.shape[0])[:count]  # (rows, out_channels)


class RowConv1d(nn.Conv1d):
    """A 1D convolution over rows, (rows, in_channels) -> (rows, out_channels), 'same' zero padding.

    An even kernel k sees k / 2 rows before its own and k / 2 - 1 after it.

    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int = 1, bias: bool = True) -> None:
        super().__init__(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=bias)

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, in_channels) -> (rows, out_channels)"""
        return convolve_rows(rows, self.weight, self.bias)


def dropout(rows: Tensor, rate: float, training: bool) -> Tensor:
    """`F.dropout` for large tensors; on a CPU the rate is rounded to a multiple of 2 ** -16.

    torch's CPU generator draws one number an element, which costs more than the convolution around it. Here one
    64-bit draw decides four elements.
    """
    dropped = round(rate * 2**16)
    if not training or dropped == 0:
        return rows
    if rows.device.type != "cpu" or dropped == 2**16 or torch.compiler.is_compiling():
        return F.dropout(rows, rate)
    draws = torch.empty((rows.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    draws = draws.view(torch.int16)[: rows.numel()].view(rows.shape)  # uniform over all 2 ** 16 values
    # In place and in float32, which holds every draw: a comparison of integers is not vectorised.
    kept = draws.float().ge_(dropped - 2**15).to(rows.dtype)
    return rows * kept.mul_(2**16 / (2**16 - dropped))


class ConvLayer(RowConv1d):
    """The composite function h: convolution, dropout, LeakyReLU (Section 3.1)."""

    def __init__(self, config: DSAConfigFields, in_channels: int, out_channels: int, kernel_size: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size)
        self.dropout_rate = config.hidden_dropout
        self.negative_slope = config.negative_slope

    def forward(self, rows: Tensor, inside: Tensor | None = None) -> Tensor:
        """(rows, in_channels) -> (rows, out_channels); with `inside` (rows, 1), rows where it is 0 become 0."""
        rows = dropout(super().forward(rows), self.dropout_rate, self.training)
        rows = F.leaky_relu(rows, self.negative_slope)
        return rows if inside is None else rows * inside.to(rows.dtype)
