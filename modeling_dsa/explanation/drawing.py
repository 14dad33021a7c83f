"""Pictures of attention: the tokens of sentences as boxes, shaded by how much each head looks at them."""

import os
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import text_to_path

from modeling_dsa.files.pictures import (
    BLACK,
    EXTENSIONS,
    find_fonts,
    save_as_it_is,
    say_missing,
    silent_glyphs,
    text_colour,
)
from modeling_dsa.files.replacing import replaced_file

from .attention import TextAttention, decimals
from .words import has_direction, runs_right_to_left

_BOX = "□"
_RIGHT_TO_LEFT = "\u200f"  # a mark without a width
_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # $, _ and \\ are characters like others
    "svg.fonttype": "none",  # text stays text
}
_COLOURS = matplotlib.colormaps["Blues"]  # from white to dark in even steps of lightness, so it also prints in grey
_GREY, _EDGE = "#666666", "#c4ccd6"

# All lengths are points; the axes have one unit a point and y downwards.
_WIDTH, _NARROW, _MARGIN, _HEAD_COLUMN, _GAP = 720.0, 480.0, 20.0, 52.0, 3.0  # narrow: a column of several
_SCALE_WIDTH = 270.0  # with its name
_FEW_TOKENS = 100  # up to here a sentence is drawn large and with its weights
_TALLEST_PNG = 60_000  # pixels; the renderer refuses more than 65,535


@dataclass(frozen=True)
class DrawnSentence:
    """One sentence and where its heads look.

    Attributes:
        text: The sentence.
        offsets: Start and end of each token in `text`, in characters. (tokens,)
        weights: Finite and not negative. (heads, tokens)
        label: The heading of the sentence, such as `premise` or the predicted class.
        names: Whose each line of weights is. (heads,)
        spread: The weights' standard deviations, where there are any. (heads, tokens)
    """

    text: str
    offsets: Sequence[tuple[int, int]]
    weights: np.ndarray
    label: str
    names: Sequence[str]
    spread: np.ndarray | None = None


def drawn_sentences(
    texts: Mapping[str, TextAttention], iteration: int = -1, decision: str | None = None
) -> list[DrawnSentence]:
    """Where a model looks in one iteration: one sentence, or the two of a pair, for `draw_attention`.

    Args:
        texts: By name; with equal numbers of iterations and of heads.
        iteration: Which one; default: the last, whose weights the vector has.
        decision: What a classifier says; it stands beside the last name.
    """
    drawn = []
    for number, (name, text) in enumerate(texts.items(), start=1):
        count = len(text.weights)
        label = name if count == 1 else f"{name}, iteration {range(count)[iteration] + 1} of {count}"
        label += f", {text.cut}" if text.cut else ""
        if decision is not None and number == len(texts):
            label += f": {decision}"
        rows = text.rows(iteration)
        spread = [row.spread for row in rows if row.spread is not None]
        drawn.append(
            DrawnSentence(
                text.text,
                text.offsets,
                np.stack([row.weights for row in rows]),
                label,
                [row.name for row in rows],
                np.stack(spread) if spread else None,
            )
        )
    return drawn


def draw_attention(
    sentences: Sequence[DrawnSentence], path: str | os.PathLike[str], title: str | None = None, columns: int = 1
) -> Path:
    """Draw the tokens of each sentence as boxes, one line of boxes for each head, shaded by their weights.

    All sentences share one scale, from 0 to the largest weight. One of more than 100 tokens is drawn smaller and
    without the numbers under them; lines wrap, and run from right to left where the sentence does. The same input gives
    the same bytes where the same fonts are installed.

    Args:
        sentences: In reading order.
        path: Where to write; the extension says what: `.png`, `.svg` (with text as text) or `.pdf`. The folder is made.
        title: Stands above the picture.
        columns: How many sentences stand side by side, such as the 2 of a pair.

    Returns:
        The path written.

    Raises:
        ValueError: There are no sentences, or the extension is another.
    """
    path = Path(path)
    extension = path.suffix.lower()
    if extension not in EXTENSIONS:
        raise ValueError(
            f"{path}: pictures are written as {', '.join(EXTENSIONS)}, not {extension or 'without an extension'}"
        )
    if not sentences:
        raise ValueError(f"{path}: there is nothing to draw, sentences is empty")
    families, missing = find_fonts([title or "", *(sentence.text + sentence.label for sentence in sentences)])
    if missing and extension != ".svg":  # which is drawn with the fonts of where it is seen
        say_missing(missing)
        sentences = [_boxed(sentence, missing) for sentence in sentences]
    with matplotlib.rc_context(_STYLE | {"font.family": families}), silent_glyphs():
        figure = _draw(sentences, title, columns)
        with replaced_file(path) as beside:
            save_as_it_is(figure, beside, min(150.0, _TALLEST_PNG / figure.get_figheight()))
    return path


def _boxed(sentence: DrawnSentence, missing: Sequence[str]) -> DrawnSentence:
    """The sentence with a box for each missing character: those of the font lie over each other where marks combine."""
    # A character that runs from right to left stays, so that its sentence does.
    boxes = str.maketrans({one: _BOX for one in missing if unicodedata.bidirectional(one) not in ("R", "AL")})
    return replace(sentence, text=sentence.text.translate(boxes), label=sentence.label.translate(boxes))


def _draw(sentences: Sequence[DrawnSentence], title: str | None, columns: int) -> Figure:
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    largest = max(float(np.max(sentence.weights)) for sentence in sentences) or 1.0
    scale = Normalize(0.0, largest)
    column = _WIDTH if columns == 1 else _NARROW
    width = columns * column
    y = _MARGIN
    if title is not None:
        y = _draw_heading(axes, title, 13, _MARGIN, width - _MARGIN - _SCALE_WIDTH, y)
    y = max(y + 6, 2.4 * _MARGIN)  # below the scale
    for start in range(0, len(sentences), columns):
        bottoms = [
            _draw_sentence(axes, sentence, scale, number * column + _MARGIN, (number + 1) * column - _MARGIN, y)
            for number, sentence in enumerate(sentences[start : start + columns])
        ]
        y = max(bottoms) + 10
    height = y + _MARGIN / 2
    figure.set_size_inches(width / 72, height / 72)
    axes.set(xlim=(0, width), ylim=(height, 0))
    _draw_scale(figure, scale, largest, width, height)
    return figure


def _draw_heading(axes: Axes, text: str, size: float, left: float, right: float, y: float) -> float:
    """Write bold lines between `left` and `right` from `y` on and return the `y` below them."""
    for line in textwrap.wrap(text, int((right - left) / (0.66 * size))):  # 0.66: the usual width of a bold character
        axes.text(left, y, line, size=size, weight="bold", color=BLACK, va="top")
        y += 1.4 * size
    return y


def _draw_sentence(axes: Axes, sentence: DrawnSentence, scale: Normalize, left: float, right: float, y: float) -> float:
    """Draw one sentence between `left` and `right` from `y` on and return the `y` below it."""
    few = len(sentence.offsets) <= _FEW_TOKENS
    size = 10.0 if few else 7.5
    box = size * 1.8
    line = box + (size * 1.1 if few else _GAP)
    y = _draw_heading(axes, sentence.label, 10.5, left, right, y) + 5
    numbers = _numbers(sentence, scale) if few else None
    boxes = _line_boxes(sentence, size, left + _HEAD_COLUMN, right, numbers)
    for head, weights in enumerate(np.asarray(sentence.weights, dtype=float)):  # (tokens,)
        axes.text(left, y + box / 2, sentence.names[head], size=8, color=_GREY, va="center_baseline")
        for index, ((token, x, line_number, width), weight) in enumerate(zip(boxes, weights, strict=True)):
            top, centre = y + line_number * line, x + width / 2
            _draw_box(axes, token, size, _COLOURS(scale(weight)), (x, top, width, box))
            if numbers is not None:
                axes.text(centre, top + box + 2, numbers[head][index], size=6.5, color=_GREY, ha="center", va="top")
        y += (boxes[-1][2] + 1) * line + 4
    return y


def _draw_box(
    axes: Axes, token: str, size: float, colour: tuple[float, ...], box: tuple[float, float, float, float]
) -> None:
    """Draw one token in its box: left, top, width and height."""
    x, top, width, height = box
    style = "round,pad=0,rounding_size=3"
    axes.add_patch(FancyBboxPatch((x, top), width, height, boxstyle=style, fc=colour, ec=_EDGE, lw=0.6))
    axes.text(
        x + width / 2,
        top + height / 2,
        token,
        size=size,
        color=text_colour(colour),
        ha="center",
        va="center_baseline",
    )


def _numbers(sentence: DrawnSentence, scale: Normalize) -> list[list[str]]:
    """What stands under each box, for each line of weights."""
    shown = f".{decimals(scale.vmax or 0)}f"
    if sentence.spread is None:
        return [[format(weight, shown) for weight in weights] for weights in sentence.weights]
    return [
        [f"{weight:{shown}}±{deviation:{shown}}" for weight, deviation in zip(weights, deviations, strict=True)]
        for weights, deviations in zip(sentence.weights, sentence.spread, strict=True)
    ]


def _line_boxes(
    sentence: DrawnSentence, size: float, left: float, right: float, numbers: list[list[str]] | None
) -> list[tuple[str, float, int, float]]:
    """Break a sentence into lines: for each token what to print, its left edge, its line and its box's width."""
    font, small = (FontProperties(family=matplotlib.rcParams["font.family"], size=points) for points in (size, 6.5))
    x, line_number = left, 0
    right_to_left = runs_right_to_left(sentence.text)
    boxes = []
    for index, (start, end) in enumerate(sentence.offsets):
        token = "".join(character if character.isprintable() else " " for character in sentence.text[start:end])
        if right_to_left and not has_direction(token):
            token = f"{_RIGHT_TO_LEFT}{token}{_RIGHT_TO_LEFT}"  # brackets turn round
        room = right - left - size
        length = _length(token, font)
        if length > room:
            token = token[: int(len(token) * room / length) - 2] + "…"
            length = min(_length(token, font), room)
        width = max(length + size, 2.4 * size)  # room for the weight under a short token
        if numbers is not None:
            width = max(width, *(_length(row[index], small) + 2 for row in numbers))
        if x + width > right:
            x, line_number = left, line_number + 1
        boxes.append((token, x, line_number, width))
        x += width + _GAP
    if right_to_left:
        return [(token, left + right - x - width, number, width) for token, x, number, width in boxes]
    return boxes


def _length(token: str, font: FontProperties) -> float:
    return float(text_to_path.get_text_width_height_descent(token, font, ismath=False)[0])


def _draw_scale(figure: Figure, scale: Normalize, largest: float, width: float, height: float) -> None:
    """Say at the upper right what the shades mean."""
    left, top, length, thickness = width - _MARGIN - 170, _MARGIN + 2, 160.0, 7.0
    location = (left / width, 1 - (top + thickness) / height, length / width, thickness / height)
    bar = figure.colorbar(ScalarMappable(scale, _COLOURS), cax=figure.add_axes(location), orientation="horizontal")
    bar.outline.set(edgecolor=_EDGE, linewidth=0.6)
    ticks = [0.0, largest / 2, largest]
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.ax.tick_params(labelsize=7, labelcolor=_GREY, length=2, color=_EDGE, pad=2)
    bar.ax.set_ylabel("attention weight", size=8, color=_GREY, rotation=0, ha="right", va="center", labelpad=8)
