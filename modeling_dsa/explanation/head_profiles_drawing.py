"""Profiles of heads as a picture."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modeling_dsa.files.pictures import look, text_colour, wrapped

from .head_profiles import BINS, HeadProfiles, Numbers

_MATRIX_POINTS, _SMALLEST_FONT = 190.0, 4.5  # width of the drawn matrix, and what can still be read


def draw_head_profiles(profiles: HeadProfiles, title: str) -> Figure:
    """Draw entropy by iteration, emphasis by position, how far the heads differ, and emphasis by word class."""
    figure = Figure(figsize=(14, 8.4 if profiles.word_classes else 4.4), layout="constrained")
    panels = figure.add_gridspec(2 if profiles.word_classes else 1, 3)
    entropy, positions, divergence = (figure.add_subplot(panels[0, column]) for column in range(3))
    iterations = np.arange(1, len(profiles.entropy) + 1)
    _lines(entropy, iterations, profiles.entropy.T, "iteration", "entropy, share of equal weights")
    entropy.set_xticks(iterations)
    entropy.set_ylim(0, 1.05)
    places = (np.arange(BINS) + 0.5) * 100 / BINS
    _lines(positions, places, profiles.positions, "position in the sentence, %", "emphasis (1: all words alike)")
    _legend(positions, -0.16, 4)
    largest = float(profiles.divergence.max())
    image = divergence.imshow(profiles.divergence, cmap="Blues", vmin=0, vmax=max(0.1, largest))
    heads = np.arange(len(profiles.divergence))
    divergence.set_xticks(heads, heads + 1)
    divergence.set_yticks(heads, heads + 1)
    divergence.set(xlabel="head", ylabel="head")
    divergence.set_title("divergence of two heads, bits", fontsize=10)
    digits = next((digits for digits in (2, 3) if largest >= 10 ** (1 - digits)), 4)
    size = min(8.0, _MATRIX_POINTS / len(heads) / (digits + 2) / 0.62)
    if size >= _SMALLEST_FONT:
        for (row, column), value in np.ndenumerate(profiles.divergence):
            colour = text_colour(image.to_rgba(np.asarray(value)))
            number = "0" if row == column else f"{value:.{digits}f}"
            divergence.text(column, row, number, ha="center", va="center", fontsize=size, color=colour)
    figure.colorbar(image, ax=divergence)
    if profiles.word_classes:
        _bars(figure.add_subplot(panels[1, :]), profiles.word_classes)
    figure.suptitle(wrapped(title, figure.get_figwidth(), 11), fontsize=11)
    return figure


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
