"""Windows over packed tokens: what keeps a convolution from seeing two sentences that stand side by side.

In prediction zeros stand between sentences, as any library's convolution understands them. In training on a CPU they
would be a sixth of all that is multiplied in sentences of eleven tokens; there a convolution is one product for all
taps of its kernel, whose results are then added up inside each sentence.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .convolution_dsa import convolve, multiplies_for_itself, padded_count
from .packing_dsa import Packing


class Windows(ABC):
    """Sentences in one list of tokens, of which no window sees two.

    Attributes:
        inside: 1 for a token, 0 for what is none, where the second must be kept at 0 between two layers. (T, 1)
    """

    inside: Tensor | None

    @abstractmethod
    def spread(self, tokens: Tensor) -> Tensor:
        """Lay packed tokens out as `convolve` reads them. (N, width) -> (T, width)"""

    @abstractmethod
    def collect(self, values: Tensor) -> Tensor:
        """The way back. (T, width) -> (N, width)"""

    @abstractmethod
    def convolve(self, tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """A convolution inside each sentence, with 'same' zero padding.

        Args:
            tokens: As laid out, 0 where `inside` is. (T, in_channels)
            weight: (out_channels, in_channels, kernel)
            bias: (out_channels,)

        Returns:
            (T, out_channels)
        """


class _Gaps(Windows):
    """Zeros between sentences."""

    inside: Tensor

    def __init__(self, packing: Packing, reach: int, block: slice, like: Tensor) -> None:
        self.indices, count = packing.gapped_indices(reach, block)  # (N,)
        self.inside = like.new_zeros(padded_count(count), 1).index_fill_(0, self.indices, 1.0)

    def spread(self, tokens: Tensor) -> Tensor:
        return tokens.new_zeros(self.inside.shape[0], tokens.shape[1]).index_copy_(0, self.indices, tokens)

    def collect(self, values: Tensor) -> Tensor:
        return values.index_select(0, self.indices)

    def convolve(self, tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return convolve(tokens, weight, bias)


class _Masks(Windows):
    """Masks between sentences."""

    inside = None

    def __init__(self, packing: Packing, reach: int, block: slice, like: Tensor) -> None:
        sentences = packing.sentence_of_token[block]
        self.count = sentences.shape[0]
        self.spare = padded_count(self.count) - self.count
        sentences = F.pad(sentences, (0, self.spare), value=-1)  # (T,)
        # For each distance, whether a token and the one so far behind it are of one sentence, (T - distance, 1).
        self.same = [
            (sentences[distance:] == sentences[:-distance]).to(like.dtype)[:, None]
            for distance in range(1, min(reach, sentences.shape[0] - 1) + 1)
        ]

    def spread(self, tokens: Tensor) -> Tensor:
        return F.pad(tokens, (0, 0, 0, self.spare)) if self.spare else tokens

    def collect(self, values: Tensor) -> Tensor:
        return values[: self.count]

    def convolve(self, tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if weight.shape[2] == 1:
            return convolve(tokens, weight, bias)
        taps = weight.permute(2, 0, 1).flatten(0, 1)[:, :, None]  # (kernel * out_channels, in_channels, 1)
        found: Tensor = _AddTaps.apply(convolve(tokens, taps), bias, weight.shape[2], *self.same)
        return found


def keep_apart(packing: Packing, reach: int, tokens: Tensor, training: bool, block: slice = slice(None)) -> Windows:
    """Windows that reach at most `reach` tokens to each side.

    Args:
        packing: Which tokens make a sentence.
        reach: In tokens.
        tokens: What will be laid out, for its type and device. (N, width)
        training: Of the layers. A checkpoint computes them with gradients and without, and must get the same.
        block: Only these tokens of the packing, one or more.
    """
    windows = _Masks if training and multiplies_for_itself(tokens) else _Gaps
    return windows(packing, reach, block, tokens)


def _neighbours(same: Sequence[Tensor], kernel: int, count: int) -> Iterator[tuple[int, slice, slice, Tensor]]:
    """What each tap of a kernel sees, apart from the middle one, which sees the token itself.

    Args:
        same: Of `_Masks`, for `count` tokens.
        kernel: Number of taps.
        count: T.

    Yields:
        The tap, the tokens that see another one there, those that they see, and their mask, (seen tokens, 1).
    """
    for tap in range(kernel):
        shift = tap - kernel // 2
        if shift and abs(shift) < count:
            first, last = slice(count - abs(shift)), slice(abs(shift), count)
            seeing, seen = (first, last) if shift > 0 else (last, first)
            yield tap, seeing, seen, same[abs(shift) - 1]


class _AddTaps(torch.autograd.Function):
    """Add up, inside each sentence, what the taps of a kernel make of the tokens.

    (T, kernel * out), a bias (out,) or None, the number of taps, and `_Masks.same` -> (T, out)
    """

    @staticmethod
    def forward(of_taps: Tensor, bias: Tensor | None, kernel: int, *same: Tensor) -> Tensor:
        values = of_taps.chunk(kernel, dim=1)
        middle = values[kernel // 2]
        found: Tensor = middle.clone() if bias is None else middle + bias  # (T, out)
        for tap, seeing, seen, mask in _neighbours(same, kernel, len(found)):
            found[seeing].addcmul_(values[tap][seen], mask)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _: Tensor) -> None:
        _of_taps, _bias, ctx.kernel, *same = inputs
        ctx.save_for_backward(*same)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients  # (T, out)
        same, middle = ctx.saved_tensors, ctx.kernel // 2
        # For each tap the gradient of the token that sees this one by it.
        of_taps = gradient.new_zeros(len(gradient), ctx.kernel, gradient.shape[1])  # (T, kernel, out)
        of_taps[:, middle] = gradient
        for tap, seeing, seen, mask in _neighbours(same, ctx.kernel, len(gradient)):
            of_taps[seen, tap] = gradient[seeing] * mask
        of_bias = gradient.sum(0) if ctx.needs_input_grad[1] else None
        return of_taps.flatten(1), of_bias, None, *(None for _ in same)
