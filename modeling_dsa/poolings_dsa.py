"""Poolings: packed encoded words in, one vector a sentence out. `POOLINGS` maps `config.pooling` to its class."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_dsa import DSAConfig
from .packing_dsa import Packing
from .rows_dsa import RowConv1d


def at_least_float32(tensor: Tensor) -> Tensor:
    """Attention weights and sums over long sentences lose too much in half precision."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def dynamic_routing(values: Tensor, packing: Packing, iterations: int, scale: float) -> tuple[Tensor, list[Tensor]]:
    """Algorithm 1: attention whose weight vector z_j is computed from the sentence itself.

    Gradients flow through every iteration. The update of q after the last one is left out: nothing reads it.

    Args:
        values: x_hat_{j|i}, (heads, N, d_o).
        packing: Which words make a sentence.
        iterations: r, at least 1.
        scale: Factor on the agreement x_hat . z.

    Returns:
        z, (U, heads, d_o), and the attention weights a of every iteration, each (heads, N).
    """
    logits = values.new_zeros(values.shape[:2])  # (heads, N)
    attentions = []
    for iteration in range(iterations):
        weights = packing.softmax(logits)  # (heads, N)
        attentions.append(weights)
        vectors = packing.weighted_sum(weights, values).tanh()  # (heads, U, d_o)
        if iteration < iterations - 1:
            agreement = (values * vectors.index_select(1, packing.sentence_of_word)).sum(-1)  # (heads, N)
            logits = logits + scale * agreement
    return vectors.transpose(0, 1), attentions


class DynamicSelfAttention(nn.Module):
    """Dynamic self-attention with m heads: projection (Eq. 6), routing (Algorithm 1), concatenation (Eq. 7)."""

    def __init__(self, config: DSAConfig) -> None:
        super().__init__()
        self.projection = RowConv1d(config.hidden_size, config.sentence_embedding_size)  # W_j, b_j for all j
        self.heads, self.head_size = config.num_attention_heads, config.attention_head_size
        self.iterations = config.routing_iterations
        self.scale = config.routing_scale
        self.negative_slope = config.negative_slope

    def forward(self, words: Tensor, packing: Packing) -> tuple[Tensor, list[Tensor]]:
        """(N, d_c) -> (U, m * d_o) and the weights of every iteration, each (heads, N)."""
        values = F.leaky_relu(self.projection(words), self.negative_slope)  # (N, m * d_o)
        values = values.view(-1, self.heads, self.head_size).transpose(0, 1).contiguous()  # (heads, N, d_o)
        vectors, attentions = dynamic_routing(at_least_float32(values), packing, self.iterations, self.scale)
        return vectors.flatten(1).to(words.dtype), attentions


class StaticSelfAttention(nn.Module):
    """Self-attention with a learnt weight vector v (Eq. 1), the paper's baseline, over the same projected words."""

    def __init__(self, config: DSAConfig) -> None:
        super().__init__()
        self.projection = RowConv1d(config.hidden_size, config.attention_head_size)
        self.hidden = RowConv1d(config.attention_head_size, config.attention_hidden_size, bias=False)  # W
        self.score = nn.Linear(config.attention_hidden_size, 1, bias=False)  # v
        self.negative_slope = config.negative_slope

    def forward(self, words: Tensor, packing: Packing) -> tuple[Tensor, list[Tensor]]:
        """(N, d_c) -> (U, d_o) and the weights, one tensor of (1, N)."""
        values = F.leaky_relu(self.projection(words), self.negative_slope)  # (N, d_o)
        scores = self.score(torch.tanh(self.hidden(values))).t()  # (1, N)
        weights = packing.softmax(at_least_float32(scores))
        vectors = packing.weighted_sum(weights, at_least_float32(values)[None])[0]  # (U, d_o)
        return vectors.to(words.dtype), [weights]


POOLINGS: dict[str, type[nn.Module]] = {"dynamic": DynamicSelfAttention, "static": StaticSelfAttention}
