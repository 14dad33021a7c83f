"""What each head looks at over many sentences: words, positions, how sharply, and how far the heads agree."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.poolings_dsa import POOLINGS

from .attention import TextAttention, read_attention

Numbers = npt.NDArray[np.float64]

BINS = 10  # of positions, from the first word to the last
FEWEST = 3  # times that a word must occur to be ranked
_SHOWN_WORDS = 8


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
    """

    sentences: int
    entropy: Numbers
    positions: Numbers
    divergence: Numbers
    words: list[list[tuple[str, float, int]]]

    def as_json(self) -> dict[str, Any]:
        """Ready for a JSON file."""
        return {
            "sentences": self.sentences,
            "entropy": self.entropy.tolist(),
            "positions": [[None if np.isnan(value) else value for value in row] for row in self.positions.tolist()],
            "divergence": self.divergence.tolist(),
            "words": [
                [{"word": word, "emphasis": mean, "count": count} for word, mean, count in of] for of in self.words
            ],
        }

    def as_markdown(self) -> str:
        """A table with a row for each head."""
        iterations = [f"Entropy, iteration {number + 1}" for number in range(len(self.entropy))]
        lines = [["Head", *iterations, "Words that it emphasises most"], ["---", *["---:"] * len(iterations), "---"]]
        for head, words in enumerate(self.words):
            most = ", ".join(f"{word} {mean:.1f}" for word, mean, _ in words[:_SHOWN_WORDS])
            entropies = [f"{value:.2f}" for value in self.entropy[:, head]]
            lines.append([str(head + 1), *entropies, most.replace("|", "\\|")])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def draw(self, title: str) -> Figure:
        """Draw entropy by iteration, emphasis by position, and how far the heads differ."""
        figure = Figure(figsize=(14, 4.4), layout="constrained")
        entropy, positions, divergence = figure.subplots(1, 3)
        iterations = np.arange(1, len(self.entropy) + 1)
        _lines(entropy, iterations, self.entropy.T, "iteration", "entropy, share of equal weights")
        entropy.set_xticks(iterations)
        entropy.set_ylim(0, 1.05)
        places = (np.arange(BINS) + 0.5) * 100 / BINS
        _lines(positions, places, self.positions, "position in the sentence, %", "emphasis (1: all words alike)")
        positions.legend(fontsize=8, ncols=2)
        image = divergence.imshow(self.divergence, cmap="Blues", vmin=0, vmax=max(0.1, self.divergence.max()))
        heads = np.arange(len(self.divergence))
        divergence.set_xticks(heads, heads + 1)
        divergence.set_yticks(heads, heads + 1)
        divergence.set(xlabel="head", ylabel="head")
        divergence.set_title("divergence of two heads, bits", fontsize=10)
        if len(heads) <= 10:
            for (row, column), value in np.ndenumerate(self.divergence):
                dark = value > 0.6 * self.divergence.max()
                colour = "white" if dark else "black"
                divergence.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
        figure.colorbar(image, ax=divergence)
        figure.suptitle(title, fontsize=11, parse_math=False)
        return figure


def head_profiles(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Iterable[str]) -> HeadProfiles:
    """Read sentences and sum up where each head looks.

    Args:
        model: An encoder or classifier with attention.
        tokenizer: The model's.
        sentences: Any number.

    Raises:
        ValueError: The pooling has no attention, or no sentence has two words.
    """
    if not POOLINGS[model.config.pooling].has_attention:
        raise ValueError(f"Pooling '{model.config.pooling}' has no attention over the tokens to sum up.")
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
        len(read), np.mean(entropies, 0), _positions(read), np.mean(divergences, 0), _emphasised_words(read)
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


def _emphasised_words(read: Sequence[TextAttention]) -> list[list[tuple[str, float, int]]]:
    found: dict[str, list[Numbers]] = defaultdict(list)
    for text in read:
        for word, emphasis in zip(text.words, _emphasis(text).T, strict=True):  # (heads,)
            found[word.lower()].append(emphasis)
    means = {word: np.mean(values, 0) for word, values in found.items() if len(values) >= FEWEST}
    by_head = [
        [(word, float(mean[head]), len(found[word])) for word, mean in means.items()]
        for head in range(read[0].weights.shape[1])
    ]
    return [sorted(words, key=lambda one: -one[1]) for words in by_head]


def _lines(panel: Axes, x: npt.NDArray[Any], rows: Numbers, label: str, title: str) -> None:
    """A line for each head: (heads, points)"""
    for head, values in enumerate(rows):
        panel.plot(x, values, marker="os^Dv<>P"[head % 8], markersize=5, label=f"head {head + 1}")
    panel.set_xlabel(label)
    panel.set_title(title, fontsize=10)
    panel.grid(alpha=0.3)
