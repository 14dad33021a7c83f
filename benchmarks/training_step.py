"""Speed of the model core against a padded `nn.Conv1d` model with the same weights, and against a matrix product.

    python benchmarks/training_step.py --threads 2 --output results/training_step.json

Both models are single DSA for NLI (2.08 million parameters beside the word table) and read the same random batches of
SNLI pairs, from the sample that ships with the package. The padded model is what one writes first: each side of the
batch padded to its longest sentence, `nn.Conv1d` on (batch, channels, words), a masked softmax. It is checked to give
the same logits. No batch comes twice, so nothing that is prepared for one number of words serves a second time, as in
training. Competitors take turns on every batch and all figures are medians, so other work on the machine hits all.

Operations are counted on the words of distinct sentences only, 2 for each multiply-add, for d_0 = 300 in thousands of
multiply-adds a word:

    first layers         2 branches * d_0 * 150                        90
    kernel 3             (150 + 225 + 300 + 375) * 75 * 3             236
    kernel 5             (150 + 225 + 300 + 375) * 75 * 5             394
    compression          (2 * 450 + d_0) * 300                        360
    projection           300 * 600                                    180
    routing              600 for each weighted sum, 600 for the one agreement that is used: 2

less the products with the zeros before and behind each sentence: of the k windows' places around n words, a kernel of 3
has 2 there and one of 5 has 6. Padding, gaps between sentences, copies, dropout and activations count as nothing.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow.parquet as parquet
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.packing_dsa import pack, split_pairs
from modeling_dsa.tokenization import PreTrainedTokenizerFast, build_tokenizer, count_words
from run_glue_style.sample import SAMPLE_FILES

LEAST_TRAINING_RATIO, LEAST_PRODUCT_SHARE = 3.0, 0.5
PRODUCT_SIZE = (4096, 300, 600)  # words, d_c, d_o
WARM_UP = 3


class PaddedDSA(nn.Module):
    """Single DSA for NLI on padded batches. Its parameters and buffers stand in the same order as `DSAForNLI`'s."""

    def __init__(self, config: DSAConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.embed_tokens.requires_grad_(False)
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)
        self.branches = nn.ModuleList()
        for kernel_size in config.kernel_sizes:
            width = config.first_layer_size
            layers = [self.layer(config.embedding_size, width, 1)]
            for _ in range(config.num_hidden_layers):
                layers.append(self.layer(width, config.growth_size, kernel_size))
                width += config.growth_size
            self.branches.append(nn.ModuleList(layers))
        width = width * len(config.kernel_sizes) + config.embedding_size
        self.compression = self.layer(width, config.hidden_size, 1)
        self.projection = nn.Conv1d(config.hidden_size, config.attention_head_size, 1)
        width, modules = 4 * config.attention_head_size, list[nn.Module]()
        for size in config.classifier_hidden_sizes:
            modules += [nn.BatchNorm1d(width, eps=config.batch_norm_eps), nn.Dropout(config.classifier_dropout)]
            modules += [nn.Linear(width, size), nn.LeakyReLU(config.negative_slope)]
            width = size
        self.classifier = nn.Sequential(*modules, nn.Linear(width, config.num_labels))

    def layer(self, in_channels: int, out_channels: int, kernel_size: int) -> nn.Sequential:
        """(batch, in_channels, words) -> (batch, out_channels, words)"""
        return nn.Sequential(
            nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2),
            nn.Dropout(self.config.hidden_dropout),
            nn.LeakyReLU(self.config.negative_slope),
        )

    def encode(self, ids: Tensor) -> Tensor:
        """(batch, words) -> (batch, d_o)"""
        inside = (ids != self.config.pad_token_id)[:, None]  # (batch, 1, words)
        words = self.embedding_dropout(self.embed_tokens(ids)).transpose(1, 2)  # (batch, d_0, words)
        outputs = []
        for first, *layers in self.branches:
            features = first(words) * inside  # (batch, d_1, words)
            for layer in layers:
                features = torch.cat([features, layer(features) * inside], dim=1)
            outputs.append(features)
        encoded = F.normalize(self.compression(torch.cat([*outputs, words], dim=1)), dim=1)  # (batch, d_c, words)
        values = F.leaky_relu(self.projection(encoded), self.config.negative_slope)  # (batch, d_o, words)
        logits = values.new_zeros(inside.shape)  # (batch, 1, words)
        for _ in range(self.config.routing_iterations):
            weights = logits.masked_fill(~inside, -torch.inf).softmax(-1)  # (batch, 1, words)
            vectors = (values @ weights.transpose(1, 2)).tanh()  # (batch, d_o, 1)
            logits = logits + vectors.transpose(1, 2) @ values
        return vectors.squeeze(2)

    def forward(self, first_ids: Tensor, second_ids: Tensor) -> Tensor:
        """(batch, words), (batch, words) -> (batch, labels)"""
        first, second = self.encode(first_ids), self.encode(second_ids)  # (batch, d_o)
        logits: Tensor = self.classifier(torch.cat([first, second, (first - second).abs(), first * second], dim=1))
        return logits


class Batch:
    """The same pairs for both models, and their counts.

    Attributes:
        packed: Arguments of `DSAForNLI`: pairs in one row.
        padded: Arguments of `PaddedDSA`: each side for itself.
        labels: (pairs,)
        words: Real words.
        operations: Floating point operations that encoding takes, see the module's text.
        padding: Share of the padded model's places that hold no word.
    """

    def __init__(self, pairs: Sequence[tuple[str, str, int]], tokenizer: PreTrainedTokenizerFast, config: DSAConfig):
        first, second, labels = (list(column) for column in zip(*pairs, strict=True))
        self.packed: dict[str, Tensor] = dict(tokenizer(first, second, padding=True, return_tensors="pt"))
        self.padded: list[Tensor] = [
            tokenizer(side, padding=True, return_tensors="pt")["input_ids"] for side in (first, second)
        ]
        self.labels = torch.tensor(labels)
        self.words = sum(int((side != tokenizer.pad_token_id).sum()) for side in self.padded)
        self.padding = 1 - self.words / sum(side.numel() for side in self.padded)
        ids = self.packed["input_ids"]
        split = split_pairs(
            ids, self.packed["attention_mask"], self.packed["token_type_ids"], None, tokenizer.sep_token_id
        )
        self.operations = count_operations(pack(ids, *split, deduplicate=True)[1].lengths, config)


def count_operations(lengths: Tensor, config: DSAConfig) -> int:
    """Floating point operations of one encoding of sentences with these lengths (sentences,)."""
    words = int(lengths.sum())
    width = config.first_layer_size
    inputs = sum(width + layer * config.growth_size for layer in range(config.num_hidden_layers))  # of a branch's layers
    total = width + config.num_hidden_layers * config.growth_size
    a_word = len(config.kernel_sizes) * config.embedding_size * width
    a_word += (len(config.kernel_sizes) * total + config.embedding_size) * config.hidden_size
    a_word += config.hidden_size * config.attention_head_size
    a_word += config.attention_head_size * (2 * config.routing_iterations - 1)
    multiply_adds = a_word * words
    for kernel_size in config.kernel_sizes:
        shifts = range(-(kernel_size // 2), kernel_size // 2 + 1)
        taps = sum(int((lengths - abs(shift)).clamp(min=0).sum()) for shift in shifts)  # windows' places on a word
        multiply_adds += inputs * config.growth_size * taps
    return 2 * multiply_adds


def make_batches(count: int, size: int, seed: int, tokenizer_of: list[str]) -> None: ...
