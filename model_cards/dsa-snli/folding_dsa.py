"""The dense CNN for prediction: all that depends on one token alone is looked up, not computed.

A token's first layer in each branch is a function of the token, so what the first layer sends to every later one is a
table with a row for each token and each index in the kernel. Half of the multiplications of single DSA become look-ups.
"""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .convolution_dsa import convolve, in_blocks, padded_count
from .encoders_dsa import DenseBranch, DenseCNN
from .layers_dsa import ConvLayer
from .packing_dsa import Packing


class FoldedWeights:
    """The parameters of a module as they were when its tables were made.

    What changes a tensor in place, such as an optimizer, counts its version up, unless it goes by `.data`. A copy has
    counts of its own.
    """

    def __init__(self, module: nn.Module) -> None:
        self._weights = list(module.parameters())
        self._versions = self._count()

    def have_changed(self) -> bool:
        """Whether one of them was changed in place since."""
        return self._versions != self._count()

    def _count(self) -> list[int]:
        return [0 if weight.is_inference() else weight._version for weight in self._weights]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._weights = state["_weights"]
        self._versions = self._count()


class FoldedBranch(nn.Module):
    """Phi_k with its first layer, and what that sends to the L layers behind it, as a table."""

    table: Tensor

    def __init__(self, first: Tensor, weights: list[Tensor], biases: list[Tensor], negative_slope: float) -> None:
        """Fold a branch.

        Args:
            first: What the first layer makes of each token of the vocabulary. (V, d_1)
            weights: Of the dense layers, first to last, each (d_l, its inputs, k).
            biases: Of the dense layers, each (d_l,).
            negative_slope: Of the LeakyReLU.
        """
        super().__init__()
        width, self.growth, self.kernel = first.shape[1], weights[0].shape[0], weights[0].shape[2]
        self.negative_slope = negative_slope
        from_first = torch.cat([weight[:, :width] for weight in weights])  # (L * d_l, d_1, k)
        table = torch.einsum("vi,oik->vko", first, from_first)  # (V, k, L * d_l)
        table[:, self.kernel // 2] += torch.cat(biases)
        outside = table.new_zeros(1, *table.shape[1:])  # what a window meets beyond a sentence's ends
        self.register_buffer("table", torch.cat([table, outside]).flatten(0, 1), persistent=False)
        # Of each dense layer those of all that follow it, side by side.
        for source in range(len(weights) - 1):
            start = width + source * self.growth
            dense_weights = torch.cat([weight[:, start : start + self.growth] for weight in weights[source + 1 :]])
            self.register_buffer(f"dense_weights_{source}", dense_weights, persistent=False)  # (later * d_l, d_l, k)

    def forward(self, ids: Tensor, inside: Tensor) -> Tensor:
        """The dense layers, (gapped tokens, L * d_l).

        Args:
            ids: Of the gapped tokens: V between sentences, and k // 2 times more at both ends.
            inside: 1 for a token, 0 for a gap. (gapped tokens, 1)
        """
        windows = ids.unfold(0, self.kernel, 1)  # (gapped tokens, k)
        positions = torch.arange(self.kernel, device=ids.device)
        # Pre-activations of the layers not yet run.
        pending = F.embedding_bag(windows * self.kernel + positions, self.table, mode="sum")  # (gapped tokens, L * d_l)
        layers = []
        while True:
            layers.append(F.leaky_relu(pending[:, : self.growth], self.negative_slope) * inside)
            if pending.shape[1] == self.growth:
                return torch.cat(layers, dim=1)
            dense_weights = self.get_buffer(f"dense_weights_{len(layers) - 1}")
            pending = pending[:, self.growth :] + convolve(layers[-1], dense_weights)


class FoldedDenseCNN(nn.Module):
    """[`DenseCNN`] over a fixed word table, equal to it in prediction up to rounding.

    It holds (sum of k * L * d_l over the branches) + d_c numbers for each token of the vocabulary: 2,700 in single DSA.
    """

    token_table: Tensor
    compression: Tensor

    @torch.no_grad()
    def __init__(self, encoder: DenseCNN, table: Tensor, made_of: FoldedWeights) -> None:
        """Fold an encoder over the word table (V, d_0), both made of these weights."""
        super().__init__()
        self.made_of = made_of
        self.outside, self.gap, self.reach = table.shape[0], encoder.gap, encoder.reach
        self.negative_slope = encoder.compression.negative_slope
        weight = encoder.compression.weight[:, :, 0]  # (d_c, inputs)
        branches, of_layers, start = [], [], 0
        token_table = F.linear(table, weight[:, -table.shape[1] :], encoder.compression.bias)  # (V, d_c)
        for branch in cast(list[DenseBranch], encoder.branches):
            first = F.leaky_relu(F.linear(table, branch.first.weight[:, :, 0], branch.first.bias), self.negative_slope)
            layers = cast(list[ConvLayer], branch.layers)
            weights, biases = [layer.weight for layer in layers], [cast(Tensor, layer.bias) for layer in layers]
            branches.append(FoldedBranch(first, weights, biases, self.negative_slope))
            token_table += F.linear(first, weight[:, start : start + first.shape[1]])
            of_layers.append(weight[:, start + first.shape[1] : start + branch.output_size])
            start += branch.output_size
        self.branches = nn.ModuleList(branches)
        self.register_buffer("token_table", token_table, persistent=False)
        compression = torch.cat(of_layers, dim=1)[:, :, None]  # (d_c, branches * L * d_l, 1)
        self.register_buffer("compression", compression, persistent=False)

    def forward(self, ids: Tensor, packing: Packing) -> Tensor:
        """Ids of packed tokens (N,) -> X^c (N, d_c)"""

        def encode(block: slice) -> Tensor:
            return self._encode(ids[block], *packing.gapped_indices(self.gap, block))

        return in_blocks(encode, ids, self.reach)

    def _encode(self, ids: Tensor, indices: Tensor, count: int) -> Tensor:
        """(N,), their indices among the gaps (N,), and the number of tokens with the gaps -> (N, d_c)"""
        count = padded_count(max(count, 1))
        gapped = ids.new_full((count + 2 * self.gap,), self.outside).index_copy_(0, indices + self.gap, ids)
        inside = self.token_table.new_zeros(count, 1).index_fill_(0, indices, 1.0)  # (gapped tokens, 1)
        layers = []
        for branch in cast(list[FoldedBranch], self.branches):
            margin = self.gap - branch.kernel // 2
            layers.append(branch(gapped[margin : gapped.shape[0] - margin], inside))
        encoded = convolve(torch.cat(layers, dim=1).index_select(0, indices), self.compression)
        return F.leaky_relu(encoded + self.token_table.index_select(0, ids), self.negative_slope)
