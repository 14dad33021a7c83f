"""Synthetic pairs with the lengths of SNLI's, and padded batches of them that are made on the device.

Premises and hypotheses have as many tokens as in the sample that ships with the package, each premise stands in three
pairs, tokens follow Zipf's law over a vocabulary of SNLI's size, labels are random. The sample's lengths stand in this
file, as the machine with the GPU may have nothing that reads Parquet; a test counts them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modeling_dsa import DSAConfig

from .operations import count_training_operations

# How many pairs of the sample have a premise, a hypothesis of 0, 1, 2, ... tokens.
# fmt: off
PREMISES_BY_TOKENS = (
    0, 0, 2, 10, 80, 320, 1179, 2669, 3713, 4262, 4857, 4976, 4850, 4363, 3917, 3469, 2849, 2448, 2116, 1971, 1719,
    1441, 1257, 936, 754, 623, 563, 422, 395, 279, 193, 226, 156, 130, 119, 65, 81, 57, 70, 51, 44, 36, 15, 24, 17, 18,
    14, 11, 8, 15, 7, 2, 8, 3, 2, 2, 1, 2, 3, 3, 0, 1, 0, 0, 2, 1, 0, 0, 1, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 3,
)
HYPOTHESES_BY_TOKENS = (
    0, 4, 103, 670, 2658, 5600, 7269, 9498, 8855, 6428, 5093, 3569, 2454, 1685, 1173, 780, 557, 414, 290, 211, 144, 99,
    77, 50, 37, 19, 27, 25, 10, 11, 6, 1, 5, 3, 1, 3, 1, 3, 2, 2, 1, 0, 1, 1,
)
# fmt: on
SNLI_PAIRS = 549_367
PAIRS_OF_PREMISE = 3
VOCABULARY = 36_000
FIRST_TOKEN = 3  # behind the special tokens
WIDTH_STEP = 32

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class SNLILikePairs:
    """Synthetic pairs.

    Attributes:
        ids: `premise [SEP] hypothesis` of each pair, one behind the other. (ids,)
        premises: The index of each pair's premise. (pairs,)
        premise_tokens: (pairs,)
        hypothesis_tokens: (pairs,)
        labels: (pairs,)
    """

    ids: NDArray[np.int32]
    premises: Numbers
    premise_tokens: Numbers
    hypothesis_tokens: Numbers
    labels: Numbers

    @property
    def lengths(self) -> Numbers:
        """Ids of each pair, the separator included. (pairs,)"""
        return self.premise_tokens + 1 + self.hypothesis_tokens

    @property
    def starts(self) -> Numbers:
        """Where each pair begins in `ids`. (pairs,)"""
        return _starts(self.lengths)


def make_pairs(count: int, config: DSAConfig) -> SNLILikePairs:
    """So many pairs, the same each time."""
    generator = np.random.default_rng(0)
    chances = 1 / np.arange(1, config.vocab_size - FIRST_TOKEN + 1)  # Zipf's law

    def draw_lengths(sentences: int, histogram: Sequence[int]) -> Numbers:
        shares = np.array(histogram) / sum(histogram)
        return generator.choice(len(histogram), sentences, p=shares)

    def draw_tokens(count: int) -> NDArray[np.int32]:
        return (FIRST_TOKEN + generator.choice(len(chances), count, p=chances / chances.sum())).astype(np.int32)

    premises = np.arange(count) // PAIRS_OF_PREMISE  # (pairs,)
    distinct = draw_lengths(-(-count // PAIRS_OF_PREMISE), PREMISES_BY_TOKENS)  # (premises,)
    premise_tokens, hypothesis_tokens = distinct[premises], draw_lengths(count, HYPOTHESES_BY_TOKENS)
    lengths = premise_tokens + 1 + hypothesis_tokens
    starts = _starts(lengths)
    ids = np.full(lengths.sum(), config.sep_token_id, dtype=np.int32)
    ids[_ranges(starts, premise_tokens)] = draw_tokens(distinct.sum())[
        _ranges(_starts(distinct)[premises], premise_tokens)
    ]
    ids[_ranges(starts + premise_tokens + 1, hypothesis_tokens)] = draw_tokens(hypothesis_tokens.sum())
    return SNLILikePairs(ids, premises, premise_tokens, hypothesis_tokens, generator.integers(3, size=count))


def _starts(lengths: Numbers) -> Numbers:
    return lengths.cumsum() - lengths


def _ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """The numbers from each start on, as many as its length says, one range behind the other."""
    return np.repeat(starts - _starts(lengths), lengths) + np.arange(lengths.sum())


class Cut(NamedTuple):
    """A batch: a range of the epoch's order, and its width in tokens."""

    start: int
    end: int
    width: int


class Epoch:
    """The pairs in a random order, cut into batches. A last batch of one pair is dropped: it has no batch statistics.

    Attributes:
        order: Indices of pairs. (pairs of the epoch,)
        cuts: The batches.
        tokens: Tokens without padding.
        training_operations: Those of all steps on the distinct sentences of each batch.
    """

    def __init__(self, pairs: SNLILikePairs, batch_size: int, number: int, config: DSAConfig) -> None:
        """Shuffle the pairs by the epoch's number."""
        count = len(pairs.labels)
        if count % batch_size == 1:
            count -= 1
        self.order: Numbers = np.random.default_rng(number).permutation(len(pairs.labels))[:count]
        starts = np.arange(0, count, batch_size)
        longest = np.maximum.reduceat(pairs.lengths[self.order], starts)
        widths = -(-longest // WIDTH_STEP) * WIDTH_STEP
        ends = (starts + batch_size).clip(max=count)
        self.cuts = [Cut(*cut) for cut in zip(starts.tolist(), ends.tolist(), widths.tolist(), strict=True)]
        premise_tokens, hypothesis_tokens = pairs.premise_tokens[self.order], pairs.hypothesis_tokens[self.order]
        self.tokens = int(premise_tokens.sum() + hypothesis_tokens.sum())
        batch_and_premise = np.arange(count) // batch_size * len(pairs.labels) + pairs.premises[self.order]
        first = np.unique(batch_and_premise, return_index=True)[1]  # (distinct premises of all batches,)
        sentences = np.concatenate([premise_tokens[first], hypothesis_tokens])
        self.training_operations = count_training_operations(torch.from_numpy(sentences), config)

    def shapes(self) -> list[Cut]:
        """A batch of each shape."""
        return list({(cut.end - cut.start, cut.width): cut for cut in self.cuts}.values())


class Loader:
    """Makes padded batches on a device, from pairs that lie there."""

    def __init__(self, pairs: SNLILikePairs, device: torch.device, config: DSAConfig) -> None:
        """Move the pairs to the device."""
        arrays = (pairs.ids, pairs.starts, pairs.lengths, pairs.premise_tokens, pairs.labels)
        self.ids, self.starts, self.lengths, self.premise_tokens, self.labels = (
            torch.from_numpy(array).to(device) for array in arrays
        )
        assert config.pad_token_id is not None
        self.pad_token_id = config.pad_token_id

    def __call__(self, pairs: Tensor, width: int) -> dict[str, Tensor]:
        """The arguments of the model for pairs with these indices (batch,), as its tokenizer and collator make them."""
        positions = torch.arange(width, device=pairs.device)
        inside = positions < self.lengths[pairs, None]  # (batch, tokens)
        indices = (self.starts[pairs, None] + positions).clamp(max=self.ids.shape[0] - 1)  # (batch, tokens)
        second = inside & (positions > self.premise_tokens[pairs, None])  # (batch, tokens)
        return {
            "input_ids": self.ids[indices].long().masked_fill(~inside, self.pad_token_id),
            "attention_mask": inside.long(),
            "token_type_ids": second.long(),
            "labels": self.labels[pairs],
        }
