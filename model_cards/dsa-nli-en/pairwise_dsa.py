"""Pairwise self-attention: every token compared with every token of its sentence."""

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.modeling_layers import GradientCheckpointingLayer

from .config_fields_dsa import DSAConfigFields
from .layers_dsa import ConvLayer, TokenConv1d
from .packing_dsa import Packing


class PairwiseSelfAttention(GradientCheckpointingLayer):
    """a_ij = f_self-attention(x_i, x_j) (Zhang, Liang and Yilmaz, VSAM, Section 1.2), and a token that knows its
    context.

    a_i = softmax_j(q_i . k_j / sqrt(d)); pi_i = LeakyReLU(W [x_i; sum_j a_ij v_j] + b). The pairs of a sentence are
    never held at once, so memory grows with its tokens, but time with their square.
    """

    def __init__(self, config: DSAConfigFields, in_size: int, out_size: int) -> None:
        super().__init__()
        self.projection = TokenConv1d(in_size, 3 * out_size, bias=False)  # queries, keys, values
        self.combination = ConvLayer(config, in_size + out_size, out_size)

    def forward(self, tokens: Tensor, packing: Packing) -> Tensor:
        """(N, in_size) -> (N, out_size)"""
        projected = self.projection(tokens)  # (N, 3 * out_size)
        rectangles = packing.rectangles()
        contexts = [] if rectangles else [projected[:0, : projected.shape[1] // 3]]
        for index, inside in rectangles:  # (sentences, tokens)
            queries, keys, values = projected[index][:, None].chunk(3, dim=-1)  # (sentences, 1, tokens, out_size)
            context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=inside[:, None, None])
            contexts.append(context[:, 0])  # (sentences, tokens, out_size)
        context = packing.pack_rectangles(rectangles, contexts)  # (N, out_size)
        combined: Tensor = self.combination(torch.cat([tokens, context], dim=1))
        return combined
