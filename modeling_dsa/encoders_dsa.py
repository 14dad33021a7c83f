"""Encoders: packed word vectors in, packed encoded tokens out. `ENCODERS` maps `config.encoder` to its class."""

import itertools

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from .config_fields_dsa import DSAConfigFields
from .convolution_dsa import in_blocks
from .directional_dsa import DirectionalEncoder, DistanceEncoder
from .layers_dsa import ConvLayer, dropout
from .packing_dsa import Packing
from .pairwise_dsa import PairwiseSelfAttention
from .systems_dsa import Encoder, refuse_odd_size
from .windows_dsa import Windows, keep_apart


class DenseBranch(GradientCheckpointingLayer):
    """Phi_k: layers with kernel k, each reading all layers of the branch before it (Eq. 2 to 4)."""

    def __init__(self, config: DSAConfigFields, kernel_size: int) -> None:
        super().__init__()
        width = config.first_layer_size
        self.first = ConvLayer(config, config.embedding_size, width)
        self.layers = nn.ModuleList()
        for _ in range(config.num_hidden_layers):
            self.layers.append(ConvLayer(config, width, config.growth_size, kernel_size))
            width += config.growth_size
        self.output_size = width

    def forward(self, tokens: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
        """All layers but the last, and the last, which no other reads.

        (T, d_0), as `windows` lay them out -> (T, d_1 + (L - 1) * d_l), (T, d_l)
        """
        features: Tensor = self.first(tokens, windows)
        *before, last = self.layers
        for layer in before:
            features = torch.cat([features, layer(features, windows)], dim=1)
        return features, last(features, windows)


class DenseCNN(Encoder):
    """CNN with dense connection: one branch for each kernel size, then a compression to d_c (Section 3.1)."""

    description = "two densely connected branches of convolutions"
    own_fields = Encoder.own_fields | {"kernel_sizes", "first_layer_size", "growth_size"}
    can_fold = True
    takes_rectangle_packing = True

    def __init__(self, config: DSAConfigFields) -> None:
        super().__init__(config)
        branches = [DenseBranch(config, size) for size in config.kernel_sizes]
        self.branches = nn.ModuleList(branches)
        width = sum(branch.output_size for branch in branches) + config.embedding_size
        self.compression = ConvLayer(config, width, config.hidden_size)
        self.gap = max(config.kernel_sizes) // 2
        self.reach = config.num_hidden_layers * self.gap

    @classmethod
    def validate(cls, config: DSAConfigFields) -> None:
        """Only an odd kernel has a middle."""
        kernels = list(config.kernel_sizes)
        if not (kernels and all(size >= 1 and size % 2 == 1 for size in kernels)):
            raise ValueError(f"kernel_sizes must be one or more odd numbers, got {kernels}.")

    def forward(self, tokens: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """X^0 (N, d_0) -> X^c (N, d_c) and, when asked, Phi_k(X^0) of each branch, (N, d_1 + L * d_l)."""
        if output_hidden_states or self.training:  # dropout draws for all tokens at once, with gradients and without
            return self._encode(tokens, keep_apart(packing, self.gap, tokens, self.training), output_hidden_states)

        def encode(block: slice) -> Tensor:
            return self._encode(tokens[block], keep_apart(packing, self.gap, tokens, self.training, block))[0]

        return in_blocks(encode, tokens, self.reach), []

    def _encode(
        self, tokens: Tensor, windows: Windows, output_hidden_states: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c) and, when asked, (N, d_1 + L * d_l) of each branch"""
        spread = windows.spread(tokens)  # (T, d_0)
        branches = [branch(spread, windows) for branch in self.branches]
        encoded = windows.collect(self.compression(torch.cat([*itertools.chain(*branches), spread], dim=1)))  # (N, d_c)
        if not output_hidden_states:
            return encoded, []
        return encoded, [windows.collect(torch.cat(branch, dim=1)) for branch in branches]


class NoEncoder(GradientCheckpointingLayer, Encoder):
    """Word vectors as they are."""

    description = "its word vector alone"
    own_fields = frozenset()
    takes_rectangle_packing = True

    @classmethod
    def output_size(cls, config: DSAConfigFields) -> int:
        """Width of a word vector [d_0]."""
        return config.embedding_size

    def forward(self, tokens: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> the same."""
        return tokens, []


class KimCNN(GradientCheckpointingLayer, Encoder):
    """Convolutions of several widths side by side: Kim, "Convolutional Neural Networks for Sentence Classification".

    Each kernel size has d_c / kernels feature maps. The paper pads a sentence where its filters need it; here 'same'
    padding gives each token its window, so that any pooling can follow. The paper's own is the maximum over time.
    """

    description = "convolutions of several widths (Kim's CNN)"
    own_fields = frozenset({"hidden_size", "hidden_dropout", "kernel_sizes"})
    takes_rectangle_packing = True

    def __init__(self, config: DSAConfigFields) -> None:
        super().__init__(config)
        maps = config.hidden_size // len(config.kernel_sizes)
        self.convolutions = nn.ModuleList(
            ConvLayer(config, config.embedding_size, maps, size) for size in config.kernel_sizes
        )
        self.gap = max(config.kernel_sizes) // 2

    @classmethod
    def validate(cls, config: DSAConfigFields) -> None:
        """The kernels share the feature maps."""
        kernels = list(config.kernel_sizes)
        if not (kernels and all(size >= 1 for size in kernels)):
            raise ValueError(f"kernel_sizes must be one or more numbers from 1, got {kernels}.")
        if config.hidden_size % len(kernels):
            raise ValueError(
                f"hidden_size is shared out over the {len(kernels)} kernel_sizes of encoder 'kim_cnn', and "
                f"{config.hidden_size} cannot be."
            )

    def forward(self, tokens: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c)"""
        windows = keep_apart(packing, self.gap, tokens, self.training)
        spread = windows.spread(tokens)  # (T, d_0)
        maps = [convolution(spread, windows) for convolution in self.convolutions]
        return windows.collect(torch.cat(maps, dim=1)), []


class BiLSTM(GradientCheckpointingLayer, Encoder):
    """A bidirectional LSTM with u = d_c / 2 units each way.

    Each direction reads its sentences from their own first (or last) token, in rectangles of similar lengths: what
    follows a sentence there comes too late to change it, and on a CPU this is up to ten times as fast as a
    `PackedSequence`.
    """

    description = "a bidirectional LSTM"
    has_states = True

    def __init__(self, config: DSAConfigFields) -> None:
        super().__init__(config)
        sizes = [config.embedding_size] + [self.later_input_size(config)] * (config.num_hidden_layers - 1)
        units = config.hidden_size // 2
        self.forwards = nn.ModuleList(nn.LSTM(size, units) for size in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(size, units) for size in sizes)
        self.dropout_rate = config.hidden_dropout

    @classmethod
    def validate(cls, config: DSAConfigFields) -> None:
        """Both directions are equally wide."""
        refuse_odd_size(config)

    @staticmethod
    def later_input_size(config: DSAConfigFields) -> int:
        """Width of what every layer but the first reads."""
        return config.hidden_size

    @staticmethod
    def layer_input(words: Tensor, states: list[Tensor]) -> Tensor:
        """What a layer reads: the states of the layer below it or, the first, the word vectors.

        (N, d_0) and, of each layer below, (N, d_c) -> (N, width)
        """
        return states[-1] if states else words

    def forward(self, tokens: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c) and, when asked, the tokens after each layer but the last."""
        if torch.compiler.is_exporting() and type(packing.batch_shape[1]) is not int:
            raise ValueError(
                "torch.export unrolls an LSTM, so a recurrent encoder is exported for one number of tokens: leave that "
                "dimension static."
            )
        rectangles = packing.rectangles()
        last_of_sentence = (packing.offsets + packing.lengths - 1).index_select(0, packing.sentence_of_token)
        mirrored = last_of_sentence - packing.positions  # (N,) the token's index when its sentence is read backwards
        states: list[Tensor] = []
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            seen = self.layer_input(tokens, states)  # (N, width)
            there = _run_lstm(forwards, seen, packing, rectangles)  # (N, u)
            back = _run_lstm(backwards, seen.index_select(0, mirrored), packing, rectangles).index_select(0, mirrored)
            states.append(dropout(torch.cat([there, back], dim=1), self.dropout_rate, self.training))  # (N, d_c)
        return states[-1], states[:-1] if output_hidden_states else []


class ResidualBiLSTM(BiLSTM):
    """Residual stacked BiLSTMs: Nie and Bansal, "Shortcut-Stacked Sentence Encoders for Multi-Domain Inference" (2017).

    Layer i reads the word vectors and the sum of all layers below it, [w_t; h_t^1 + ... + h_t^(i-1)].
    """

    description = "stacked bidirectional LSTMs with residual connections"

    @staticmethod
    def later_input_size(config: DSAConfigFields) -> int:
        """d_0 + d_c"""
        return config.embedding_size + config.hidden_size

    @staticmethod
    def layer_input(words: Tensor, states: list[Tensor]) -> Tensor:
        """(N, d_0) and, of each layer below, (N, d_c) -> (N, d_0 + d_c), of the first layer (N, d_0)"""
        return torch.cat([words, torch.stack(states).sum(0)], dim=1) if states else words


def _run_lstm(lstm: nn.Module, tokens: Tensor, packing: Packing, rectangles: list[tuple[Tensor, Tensor]]) -> Tensor:
    """(N, width) -> (N, u)"""
    if _autocast_lacks_lstm(tokens):
        with torch.autocast("cpu", enabled=False):
            return _run_lstm(lstm, tokens.float(), packing, rectangles)
    if rectangles:
        states = [lstm(tokens[indices.t()])[0].transpose(0, 1) for indices, _ in rectangles]  # (sentences, tokens, u)
    else:  # a batch of empty sentences, in which every weight still needs its gradient of 0
        states = [lstm(torch.cat([tokens, tokens.new_zeros(1, tokens.shape[1])])[:, None])[0][:0, 0]]
    return packing.pack_rectangles(rectangles, states)


def _autocast_lacks_lstm(tokens: Tensor) -> bool:
    """Whether autocast would ask oneDNN for an LSTM that it does not have: half precision on a CPU without AVX-512."""
    if tokens.device.type != "cpu" or not torch.is_autocast_enabled("cpu") or not torch.backends.mkldnn.is_available():
        return False
    is_half = torch.get_autocast_dtype("cpu") == torch.float16
    # torch has no public name for these.
    return not (torch.ops.mkldnn._is_mkldnn_fp16_supported if is_half else torch.ops.mkldnn._is_mkldnn_bf16_supported)()


class PairwiseEncoder(Encoder):
    """Layers of pairwise self-attention, without positions."""

    description = "pairwise self-attention between all words of a sentence"

    def __init__(self, config: DSAConfigFields) -> None:
        super().__init__(config)
        sizes = [config.embedding_size] + [config.hidden_size] * (config.num_hidden_layers - 1)
        self.layers = nn.ModuleList(PairwiseSelfAttention(config, size, config.hidden_size) for size in sizes)

    def forward(self, tokens: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """(N, d_0) -> (N, d_c) and, when asked, the tokens after each layer but the last."""
        states = []
        for layer in self.layers:
            tokens = layer(tokens, packing)
            states.append(tokens)
        return tokens, states[:-1] if output_hidden_states else []


ENCODERS: dict[str, type[Encoder]] = {
    "none": NoEncoder,
    "dense_cnn": DenseCNN,
    "kim_cnn": KimCNN,
    "bilstm": BiLSTM,
    "residual_bilstm": ResidualBiLSTM,
    "pairwise": PairwiseEncoder,
    "directional": DirectionalEncoder,
    "distance": DistanceEncoder,
}
