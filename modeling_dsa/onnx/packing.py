"""Packing as an ONNX file does it: shapes follow the tokens, and what concerns sentences runs on one rectangle.

onnxruntime finds tokens by their mask at once, and multiplies rectangles fast; what it scatters it scatters slowly.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from modeling_dsa.config_fields_dsa import DSAConfigFields
from modeling_dsa.packing_dsa import Packing, sentence_masks

NEVER = -1e30  # a score whose exponential is 0, among any others


@dataclass(frozen=True)
class RectanglePacking(Packing):
    """A packing of the sentences of a batch in their order, copies too."""

    @cached_property
    def inside(self) -> Tensor:
        """Which positions of the rectangle are inside their sentence. (U, longest)"""
        longest = self.lengths.max().clamp(min=1).item()
        torch._check(longest >= 1)
        return torch.arange(longest) < self.lengths[:, None]

    @cached_property
    def index(self) -> Tensor:
        """The packed token at each position of each sentence; N outside. (U, longest)"""
        index = self.offsets[:, None] + torch.arange(self.inside.shape[1])
        return torch.where(self.inside, index, self.sentence_of_token.shape[0])

    def lay_out(self, tokens: Tensor) -> Tensor:
        """Packed tokens at their positions, and 0 outside. (N, width) -> (U, longest, width)"""
        return F.embedding(self.index, torch.cat([tokens, tokens.new_zeros(1, tokens.shape[1])]))

    def pack(self, laid_out: Tensor) -> Tensor:
        """Undo `lay_out`. (U, longest, width) -> (N, width)"""
        index = self.sentence_of_token * self.inside.shape[1] + self.positions
        return laid_out.flatten(0, 1).index_select(0, index)

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax over the tokens of each sentence. (heads, N) -> (heads, N)"""
        laid_out = self.lay_out(scores.t()).masked_fill(~self.inside[:, :, None], NEVER)  # (U, longest, heads)
        return self.pack(laid_out.softmax(1)).t()

    def weighted_sum(self, weights: Tensor, values: Tensor) -> Tensor:
        """(heads, N), (heads, N, width) or, the same for all heads, (N, width) -> (heads, U, width)"""
        laid_out = self.lay_out(weights.t())  # (U, longest, heads)
        if values.ndim == 2:
            return (laid_out.transpose(1, 2) @ self.lay_out(values)).transpose(0, 1)
        by_head: Tensor = self.lay_out(values.transpose(0, 1).flatten(1)).unflatten(2, (values.shape[0], -1))
        return (laid_out[..., None] * by_head).sum(1).transpose(0, 1)

    def unpack_sentences(self, packed: Tensor) -> Tensor:
        """(U, width) -> (B, sentences_per_example, width)"""
        by_example: Tensor = packed.unflatten(0, self.sentence_of_example.shape)
        return by_example


def pack_for_onnx(
    config: DSAConfigFields,
    input_ids: Tensor,
    attention_mask: Tensor,
    token_type_ids: Tensor,
) -> tuple[Tensor, RectanglePacking]:
    """Pack a batch; it takes the place of the model's own `_pack`.

    Args:
        config: The model's.
        input_ids: (batch, tokens)
        attention_mask: (batch, tokens)
        token_type_ids: (batch, tokens)

    Returns:
        The index in the flattened batch of each packed token, (N,), and the packing.
    """
    batch, width = input_ids.shape
    belongs = sentence_masks(config, input_ids, attention_mask, token_type_ids)  # (batch, 1 or 2, tokens)
    example, second, column = belongs.nonzero().unbind(1)  # (N,) each, in the order of the sentences
    index = example * width + column  # (N,)
    sentence = example * 2 + second if config.sentences_per_example == 2 else example
    lengths = belongs.sum(2).flatten()  # (U,)
    packing = RectanglePacking(
        lengths=lengths,
        offsets=lengths.cumsum(0) - lengths,
        sentence_of_token=sentence,
        sentence_of_example=torch.arange(lengths.shape[0]).view(batch, -1),
        flat_index=index,
        segment_of_token=sentence,
        packed_index=torch.arange(sentence.shape[0]),
        batch_shape=(batch, width),
    )
    return index, packing
