"""Encoders as an ONNX file computes them: the same weights and results, in operators that onnxruntime runs fast.

Each takes the place of the encoder of its name in a model that is exported, and reads its weights. They do not return
what lies between.
"""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modeling_dsa.packing_dsa import Packing


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
        seen = F.embedding(windows[self.kernel], tokens).flatten(1) if self.kernel > 1 else tokens
        return F.leaky_relu(F.linear(seen, self.weight, self.bias), self.negative_slope)


def _windows(packing: Packing, kernels: set[int]) -> dict[int, Tensor]:
    """The tokens that each token's window of each size sees; what is outside its sentence is number N. (N + 1, k)"""
    sentences = F.pad(packing.sentence_of_token, (0, 1), value=-1)  # (N + 1,)
    last = packing.sentence_of_token.shape[0]
    windows = {}
    for kernel in kernels:
        indices = torch.arange(last + 1)[:, None] + torch.arange(kernel) - kernel // 2
        inside = indices.clamp(0, last)
        is_outside = (indices < 0) | (sentences[inside] != sentences[:, None])
        windows[kernel] = torch.where(is_outside, last, inside)
    return windows


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
        padded = F.pad(tokens, (0, 0, 0, 1))  # (N + 1, d_0) the last is what stands outside a sentence
        inside = F.pad(torch.ones_like(tokens[:, :1]), (0, 0, 0, 1))  # (N + 1, 1)
        encoded = F.linear(tokens, self.compression[-1], self.bias)  # (N, d_c)
        for number, (first, *layers) in enumerate(branches):
            features = [first(padded, windows) * inside]
            for layer in layers:
                features.append(layer(torch.cat(features, dim=1), windows) * inside)
            of_layers = torch.cat(features[1:], dim=1)
            encoded = encoded + F.linear(features[0][:-1], self.compression[2 * number])
            encoded = encoded + F.linear(of_layers[:-1], self.compression[2 * number + 1])
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
        padded = F.pad(tokens, (0, 0, 0, 1))  # (N + 1, d_0)
        return torch.cat([layer(padded, windows) for layer in layers], dim=1)[:-1], []


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


ONNX_ENCODERS: dict[str, type[nn.Module]] = {
    "dense_cnn": WindowDenseCNN,
    "kim_cnn": WindowKimCNN,
    "bilstm": OnnxBiLSTM,
    "residual_bilstm": OnnxBiLSTM,
}
