"""What each head looks at over many sentences: words, their classes, positions, sharpness, agreement."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .attention import TextAttention, read_attention, require_attention
from .word_classes import Tagger

Numbers = npt.NDArray[np.float64]

BINS = 10  # of positions, from the first word to the last
FEWEST = 3  # times that a word must occur to be ranked


@dataclass(frozen=True)
class HeadProfiles:
    """What each head looks at.

    A word's emphasis is its weight over the one that it has where all words of its sentence weigh alike: 2 is twice as
    much.

    Attributes:
        sentences: How many there were: those with two words or more.
        entropy: The mean over sentences of the weights' entropy, as a share of that of equal weights: 1 where a head
            looks at all words alike, 0 where it looks at one. (iterations, heads)
        positions: The mean emphasis by the position in the sentence, after the last iteration; NaN where no word is.
            (heads, BINS)
        divergence: The mean Jensen-Shannon divergence of two heads after the last iteration, in bits: 0 where they look
            at the same words, 1 where they have none in common. (heads, heads)
        words: For each head the words that occur often enough, in lower case, with their mean emphasis and how often
            they occur, the most emphasised first.
        word_classes: For each head the classes of words, likewise; none where nothing tagged them.
    """

    sentences: int
    entropy: Numbers
    positions: Numbers
    divergence: Numbers
    words: list[list[tuple[str, float, int]]]
    word_classes: list[list[tuple[str, float, int]]]


def head_profiles(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[str],
    word_classes: Tagger | None = None,
) -> HeadProfiles:
    """Read sentences and sum up where each head looks.

    Args:
        model: An encoder or classifier with attention.
        tokenizer: The model's.
        sentences: Any number.
        word_classes: Says the class of each word, as `load_tagger` gives it.

    Raises:
        ValueError: The pooling has no attention, or no sentence has two words.
    """
    require_attention(model.config)
    # The encoder alone: what a classifier would say of half a pair is of no interest.
    read = [
        read_attention(cast(PreTrainedModel, model.base_model), tokenizer, sentence)[0][0] for sentence in sentences
    ]
    read = [text for text in read if len(text.offsets) > 1]
    if not read:
        raise ValueError("No sentence has two words that the model reads: give others.")
    entropies = [_entropy(text) for text in read]  # (iterations, heads) each
    divergences = [_divergence(text.weights[-1]) for text in read]  # (heads, heads) each
    return HeadProfiles(
        len(read),
        np.mean(entropies, 0),
        _positions(read),
        np.mean(divergences, 0),
        _emphasised(read, [[word.lower() for word in text.words] for text in read]),
        _emphasised(read, [word_classes(text.words) for text in read]) if word_classes else [],
    )


def _entropy(text: TextAttention) -> Numbers:
    """(iterations, heads)"""
    return np.asarray(entropy(text.weights, axis=-1) / np.log(text.weights.shape[-1]), np.float64)


def _divergence(weights: npt.NDArray[Any]) -> Numbers:
    """(heads, words) -> (heads, heads)"""
    first, second = weights[:, None], weights[None]
    shape = (len(weights), len(weights), weights.shape[-1])
    distances = jensenshannon(np.broadcast_to(first, shape), np.broadcast_to(second, shape), base=2, axis=-1)
    # Of equal weights rounding may make the root of a number below 0.
    return np.asarray(np.nan_to_num(distances) ** 2, np.float64)


def _emphasis(text: TextAttention) -> Numbers:
    """(heads, words)"""
    return np.asarray(text.weights[-1] * len(text.offsets), np.float64)


def _positions(read: Sequence[TextAttention]) -> Numbers:
    """(heads, BINS)"""
    totals, counts = np.zeros((read[0].weights.shape[1], BINS)), np.zeros(BINS)
    for text in read:
        bins = np.arange(len(text.offsets)) * BINS // len(text.offsets)  # (words,)
        np.add.at(totals.T, bins, _emphasis(text).T)
        np.add.at(counts, bins, 1)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)


def _emphasised(read: Sequence[TextAttention], names: Sequence[list[str]]) -> list[list[tuple[str, float, int]]]:
    """What goes by each name, the most emphasised first, for each head."""
    found: dict[str, list[Numbers]] = defaultdict(list)
    for text, of in zip(read, names, strict=True):
        for name, emphasis in zip(of, _emphasis(text).T, strict=True):  # (heads,)
            found[name].append(emphasis)
    means = {name: np.mean(values, 0) for name, values in found.items() if len(values) >= FEWEST}
    by_head = [
        [(name, float(mean[head]), len(found[name])) for name, mean in means.items()]
        for head in range(read[0].weights.shape[1])
    ]
    return [sorted(ranked, key=lambda one: -one[1]) for ranked in by_head]
