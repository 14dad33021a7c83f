"""Directional self-attention encoders: a token attends to those before it and, in another block, to those after it."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from .compatibility_dsa import init
from .config_fields_dsa import DSAConfigFields
from .layers_dsa import DropoutLinear, TokenConv1d, dropout
from .packing_dsa import Packing
from .pooled_dsa import at_least_float32
from .systems_dsa import Encoder, refuse_odd_size

_BLOCK_NUMBERS = 1 << 24  # of the largest tensor that pairs of tokens fill at once, 64 MB
_BOUND = 5.0  # c of DiSAN


class FusionGate(nn.Module):
    """F = sigmoid(W^f1 s + W^f2 h + b^f), F * h + (1 - F) * s (DiSAN, Eq. 20 and 21)."""

    def __init__(self, config: DSAConfigFields, size: int) -> None:
        super().__init__()
        self.of_context = DropoutLinear(config, size, size, bias=False)  # W^f1
        self.of_token = DropoutLinear(config, size, size)  # W^f2 and b^f

    def forward(self, tokens: Tensor, contexts: Tensor) -> Tensor:
        """h and s, each (N, size) -> (N, size)"""
        gate = torch.sigmoid(self.of_context(contexts) + self.of_token(tokens))
        return gate * tokens + (1 - gate) * contexts


class DirectionalSelfAttention(GradientCheckpointingLayer):
    """One direction of DiSAN: multi-dimensional attention to the tokens on one side, and a fusion gate.

    h_i = ELU(W^h x_i + b^h); f(h_i, h_j) = c tanh([W^1 h_i + W^2 h_j + b^1] / c), of which every channel has a softmax
    of its own over the dependents, the tokens i on that side of the head, token j (Eq. 13 to 18). A token without any
    has a context of 0.
    """

    def __init__(self, config: DSAConfigFields, in_size: int, size: int, *, backwards: bool) -> None:
        super().__init__()
        self.projection = DropoutLinear(config, in_size, size)  # W^h and b^h
        self.dependent = DropoutLinear(config, size, size, bias=False)  # W^1
        self.head = DropoutLinear(config, size, size)  # W^2 and b^1
        self.fusion = FusionGate(config, size)
        self.is_backwards = backwards

    def forward(self, tokens: Tensor, packing: Packing) -> Tensor:
        """(N, in_size) -> (N, size)"""
        tokens = F.elu(self.projection(tokens))  # (N, size)
        fused: Tensor = self.fusion(tokens, self.contexts(tokens, packing))
        return fused

    def contexts(self, tokens: Tensor, packing: Packing, chosen: Tensor | None = None) -> Tensor:
        """s_j, over all tokens on that side or those of them that are chosen, (N,). (N, size) -> (N, size)"""
        dependents, heads = self.dependent(tokens), self.head(tokens)  # (N, size)
        rectangles = packing.rectangles()
        contexts = []
        for index, inside in rectangles:
            seen = inside if chosen is None else inside & chosen[index]
            contexts.append(self._attend(dependents[index], heads[index], tokens[index], seen))
        return packing.pack_rectangles(rectangles, contexts or [tokens + dependents + heads])

    def _attend(self, dependents: Tensor, heads: Tensor, values: Tensor, seen: Tensor) -> Tensor:
        """Each (sentences, tokens, size), and which tokens are attended to -> (sentences, tokens, size)"""

        def attend(block: slice) -> Tensor:
            sums = dependents[:, None] + heads[:, block, None]  # (sentences, heads, dependents, size)
            # The scores lie between -c and c, so no softmax overflows, and no maximum is needed.
            weights = at_least_float32(_BOUND * torch.tanh(sums / _BOUND)).exp()
            on_one_side = _on_one_side(seen, block, self.is_backwards)[..., None]
            weights = weights * on_one_side.to(weights.dtype)
            totals = weights.sum(2)  # (sentences, heads, size)
            context = (weights * values[:, None]).sum(2)
            return (context / totals.masked_fill(totals == 0, 1.0)).to(values.dtype)

        return _in_blocks_of_tokens(attend, values.shape[1], values.numel())


class ProjectingGate(nn.Module):
    """S = W^S s, H = W^H x, F = sigmoid(S + H + b), F * S + (1 - F) * H: a gate between two projections."""

    def __init__(self, in_size: int, size: int) -> None:
        """Of contexts of width `size` and tokens of width `in_size`."""
        super().__init__()
        self.of_context = TokenConv1d(size, size, bias=False)  # W^S
        self.of_token = TokenConv1d(in_size, size, bias=False)  # W^H
        self.bias = nn.Parameter(torch.zeros(size))  # b

    def init_own_weights(self) -> None:
        """Neither side is preferred."""
        init.zeros_(self.bias)

    def forward(self, tokens: Tensor, contexts: Tensor) -> Tensor:
        """x (N, in_size) and s (N, size) -> (N, size)"""
        of_context, of_token = self.of_context(contexts), self.of_token(tokens)
        gate = torch.sigmoid(of_context + of_token + self.bias)
        fused: Tensor = gate * of_context + (1 - gate) * of_token
        return fused


class DistanceSelfAttention(GradientCheckpointingLayer):
    """One direction of the distance-based self-attention network: masked multi-head attention, a fusion gate and a
    position-wise feed-forward network.

    softmax(Q K^T / sqrt(d_k) + M_dir + alpha M_dis) V of each head with M_dis = -|i - j|, concatenated and projected to
    s_j; u, what [`ProjectingGate`] makes of x and s; then u + W_2 ReLU(W_1 u). Layer normalisation follows the gate and
    the residual. A token without any on that side has a context of 0.
    """

    def __init__(self, config: DSAConfigFields, in_size: int, size: int, *, backwards: bool) -> None:
        super().__init__()
        self.projection = TokenConv1d(in_size, 3 * size, bias=False)  # queries, keys, values
        self.output = TokenConv1d(size, size)
        self.gate = ProjectingGate(in_size, size)
        self.gate_norm = nn.LayerNorm(size)
        self.expansion = TokenConv1d(size, config.feedforward_size)  # W_1
        self.reduction = TokenConv1d(config.feedforward_size, size)  # W_2
        self.norm = nn.LayerNorm(size)
        self.heads, self.distance_weight = config.encoder_attention_heads, config.distance_weight
        self.dropout_rate, self.is_backwards = config.hidden_dropout, backwards

    def forward(self, tokens: Tensor, packing: Packing) -> Tensor:
        """(N, in_size) -> (N, size)"""
        projected = self.projection(tokens)  # (N, 3 * size)
        rectangles = packing.rectangles()
        contexts = [self._attend(projected[index], inside) for index, inside in rectangles]
        context = packing.pack_rectangles(rectangles, contexts or [projected[:, : projected.shape[1] // 3]])
        context = dropout(self.output(context), self.dropout_rate, self.training)  # (N, size)
        fused = self.gate_norm(self.gate(tokens, context))  # (N, size)
        fed = dropout(self.reduction(F.relu(self.expansion(fused))), self.dropout_rate, self.training)
        normalised: Tensor = self.norm(fused + fed)
        return normalised

    def _attend(self, projected: Tensor, inside: Tensor) -> Tensor:
        """(sentences, tokens, 3 * size), and which tokens are inside -> (sentences, tokens, size)"""
        by_head = projected.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys, values = by_head  # (sentences, heads, tokens, d_k)
        position = torch.arange(projected.shape[1], device=projected.device)

        def attend(block: slice) -> Tensor:
            scores = at_least_float32(queries[:, :, block] @ keys.transpose(2, 3)) / math.sqrt(queries.shape[3])
            scores = scores - self.distance_weight * (position[block, None] - position).abs()
            seen = _on_one_side(inside, block, self.is_backwards)[:, None]  # (sentences, 1, queries, tokens)
            # A softmax over nothing is no number: a token that sees none gets any weights, and they are taken back.
            sees_any = seen.any(3, keepdim=True)
            weights = scores.masked_fill(~seen & sees_any, -torch.inf).softmax(3) * sees_any
            context: Tensor = weights.to(values.dtype) @ values  # (sentences, heads, queries, d_k)
            return context.transpose(1, 2).flatten(2)

        return _in_blocks_of_tokens(attend, projected.shape[1], self.heads * inside.numel())


def _on_one_side(inside: Tensor, block: slice, backwards: bool) -> Tensor:
    """Which tokens the tokens of the block attend to: those before them or, backwards, those after them.

    (sentences, tokens) -> (sentences, tokens of the block, tokens)
    """
    position = torch.arange(inside.shape[1], device=inside.device)
    own = position[block, None]  # (tokens of the block, 1)
    return inside[:, None] & ((position > own) if backwards else (position < own))


def _in_blocks_of_tokens(attend: Callable[[slice], Tensor], tokens: int, row_numbers: int) -> Tensor:
    """Attention of some tokens at a time, so that never all pairs of a long sentence are held.

    Args:
        attend: From a slice of the tokens to what they get. (sentences, tokens of the slice, width)
        tokens: How many there are.
        row_numbers: Numbers that the pairs of one of them fill.

    Returns:
        (sentences, tokens, width)
    """
    if torch.compiler.is_compiling() or tokens * row_numbers <= _BLOCK_NUMBERS:
        return attend(slice(None))
    size = max(1, _BLOCK_NUMBERS // row_numbers)
    blocks = [slice(start, start + size) for start in range(0, tokens, size)]
    if torch.is_grad_enabled():  # the backward pass computes each block again
        return torch.cat([checkpoint(attend, block, use_reentrant=False) for block in blocks], dim=1)
    return torch.cat([attend(block) for block in blocks], dim=1)


class _BothDirections(Encoder):
    """A block that looks forwards and one that looks backwards, side by side."""

    block: type[DirectionalSelfAttention] | type[DistanceSelfAttention]

    def __init__(self, config: DSAConfigFields) -> None:
        super().__init__(config)
        sizes = [config.embedding_size] + [config.hidden_size] * (config.num_hidden_layers - 1)
        half = config.hidden_size // 2
        self.forwards = nn.ModuleList(self.block(config, size, half, backwards=False) for size in sizes)
        self.backwards = nn.ModuleList(self.block(config, size, half, backwards=True) for size in sizes)

    @classmethod
    def validate(cls, config: DSAConfigFields) -> None:
        """Both directions are equally wide."""
        refuse_odd_size(config)

    def forward(self, tokens: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c) and, when asked, the tokens after each layer but the last."""
        states = []
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            tokens = torch.cat([forwards(tokens, packing), backwards(tokens, packing)], dim=1)  # (N, d_c)
            states.append(tokens)
        return tokens, states[:-1] if output_hidden_states else []


class DirectionalEncoder(_BothDirections):
    """DiSAN's encoder: Shen et al., "DiSAN: Directional Self-Attention Network for RNN/CNN-Free Language Understanding"
    (2017), [u^fw; u^bw] with d_c / 2 channels each. The paper has one layer.
    """

    description = "directional self-attention, channel by channel, to the words before and after it"
    block = DirectionalSelfAttention


class DistanceEncoder(_BothDirections):
    """The encoder of Im and Cho, "Distance-based Self-Attention Network for Natural Language Inference" (2017).

    [u^fw; u^bw] with d_c / 2 channels each. The paper has one layer.
    """

    description = "multi-head self-attention to the words before and after it, nearer ones more"
    own_fields = Encoder.own_fields | {"encoder_attention_heads", "distance_weight", "feedforward_size"}
    block = DistanceSelfAttention

    @classmethod
    def validate(cls, config: DSAConfigFields) -> None:
        """The heads share the channels of a direction."""
        super().validate(config)
        if config.hidden_size // 2 % config.encoder_attention_heads:
            raise ValueError(
                f"hidden_size is shared out over {config.encoder_attention_heads} encoder_attention_heads in each of "
                f"two directions of encoder '{config.encoder}', and {config.hidden_size} cannot be."
            )
