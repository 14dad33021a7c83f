"""What every pooling returns, and the sum that most of them make."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .packing_dsa import Packing


@dataclass
class Pooled:
    """Vectors of the distinct sentences, and what else a pooling knows of them.

    Attributes:
        vectors: (samples, U, width); one sample but for a latent variable.
        attentions: Attention weights, such as those of each iteration; each (heads, N), the mean over samples.
        packing: What U and N count: the packing that came in, or a finer one.
        attentions_std: Spread of the last of `attentions` over samples, where there are several. (heads, N)
        kl: KL(q || p) of the latent variables of each sentence, where there is a posterior. (U,)
        kl_weight: Its factor in the loss at this point of the training. ()
        penalty: ||A A^T - I||_F^2 of each sentence, for structured self-attention. (U,)
        choice_log_probability: log p of what hard attention chose, where it drew. (U,)
        chosen_share: Which share of the pairs of each sentence's tokens it left to soft attention, from 0 to 1. (U,)
    """

    vectors: Tensor
    attentions: list[Tensor]
    packing: Packing
    attentions_std: Tensor | None = None
    kl: Tensor | None = None
    kl_weight: Tensor | None = None
    penalty: Tensor | None = None
    choice_log_probability: Tensor | None = None
    chosen_share: Tensor | None = None

    def unpack(self) -> Tensor:
        """The vectors by example, (samples, batch, sentences of an example, width).

        A pooling may tell copies of a sentence apart, so they are laid out by its own packing.
        """
        by_example = self.packing.unpack_sentences(self.vectors.transpose(0, 1).flatten(1))  # (batch, 1 or 2, ...)
        samples: Tensor = by_example.unflatten(2, (self.vectors.shape[0], -1))  # (batch, 1 or 2, samples, width)
        return samples.permute(2, 0, 1, 3)


def at_least_float32(tensor: Tensor) -> Tensor:
    """Attention weights and sums over long sentences lose too much in half precision."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def equal_weights(tokens: Tensor, packing: Packing) -> Tensor:
    """The weights of a mean over each sentence. (N, width) -> (1, N)"""
    return packing.softmax(at_least_float32(tokens).new_zeros(1, tokens.shape[0]))


def sum_tokens(weights: Tensor, tokens: Tensor, packing: Packing) -> Tensor:
    """Each head's weighted sum of the same tokens, s = H a. (heads, N), (N, d_c) -> (U, heads * d_c)"""
    return packing.weighted_sum(weights, at_least_float32(tokens)).transpose(0, 1).flatten(1).to(tokens.dtype)
