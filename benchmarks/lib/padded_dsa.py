"""Single DSA as one writes it first: both sides of a batch padded to their longest sentence, `nn.Conv1d`."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modeling_dsa import DSAForNLI

from .batches import Batch
from .measuring import count_parameters
from .peers import Side

TOLERANCE = 1e-4


class PaddedDSA(nn.Module):
    """Single DSA for NLI on padded batches, with the weights of `model`: its word table, copies of all else."""

    def __init__(self, model: DSAForNLI) -> None:
        super().__init__()
        self.config = config = model.config
        self.embed_tokens = model.get_input_embeddings()
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)
        self.branches = nn.ModuleList()
        for kernel_size in config.kernel_sizes:
            width = config.first_layer_size
            layers = [self.layer(config.embedding_size, width, 1)]
            for _ in range(config.num_hidden_layers):
                layers.append(self.layer(width, config.growth_size, kernel_size))
                width += config.growth_size
            self.branches.append(nn.ModuleList(layers))
        width = len(config.kernel_sizes) * width + config.embedding_size
        self.compression = self.layer(width, config.hidden_size, 1)
        self.projection = nn.Conv1d(config.hidden_size, config.attention_head_size, 1)
        self.classifier = copy.deepcopy(model.classifier)
        convolutions = [[part for part in whole.modules() if isinstance(part, nn.Conv1d)] for whole in (self, model)]
        for mine, other in zip(*convolutions, strict=True):
            mine.load_state_dict(other.state_dict())

    def layer(self, in_channels: int, out_channels: int, kernel_size: int) -> nn.Sequential:
        """(batch, in_channels, tokens) -> (batch, out_channels, tokens)"""
        return nn.Sequential(
            nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2),
            nn.Dropout(self.config.hidden_dropout),
            nn.LeakyReLU(self.config.negative_slope),
        )

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, tokens), (batch, tokens) -> (batch, d_o)"""
        inside = mask.bool()[:, None]  # (batch, 1, tokens)
        word_vectors = self.embedding_dropout(self.embed_tokens(ids)).transpose(1, 2)  # (batch, d_0, tokens)
        outputs = []
        for branch in self.branches.children():
            first, *layers = branch.children()
            features = first(word_vectors) * inside  # (batch, d_1, tokens)
            for layer in layers:
                features = torch.cat([features, layer(features) * inside], dim=1)
            outputs.append(features)  # (batch, d_1 + L * d_l, tokens)
        encoded = F.normalize(
            self.compression(torch.cat([*outputs, word_vectors], dim=1)), dim=1
        )  # (batch, d_c, tokens)
        values = F.leaky_relu(self.projection(encoded), self.config.negative_slope)  # (batch, d_o, tokens)
        logits = torch.zeros_like(inside, dtype=values.dtype).masked_fill(~inside, -torch.inf)  # (batch, 1, tokens)
        vectors = (values @ logits.softmax(2).transpose(1, 2)).tanh()  # (batch, d_o, 1)
        for _ in range(self.config.routing_iterations - 1):
            logits = logits + vectors.transpose(1, 2) @ values
            vectors = (values @ logits.softmax(2).transpose(1, 2)).tanh()
        return vectors.squeeze(2)

    def forward(self, first: Side, second: Side) -> Tensor:
        """Ids and mask of both sides, each (batch, tokens) -> (batch, labels)"""
        p, h = self.encode(*first), self.encode(*second)  # (batch, d_o)
        logits: Tensor = self.classifier(torch.cat([p, h, (p - h).abs(), p * h], dim=1))
        return logits


def check_equal(ours: DSAForNLI, padded: PaddedDSA, batch: Batch) -> float:
    """The largest difference of the two models' logits in evaluation, as a share of the largest logit.

    Raises:
        RuntimeError: It is above `TOLERANCE`, or the models differ in size: the comparison would not be fair.
    """
    sizes = [count_parameters(model) for model in (ours, padded)]
    if sizes[0] != sizes[1]:
        raise RuntimeError(f"The models have {sizes[0]:,} and {sizes[1]:,} trainable parameters: make them equal.")
    ours.eval()
    padded.eval()
    with torch.inference_mode():
        logits: Tensor = ours(**batch.packed).logits  # (pairs, labels)
        difference = float((logits - padded(*batch.padded)).abs().max() / logits.abs().max())
    if not difference <= TOLERANCE:
        raise RuntimeError(f"The models' logits differ by {difference:.1e} of the largest, more than {TOLERANCE:.0e}.")
    return difference
