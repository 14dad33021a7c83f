"""Encoders and poolings as an ONNX file computes them: the same weights and results, by what onnxruntime runs fast.

Each takes the place of one of a class in a model that is exported, and reads its weights. They do not return
what lies between.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modeling_dsa.encoders_dsa import BiLSTM, DenseCNN, KimCNN, ResidualBiLSTM
from modeling_dsa.overlap_dsa import TokenOverlap
from modeling_dsa.packing_dsa import Packing
from modeling_dsa.pooled_dsa import Pooled
from modeling_dsa.poolings_dsa import DynamicSelfAttention
from modeling_dsa.systems_dsa import Encoder, Pooling

from .packing import NEVER, RectanglePacking


class _WindowLayer(nn.Module):
    """A [`ConvLayer`] in prediction, as one matrix product over the windows of all tokens."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.kernel: int = layer.kernel_size[0]
        self.weight = nn.Parameter(layer.weight.detach().transpose(1, 2).flatten(1))  # (out_channels, k * in_channels)
        self.bias = layer.bias
        self.negative_slope: float = layer.negative_slope

    def forward(self, tokens: Tensor, windows: dict[int, Tensor]) -> Tensor:
        """(tokens, in_channels) -> (tokens, out_channels)"""
        if self.kernel > 1:
            outside = tokens.new_zeros(1, tokens.shape[1])
            tokens = F.embedding(windows[self.kernel], torch.cat([tokens, outside])).flatten(1)  # (tokens, k * width)
        return F.leaky_relu(F.linear(tokens, self.weight, self.bias), self.negative_slope)


def _windows(packing: Packing, kernels: set[int]) -> dict[int, Tensor]:
    """The tokens that each token's window of each size sees; what is outside its sentence is number N. (N, k)"""
    sentences, largest = packing.sentence_of_token, max(kernels, default=1)  # (N,)
    reach = largest // 2
    beyond = sentences.new_full((reach, 1), -1)
    around = torch.cat([beyond, sentences[:, None], beyond])  # (N + 2 * reach, 1)
    number = torch.arange(sentences.shape[0])[:, None]  # (N, 1)
    positions = torch.arange(largest)
    is_inside = F.embedding(number + positions, around)[:, :, 0] == sentences[:, None]  # (N, largest)
    windows = torch.where(is_inside, number + (positions - reach), sentences.shape[0])
    return {kernel: windows[:, reach - kernel // 2 :][:, :kernel] for kernel in kernels}


class WindowDenseCNN(nn.Module):
    """[`DenseCNN`] in prediction, without gaps between the sentences.

    The compression is a sum of products, two for each branch (its first layer, its dense layers) and one for the token
    vectors: in int8 each has a scale of its own. With one for all, most of what int8 costs in accuracy is lost here.
    """

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.ModuleList(_WindowLayer(layer) for layer in (branch.first, *branch.layers))
            for branch in encoder.branches
        )
        weight = encoder.compression.weight.detach()[:, :, 0]  # (d_c, inputs)
        widths = [
            (branch.first.out_channels, branch.output_size - branch.first.out_channels) for branch in encoder.branches
        ]
        sizes = [size for pair in widths for size in pair]
        parts = weight.split([*sizes, weight.shape[1] - sum(sizes)], dim=1)
        self.compression = nn.ParameterList(part.contiguous() for part in parts)
        self.bias = encoder.compression.bias
        self.negative_slope: float = encoder.compression.negative_slope

    def forward(self, tokens: Tensor, packing: Packing, *_: Any) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c)"""
        branches = [cast(list[_WindowLayer], branch) for branch in self.branches]
        windows = _windows(packing, {layer.kernel for layers in branches for layer in layers} - {1})
        features = [[first(tokens, windows)] for first, *_ in branches]
        # What depends on one token alone comes first: `quantization` looks it up.
        encoded = F.linear(tokens, self.compression[-1], self.bias)  # (N, d_c)
        for number, (of_first,) in enumerate(features):
            encoded = encoded + F.linear(of_first, self.compression[2 * number])
        for number, (_first, *layers) in enumerate(branches):
            for layer in layers:
                features[number].append(layer(torch.cat(features[number], dim=1), windows))
            encoded = encoded + F.linear(torch.cat(features[number][1:], dim=1), self.compression[2 * number + 1])
        return F.leaky_relu(encoded, self.negative_slope), []


class WindowKimCNN(nn.Module):
    """[`KimCNN`] in prediction."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_WindowLayer(layer) for layer in encoder.convolutions)

    def forward(self, tokens: Tensor, packing: Packing, *_: Any) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c)"""
        layers = cast(list[_WindowLayer], self.layers)
        windows = _windows(packing, {layer.kernel for layer in layers} - {1})
        return torch.cat([layer(tokens, windows) for layer in layers], dim=1), []


class OnnxBiLSTM(nn.Module):
    """[`BiLSTM`] or [`ResidualBiLSTM`] in prediction, by ONNX's own operator: torch.export would unroll an LSTM."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.units: int = encoder.forwards[0].hidden_size
        self.layer_input = encoder.layer_input
        self.layers = nn.ModuleList()
        for pair in zip(encoder.forwards, encoder.backwards, strict=True):
            parts = [  # torch orders the gates i, f, c, o, and ONNX i, o, f, c
                [torch.cat([part.chunk(4)[gate] for gate in (0, 3, 1, 2)]) for part in lstm.parameters()]
                for lstm in pair
            ]
            inputs, states, *biases = (torch.stack(both) for both in zip(*parts, strict=True))
            self.layers.append(nn.ParameterList([inputs, states, torch.cat(biases, dim=1)]))

    def forward(self, tokens: Tensor, packing: Packing, *_: Any) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c)"""
        rectangles = packing.rectangles()
        index, inside = rectangles[0]  # (sentences, tokens)
        lengths = inside.sum(1).to(torch.int32)
        found: list[Tensor] = []
        for weights in self.layers:
            images = F.embedding(index.t(), self.layer_input(tokens, found))  # (tokens, sentences, width)
            length, sentences = images.shape[:2]
            (states,) = torch.onnx.ops.symbolic_multi_out(
                "LSTM",
                (images, *cast(nn.ParameterList, weights), lengths),
                {"hidden_size": self.units, "direction": "bidirectional"},
                dtypes=(torch.float32,),
                shapes=((length, 2, sentences, self.units),),
            )
            states = states.permute(2, 0, 1, 3).flatten(2)  # (sentences, tokens, 2u)
            found.append(packing.pack_rectangles(rectangles, [states]))
        return found[-1], []


class RectangleDynamicSelfAttention(nn.Module):
    """[`DynamicSelfAttention`] in prediction: routing of all heads and sentences as three products of rectangles."""

    def __init__(self, pooling: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(pooling.projection.weight.detach()[:, :, 0])  # (m * d_o, d_c)
        self.bias = pooling.projection.bias
        self.iterations: int = pooling.iterations
        self.scale: float = pooling.scale
        self.negative_slope: float = pooling.negative_slope
        # Which channels are a head's: products over all channels cost less here than a transposition by heads.
        own = torch.eye(pooling.heads).repeat_interleave(pooling.head_size, dim=1)
        self.own = nn.Parameter(own, requires_grad=False)  # (m, m * d_o)

    def forward(self, tokens: Tensor, packing: RectanglePacking, *_: Any) -> Pooled:
        """(N, d_c) -> vectors (1, U, m * d_o), and the last weights as rectangles, (U, heads, longest)."""
        shape = packing.inside.shape  # (U, longest)
        values = F.linear(packing.lay_out(tokens).flatten(0, 1), self.weight, self.bias)
        values = F.leaky_relu(values, self.negative_slope).unflatten(0, shape)  # (U, longest, m * d_o)
        inside = packing.inside[:, None].to(values.dtype)
        # At first all heads alike. A sentence without tokens has the sum 0.
        weights = inside / packing.lengths.clamp(min=1).to(values.dtype)[:, None, None]  # (U, 1, longest)
        vectors = (weights @ values)[:, 0].tanh()  # (U, m * d_o)
        logits = (inside - 1) * -NEVER  # (U, 1, longest)
        for _iteration in range(self.iterations - 1):
            logits = logits + (self.own * self.scale * vectors[:, None]) @ values.transpose(1, 2)  # (U, m, longest)
            weights = logits.softmax(2) * inside  # (U, m, longest)
            vectors = ((weights @ values) * self.own).sum(1).tanh()
        if self.iterations == 1:
            weights = weights.expand(-1, len(self.own), -1)
        return Pooled(vectors[None], [weights], packing)


class RectangleWordShortcut(nn.Module):
    """[`WordShortcut`]: its softmax and sum as one product of rectangles."""

    def __init__(self, shortcut: Any) -> None:
        super().__init__()
        self.score = nn.Parameter(shortcut.score.detach()[None])  # (1, d_0)
        self.projection: nn.Linear = shortcut.projection

    def forward(self, tokens: Tensor, packing: RectanglePacking) -> tuple[Tensor, Tensor]:
        """Word vectors (N, d_0) -> what is added, (U, out_size), and the weights as rectangles, (U, 1, longest)."""
        scores = packing.lay_out(F.linear(tokens, self.score)).transpose(1, 2)  # (U, 1, longest)
        weights = scores.masked_fill(~packing.inside[:, None], NEVER).softmax(2)
        return self.projection((weights @ packing.lay_out(tokens))[:, 0]), weights


class LookedUpTokenOverlap(TokenOverlap):
    """[`TokenOverlap`] in prediction, with the weight of each row of the word table at hand."""

    def __init__(self, overlap: Any, words: nn.Embedding) -> None:
        """Of a model with this word table."""
        super().__init__(words.embedding_dim)
        with torch.no_grad():
            weights = overlap._weigh(torch.arange(words.num_embeddings), words)
        self.table = nn.Parameter(weights)  # w (vocab_size,)

    def _weigh(self, ids: Tensor, _words: Callable[[Tensor], Tensor]) -> Tensor:
        return self.table[ids]


# A class that is not here is exported as it is.
ONNX_ENCODERS: dict[type[Encoder], type[nn.Module]] = {
    DenseCNN: WindowDenseCNN,
    KimCNN: WindowKimCNN,
    BiLSTM: OnnxBiLSTM,
    ResidualBiLSTM: OnnxBiLSTM,
}
# These are for a `RectanglePacking` alone.
ONNX_POOLINGS: dict[type[Pooling], type[nn.Module]] = {DynamicSelfAttention: RectangleDynamicSelfAttention}
