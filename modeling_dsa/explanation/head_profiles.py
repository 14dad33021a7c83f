"""What each head looks at over many sentences: words, their classes, positions, sharpness, agreement."""

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

from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.pictures import look, text_colour, wrapped

from .attention import TextAttention, read_attention, require_attention
from .word_classes import Tagger

Numbers = npt.NDArray[np.float64]

BINS = 10  # of positions, from the first word to the last
FEWEST = 3  # times that a word must occur to be ranked
_SHOWN_WORDS = 8
_MATRIX_POINTS, _SMALLEST_FONT = 190.0, 4.5  # width of the drawn matrix, and what can still be read


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

    def as_json(self) -> dict[str, Any]:
        """Ready for a JSON file."""
        return {
            "sentences": self.sentences,
            "entropy": self.entropy.tolist(),
            "positions": [[None if np.isnan(value) else value for value in row] for row in self.positions.tolist()],
            "divergence": self.divergence.tolist(),
            "words": _as_json(self.words, "word"),
            "word_classes": _as_json(self.word_classes, "class"),
        }

    def as_markdown(self) -> str:
        """A table with a row for each head."""
        iterations = [f"Entropy, iteration {number + 1}" for number in range(len(self.entropy))]
        columns = {"Words that it emphasises most": self.words}
        if self.word_classes:
            columns["Word classes that it emphasises most"] = self.word_classes
        rows = []
        for head, entropies in enumerate(self.entropy.T):
            most = [
                ", ".join(f"{name} {mean:.1f}" for name, mean, _ in of[head][:_SHOWN_WORDS]) for of in columns.values()
            ]
            rows.append([str(head + 1), *(f"{value:.2f}" for value in entropies), *most])
        rules = ["---", *["---:"] * len(iterations), *["---"] * len(columns)]
        return markdown_table(["Head", *iterations, *columns], rows, rules)

    def draw(self, title: str) -> Figure:
        """Draw entropy by iteration, emphasis by position, how far the heads differ, and emphasis by word class."""
        figure = Figure(figsize=(14, 8.4 if self.word_classes else 4.4), layout="constrained")
        panels = figure.add_gridspec(2 if self.word_classes else 1, 3)
        entropy, positions, divergence = (figure.add_subplot(panels[0, column]) for column in range(3))
        iterations = np.arange(1, len(self.entropy) + 1)
        _lines(entropy, iterations, self.entropy.T, "iteration", "entropy, share of equal weights")
        entropy.set_xticks(iterations)
        entropy.set_ylim(0, 1.05)
        places = (np.arange(BINS) + 0.5) * 100 / BINS
        _lines(positions, places, self.positions, "position in the sentence, %", "emphasis (1: all words alike)")
        _legend(positions, -0.16, 4)
        largest = float(self.divergence.max())
        image = divergence.imshow(self.divergence, cmap="Blues", vmin=0, vmax=max(0.1, largest))
        heads = np.arange(len(self.divergence))
        divergence.set_xticks(heads, heads + 1)
        divergence.set_yticks(heads, heads + 1)
        divergence.set(xlabel="head", ylabel="head")
        divergence.set_title("divergence of two heads, bits", fontsize=10)
        digits = next((digits for digits in (2, 3) if largest >= 10 ** (1 - digits)), 4)
        size = min(8.0, _MATRIX_POINTS / len(heads) / (digits + 2) / 0.62)
        if size >= _SMALLEST_FONT:
            for (row, column), value in np.ndenumerate(self.divergence):
                colour = text_colour(image.to_rgba(np.asarray(value)))
                number = "0" if row == column else f"{value:.{digits}f}"
                divergence.text(column, row, number, ha="center", va="center", fontsize=size, color=colour)
        figure.colorbar(image, ax=divergence)
        if self.word_classes:
            _bars(figure.add_subplot(panels[1, :]), self.word_classes)
        figure.suptitle(wrapped(title, figure.get_figwidth(), 11), fontsize=11)
        return figure


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


def _as_json(ranked: list[list[tuple[str, float, int]]], kind: str) -> list[list[dict[str, Any]]]:
    return [[{kind: name, "emphasis": mean, "count": count} for name, mean, count in of] for of in ranked]


def _lines(panel: Axes, x: npt.NDArray[Any], rows: Numbers, label: str, title: str) -> None:
    """A line for each head: (heads, points)"""
    for head, values in enumerate(rows):
        panel.plot(x, values, markersize=5, **look(head), label=f"head {head + 1}")
    panel.set_xlabel(label)
    panel.set_title(title, fontsize=10)
    panel.grid(alpha=0.3)


def _bars(panel: Axes, ranked: list[list[tuple[str, float, int]]]) -> None:
    """A group of bars for each name, the most frequent first, and in it a bar for each head."""
    counts = {name: count for name, _, count in ranked[0]}
    names = sorted(counts, key=lambda name: -counts[name])
    width = 0.8 / len(ranked)
    for head, of in enumerate(ranked):
        means = {name: mean for name, mean, _ in of}
        x = np.arange(len(names)) + (head - (len(ranked) - 1) / 2) * width
        hatch = ("", "///", "...", "\\\\\\", "xxx", "---", "|||", "+++")[head % 8]
        colour = look(head)["color"]
        heights = [means[name] for name in names]
        panel.bar(x, heights, width * 0.92, color=colour, hatch=hatch, ec="white", label=f"head {head + 1}")
    panel.axhline(1, color="black", linewidth=0.8)
    ticks = [f"{name}\n{counts[name]:,}" for name in names]
    panel.set_xticks(np.arange(len(names)), ticks, fontsize=8, parse_math=False)
    panel.set_title("emphasis by word class, with how often it occurs (1: all words alike)", fontsize=10)
    _legend(panel, -0.16, 8)
    panel.grid(axis="y", alpha=0.3)


def _legend(panel: Axes, y: float, columns: int) -> None:
    """Below the panel, where it covers nothing."""
    panel.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, y), ncols=columns, frameon=False)
