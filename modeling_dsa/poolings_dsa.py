"""Poolings: packed encoded tokens in, one vector a sentence out. `POOLINGS` maps `config.pooling` to its class."""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config_fields_dsa import DSAConfigFields
from .convolution_dsa import convolve, in_blocks
from .layers_dsa import DropoutLinear, TokenConv1d
from .packing_dsa import Packing
from .pooled_dsa import Pooled, at_least_float32, equal_weights, sum_tokens
from .reinforced_dsa import ReinforcedSelfAttention
from .systems_dsa import Encoder, Pooling, refuse_other_labels
from .tree_dsa import GumbelTreeLSTM
from .variational_dsa import PairwisePooling, VariationalSelfAttention


def dynamic_routing(values: Tensor, packing: Packing, iterations: int, scale: float) -> tuple[Tensor, list[Tensor]]:
    """Algorithm 1: attention whose weight vector z_j is computed from the sentence itself.

    Gradients flow through every iteration. The update of q after the last one is left out: nothing reads it.

    Args:
        values: x_hat_{j|i}, (heads, N, d_o).
        packing: Which tokens make a sentence.
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
            logits = logits + scale * _agreement(values, vectors, packing)
    return vectors.transpose(0, 1), attentions


def _agreement(values: Tensor, vectors: Tensor, packing: Packing) -> Tensor:
    """x_hat_{j|i} . z_j. (heads, N, d_o), (heads, U, d_o) -> (heads, N)"""

    def of_tokens(block: slice) -> Tensor:
        of_sentence = vectors.index_select(1, packing.sentence_of_token[block])  # (heads, tokens, d_o)
        return (values[:, block] * of_sentence).sum(-1).t()  # (tokens, heads)

    return in_blocks(of_tokens, packing.sentence_of_token).t()


class HeadsProjection(TokenConv1d):
    """W_j and b_j of all heads."""

    def forward(self, tokens: Tensor, channels: slice = slice(None)) -> Tensor:
        """(tokens, in_channels) -> (tokens, these of the out_channels)"""
        bias = cast(Tensor, self.bias)
        return convolve(tokens, self.weight[channels], bias[channels])


class ProjectedPooling(Pooling):
    """A pooling whose heads sum projections of the tokens, of a width of their own."""

    own_fields = frozenset({"attention_head_size"})

    @classmethod
    def output_size(cls, config: DSAConfigFields, in_size: int) -> int:
        """m * d_o"""
        return config.num_attention_heads * config.attention_head_size


class DynamicSelfAttention(ProjectedPooling):
    """Dynamic self-attention with m heads: projection (Eq. 6), routing (Algorithm 1), concatenation (Eq. 7)."""

    description = "a weighted sum of its words. Dynamic self-attention gives the weights: it asks the sentence itself"
    own_fields = ProjectedPooling.own_fields | {"routing_iterations", "routing_scale"}
    is_routed = True
    takes_rectangle_packing = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        self.projection = HeadsProjection(in_size, self.output_size(config, in_size))
        self.heads, self.head_size = config.num_attention_heads, config.attention_head_size
        self.iterations = config.routing_iterations
        self.scale = config.routing_scale
        self.negative_slope = config.negative_slope

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, m * d_o) and the weights of every iteration, each (heads, N)."""
        # On a CPU head by head, as all heads' tokens are larger than its cache: three times as fast with 32 heads.
        together = 1 if tokens.device.type == "cpu" and not torch.compiler.is_compiling() else self.heads
        size = together * self.head_size
        parts = [
            self._attend(tokens, packing, slice(start, start + size))
            for start in range(0, self.heads * self.head_size, size)
        ]
        vectors = torch.cat([part for part, _ in parts], dim=1)  # (U, heads, d_o)
        attentions = [torch.cat(weights) for weights in zip(*(weights for _, weights in parts), strict=True)]
        return Pooled(vectors.flatten(1).to(tokens.dtype)[None], attentions, packing)

    def weight_vectors(self, tokens: Tensor, attentions: Sequence[Tensor], packing: Packing) -> list[Tensor]:
        """The vectors z_j of each iteration (Algorithm 1, line 6), of which the last are the sentence's.

        Args:
            tokens: What `forward` was given. (N, d_c)
            attentions: The weights that it gave. Each (heads, N)
            packing: What it was given.

        Returns:
            (U, heads, d_o) for each iteration.
        """
        values = self._project(tokens, slice(None))  # (heads, N, d_o)
        return [packing.weighted_sum(weights, values).tanh().transpose(0, 1) for weights in attentions]

    def _attend(self, tokens: Tensor, packing: Packing, channels: slice) -> tuple[Tensor, list[Tensor]]:
        """(N, d_c) -> vectors of the heads that have these channels, (U, heads, d_o), and their weights."""
        return dynamic_routing(self._project(tokens, channels), packing, self.iterations, self.scale)

    def _project(self, tokens: Tensor, channels: slice) -> Tensor:
        """x_hat_{j|i} of the heads that have these channels (Eq. 6). (N, d_c) -> (heads, N, d_o)"""

        def project(block: slice) -> Tensor:
            return F.leaky_relu(self.projection(tokens[block], channels), self.negative_slope)

        values = in_blocks(project, tokens)  # (N, heads * d_o)
        return at_least_float32(values.unflatten(1, (-1, self.head_size)).transpose(0, 1).contiguous())


class StaticSelfAttention(ProjectedPooling):
    """Self-attention with a learnt weight vector v (Eq. 1), the paper's baseline, over the same projected tokens.

    With m heads v is a weight matrix, as the text after Eq. 1 says, and each head sums its own d_o of the projection.
    """

    description = "a weighted sum of its words. Static self-attention gives the weights: it learns what to look for"
    own_fields = ProjectedPooling.own_fields | {"attention_hidden_size"}
    takes_rectangle_packing = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        size = self.output_size(config, in_size)
        self.projection = TokenConv1d(in_size, size)
        self.hidden = TokenConv1d(size, config.attention_hidden_size, bias=False)  # W
        self.score = nn.Linear(config.attention_hidden_size, config.num_attention_heads, bias=False)  # v
        self.heads = config.num_attention_heads
        self.negative_slope = config.negative_slope

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, m * d_o) and the weights, (m, N)."""
        values = F.leaky_relu(self.projection(tokens), self.negative_slope)  # (N, m * d_o)
        scores = self.score(torch.tanh(self.hidden(values))).t()  # (m, N)
        weights = packing.softmax(at_least_float32(scores))
        by_head = at_least_float32(values).unflatten(1, (self.heads, -1)).transpose(0, 1)  # (m, N, d_o)
        vectors = packing.weighted_sum(weights, by_head).transpose(0, 1).flatten(1)  # (U, m * d_o)
        return Pooled(vectors.to(tokens.dtype)[None], [weights], packing)


class MeanPooling(Pooling):
    """The mean of the tokens, which is attention with equal weights."""

    description = "the mean over its words"
    has_heads = False
    takes_rectangle_packing = True

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, d_c) and the weights, (1, N)."""
        weights = equal_weights(tokens, packing)
        return Pooled(sum_tokens(weights, tokens, packing)[None], [weights], packing)


def highest(tokens: Tensor, packing: Packing) -> Tensor:
    """The maximum of each channel over the tokens of a sentence; 0 without tokens. (N, d_c) -> (U, d_c)"""
    index = packing.sentence_of_token[:, None].expand_as(tokens)
    lowest = tokens.new_full((packing.lengths.shape[0], tokens.shape[1]), -torch.inf)
    return lowest.scatter_reduce(0, index, tokens, "amax").masked_fill(packing.lengths[:, None] == 0, 0.0)


class MaxPooling(Pooling):
    """The maximum of each channel over the tokens; a sentence without tokens gives 0.

    Its attention, which nothing learns from, is the share of the channels that each token decides.
    """

    description = "the maximum over its words"
    has_heads = False
    attention_is_extra = True
    takes_rectangle_packing = True

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, d_c) and the weights, (1, N)."""
        sentences = packing.sentence_of_token
        vectors = highest(tokens, packing)  # (U, d_c)
        decides = (tokens.detach() == vectors.detach().index_select(0, sentences)).float()  # (N, d_c)
        ties = decides.new_zeros(vectors.shape).index_add_(0, sentences, decides)  # (U, d_c)
        weights = (decides / ties.index_select(0, sentences)).mean(1)  # (N,)
        return Pooled(vectors[None], [weights[None]], packing)


class LastPooling(Pooling):
    """The last state of each direction of a BiLSTM: forwards at the last token, backwards at the first."""

    description = "the last states of the LSTM"
    has_heads = has_attention = False
    needs_states = True

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, 2u) -> vectors (1, U, 2u); there are no weights."""
        tokens = torch.cat([tokens, tokens.new_zeros(1, tokens.shape[1])])  # 0 for the sentences without tokens
        empty = packing.lengths == 0
        first = packing.offsets.masked_fill(empty, tokens.shape[0] - 1)
        last = (packing.offsets + packing.lengths - 1).masked_fill(empty, tokens.shape[0] - 1)
        forwards, backwards = tokens.chunk(2, dim=1)  # (N + 1, u)
        return Pooled(torch.cat([forwards[last], backwards[first]], dim=1)[None], [], packing)


class StructuredSelfAttention(Pooling):
    """Self-attention with r hops over the encoded tokens: Lin et al., "A Structured Self-attentive Sentence Embedding".

    A = softmax(W_s2 tanh(W_s1 H^T)), M = A H, flattened; the penalty ||A A^T - I||_F^2 keeps the hops apart.
    """

    description = (
        "made of weighted sums of its words. Structured self-attention gives the weights and keeps the sums apart"
    )
    own_fields = frozenset({"attention_hidden_size", "attention_penalty"})
    takes_rectangle_packing = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        self.hidden = TokenConv1d(in_size, config.attention_hidden_size, bias=False)  # W_s1
        self.score = nn.Linear(config.attention_hidden_size, config.num_attention_heads, bias=False)  # W_s2

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, r * d_c), the weights, (r, N), and the penalty."""
        scores = self.score(torch.tanh(self.hidden(tokens))).t()  # (r, N)
        weights = packing.softmax(at_least_float32(scores))
        vectors = sum_tokens(weights, tokens, packing)  # (U, r * d_c)
        overlaps = packing.weighted_sum(weights, weights.t())  # (r, U, r) A A^T
        identity = torch.eye(weights.shape[0], dtype=overlaps.dtype, device=overlaps.device)[:, None]
        return Pooled(vectors[None], [weights], packing, penalty=(overlaps - identity).square().sum((0, 2)))


class InnerAttention(Pooling):
    """Self-attention that asks with the sentence's own mean: Liu et al., "Learning Natural Language Inference using
    Bidirectional LSTM Model and Inner-Attention" (2016), Section 2.1.

    M = tanh(W^y Y + W^h R_ave (x) e_L), alpha = softmax(w^T M), R_att = Y alpha^T, where R_ave is the mean of the
    states Y. With m heads w is a matrix, and the vector is the concatenation of m sums.
    """

    description = (
        "a weighted sum of its words. Inner-attention gives the weights: it compares each word with their mean"
    )
    own_fields = frozenset({"attention_hidden_size"})
    takes_rectangle_packing = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        width = config.attention_hidden_size
        self.hidden = TokenConv1d(in_size, width, bias=False)  # W^y
        self.query = nn.Linear(in_size, width, bias=False)  # W^h
        self.score = nn.Linear(width, config.num_attention_heads, bias=False)  # w

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, m * d_c) and the weights, (m, N)."""
        queries = self.query(sum_tokens(equal_weights(tokens, packing), tokens, packing))  # (U, width)
        queries = queries.index_select(0, packing.sentence_of_token)  # (N, width)
        scores = self.score(torch.tanh(self.hidden(tokens) + queries)).t()  # (m, N)
        weights = packing.softmax(at_least_float32(scores))
        return Pooled(sum_tokens(weights, tokens, packing)[None], [weights], packing)


class MultiDimensionalPooling(Pooling):
    """Multi-dimensional source2token self-attention: Shen et al., DiSAN (2017), Eq. 9 and 12.

    f(x_i) = W^T ELU(W^1 x_i + b^1) + b has a softmax over the tokens for every channel, s = sum_i P_i * x_i. Its
    attention is the mean over the channels.
    """

    description = "a weighted sum of its words, with weights for every channel from multi-dimensional self-attention"
    own_fields = frozenset({"hidden_dropout"})
    has_heads = False
    attention_is_extra = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        self.hidden = DropoutLinear(config, in_size, in_size)  # W^1 and b^1
        self.score = DropoutLinear(config, in_size, in_size)  # W and b

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, d_c) and the mean weights, (1, N)."""
        scores = self.score(F.elu(self.hidden(tokens)))  # (N, d_c)
        weights = packing.softmax(at_least_float32(scores).t()).t()  # (N, d_c)
        vectors = weights.new_zeros(packing.lengths.shape[0], tokens.shape[1])
        vectors = vectors.index_add(0, packing.sentence_of_token, weights * tokens)  # (U, d_c)
        return Pooled(vectors.to(tokens.dtype)[None], [weights.mean(1)[None]], packing)


class MultiDimensionalMaxPooling(MultiDimensionalPooling):
    """[source2token; maximum]: the sum under multi-dimensional weights beside the maximum (Im and Cho 2017)."""

    description = (
        "a weighted sum of its words, with weights for every channel from multi-dimensional self-attention, beside "
        "their maximum"
    )

    @classmethod
    def output_size(cls, config: DSAConfigFields, in_size: int) -> int:
        """2 * d_c"""
        return 2 * in_size

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, 2 * d_c) and the mean weights, (1, N)."""
        pooled = super().forward(tokens, packing)
        pooled.vectors = torch.cat([pooled.vectors, highest(tokens, packing)[None]], dim=2)
        return pooled


class ReinforcedPooling(MultiDimensionalPooling):
    """ReSAN: reinforced self-attention with d_o / 2 channels in each direction, and the sum of its tokens under
    multi-dimensional weights (Shen et al. 2018).

    In training with labels the samplers draw, and are rewarded; otherwise what they would rather choose is chosen.
    """

    description = (
        "a weighted sum of its words, with weights for every channel from multi-dimensional self-attention. Before it, "
        "hard attention chooses which words take notice of which (reinforced self-attention)"
    )
    own_fields = MultiDimensionalPooling.own_fields | {
        "attention_head_size",
        "attention_hidden_size",
        "soft_attention_steps",
        "choice_penalty",
    }
    learns_from_classes = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, config.attention_head_size)
        self.attention = ReinforcedSelfAttention(config, in_size, config.attention_head_size)

    @classmethod
    def output_size(cls, config: DSAConfigFields, in_size: int) -> int:
        """d_o"""
        return config.attention_head_size

    @classmethod
    def validate(cls, config: DSAConfigFields, encoder: type[Encoder]) -> None:
        """Both directions are equally wide, and a class is what a reward can come from."""
        super().validate(config, encoder)
        if config.attention_head_size % 2:
            raise ValueError(
                f"attention_head_size is both directions of pooling '{config.pooling}' and even, got "
                f"{config.attention_head_size}."
            )
        refuse_other_labels(config, f"pooling '{config.pooling}' is rewarded for the class of each example")

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, d_o), the mean weights, (1, N), and in training what was chosen."""
        draws = self.training and classes is not None
        tokens, log_probability, share = self.attention(tokens, packing, draws)
        pooled = super().forward(tokens, packing)
        if draws:
            pooled.choice_log_probability, pooled.chosen_share = log_probability, share
        return pooled


POOLINGS: dict[str, type[Pooling]] = {
    "mean": MeanPooling,
    "max": MaxPooling,
    "last": LastPooling,
    "static": StaticSelfAttention,
    "structured": StructuredSelfAttention,
    "inner": InnerAttention,
    "multi_dimensional": MultiDimensionalPooling,
    "multi_dimensional_max": MultiDimensionalMaxPooling,
    "reinforced": ReinforcedPooling,
    "gumbel_tree": GumbelTreeLSTM,
    "dynamic": DynamicSelfAttention,
    "pairwise": PairwisePooling,
    "variational": VariationalSelfAttention,
}
