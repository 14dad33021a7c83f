"""Encoders: packed word vectors in, packed encoded words out. `ENCODERS` maps `config.encoder` to its class."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_dsa import DSAConfig
from .packing_dsa import Packing
from .rows_dsa import RowConv1d, dropout, padded_count


class ConvLayer(RowConv1d):
    """The composite function h: convolution, dropout, LeakyReLU (Section 3.1). Rows outside a sentence stay 0."""

    def __init__(self, config: DSAConfig, in_channels: int, out_channels: int, kernel_size: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size)
        self.dropout_rate = config.hidden_dropout
        self.negative_slope = config.negative_slope

    def forward(self, rows: Tensor, inside: Tensor) -> Tensor:
        """(rows, in_channels), (rows, 1) -> (rows, out_channels)"""
        rows = dropout(super().forward(rows), self.dropout_rate, self.training)
        return F.leaky_relu(rows, self.negative_slope) * inside.to(rows.dtype)


class DenseBranch(nn.Module):
    """Phi_k: layers with kernel k, each reading all layers of the branch before it (Eq. 2 to 4)."""

    def __init__(self, config: DSAConfig, kernel_size: int) -> None:
        super().__init__()
        width = config.first_layer_size
        self.first = ConvLayer(config, config.embedding_size, width)
        self.layers = nn.ModuleList()
        for _ in range(config.num_hidden_layers):
            self.layers.append(ConvLayer(config, width, config.growth_size, kernel_size))
            width += config.growth_size
        self.output_size = width

    def forward(self, words: Tensor, inside: Tensor) -> Tensor:
        """(rows, d_0), (rows, 1) -> (rows, d_1 + L * d_l)"""
        features = self.first(words, inside)
        for layer in self.layers:
            features = torch.cat([features, layer(features, inside)], dim=1)
        return features


class DenseCNN(nn.Module):
    """CNN with dense connection: one branch for each kernel size, then a compression to d_c (Section 3.1)."""

    def __init__(self, config: DSAConfig) -> None:
        super().__init__()
        self.branches = nn.ModuleList(DenseBranch(config, size) for size in config.kernel_sizes)
        width = sum(branch.output_size for branch in self.branches) + config.embedding_size
        self.compression = ConvLayer(config, width, config.hidden_size)
        self.gap = max(config.kernel_sizes) // 2
        self.normalize = config.normalize_words
        self.word_norm = config.word_norm

    def forward(self, words: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """Encode packed words.

        Args:
            words: X^0, (N, d_0).
            packing: Which words make a sentence; no layer sees across two.
            output_hidden_states: Also return what lies between X^0 and X^c.

        Returns:
            X^c, (N, d_c), and when asked Phi_k(X^0) of each branch, (N, d_1 + L * d_l).
        """
        places, total = packing.gapped_rows(self.gap)
        rows = words.new_zeros(padded_count(total), words.shape[1]).index_copy(0, places, words)  # (rows, d_0)
        inside = words.new_zeros(rows.shape[0], 1).index_fill(0, places, 1.0)  # (rows, 1)
        branches = [branch(rows, inside) for branch in self.branches]
        encoded = self.compression(torch.cat([*branches, rows], dim=1), inside)
        encoded = encoded.index_select(0, places)  # (N, d_c)
        if self.normalize:
            encoded = F.normalize(encoded, dim=-1) * self.word_norm
        return encoded, [branch.index_select(0, places) for branch in branches] if output_hidden_states else []


ENCODERS: dict[str, type[nn.Module]] = {"dense_cnn": DenseCNN}
