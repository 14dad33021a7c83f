"""Pictures of attention: the tokens of sentences as boxes, shaded by how much each head looks at them."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
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
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.files.replacing import replaced_file

from .attention import Scores, read_attention

# Neither date nor version go into the file, so that the same input gives the same bytes.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "text.parse_math": False,  # $, _ and \\ are characters like others
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "attention",  # ids do not change from run to run
}
_COLOURS = matplotlib.colormaps["Blues"]  # from white to dark in even steps of lightness, so it also prints in grey
_BLACK, _GREY, _EDGE, _WHITE = "#1a1a1a", "#666666", "#c4ccd6", "#ffffff"

# All lengths are points; the axes have one unit a point and y downwards.
_WIDTH, _MARGIN, _HEAD_COLUMN, _GAP = 720.0, 20.0, 52.0, 3.0
_FEW_TOKENS = 40  # up to here a sentence is drawn large and with its weights
_TALLEST_PNG = 60_000  # pixels; the renderer refuses more than 65,535


@dataclass(frozen=True)
class DrawnSentence:
    """One sentence and where its heads look.

    Attributes:
        text: the sentence.
        offsets: (tokens,) start and end of each token in `text`, in characters.
        weights: (heads, tokens), finite and not negative.
        label: the heading of the sentence, such as `premise` or the predicted class.

    Raises:
        ValueError: if the weights are not (heads, tokens), the lengths differ, a weight is negative or not finite, or
            a token is empty or outside the text.
    """

    text: str
    offsets: Sequence[tuple[int, int]]
    weights: np.ndarray
    label: str

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        shape = np.shape(self.weights)
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{self.label!r}: weights must have the shape (heads, tokens), not {shape}")
        if shape[1] != len(self.offsets):
            raise ValueError(
                f"{self.label!r}: there are weights for {shape[1]} tokens, but {len(self.offsets)} offsets"
            )
        wrong = np.argwhere(~(np.isfinite(self.weights) & (np.asarray(self.weights) >= 0)))  # (mistakes, 2)
        if len(wrong):
            head, token = wrong[0]
            raise ValueError(
                f"{self.label!r}: the weight of head {head + 1}, token {token + 1} is {self.weights[head, token]}; "
                "it must be finite and not negative"
            )
        for start, end in self.offsets:
            if not 0 <= start < end <= len(self.text):
                raise ValueError(
                    f"{self.label!r}: ({start}, {end}) is no token in a text of {len(self.text)} characters"
                )


def drawn_sentences(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str, text_pair: str | None = None
) -> list[DrawnSentence]:
    """Where a model's last attention looks: one sentence, or the two of a pair, for `draw_attention`.

    Args:
        model: an encoder or a classifier of this package; a classifier's decision stands in the label.
        tokenizer: the model's tokenizer.
        text: the sentence, or the first of a pair.
        text_pair: the second sentence of a pair.

    Raises:
        ValueError: if a sentence has no tokens, the model reads pairs and there is none, or the other way round, or its
            pooling has no attention.
    """
    pairs = model.config.sentences_per_example == 2
    if text_pair is not None and not pairs:
        raise ValueError("This model reads single sentences, but two were given: leave out the second.")
    read, scores = read_attention(model, tokenizer, text, text_pair)
    for part in read:
        if not part.offsets:
            raise ValueError(f"There is no token in the sentence {part.text!r}, so nothing to attend to.")
        if not len(part.weights):
            raise ValueError(f"Pooling '{model.config.pooling}' has no attention over the tokens to draw.")
    labels = ["sentence"] if text_pair is None else ["first sentence", "second sentence"]
    if scores is not None:
        if pairs and text_pair is None and tokenizer.sep_token_id not in tokenizer(read[0].text)["input_ids"]:
            raise ValueError("This model classifies pairs of sentences, but one was given: give the second too.")
        labels[-1] += f": {_decision(scores)}"
    return [
        DrawnSentence(part.text, part.offsets, part.weights[-1], label)
        for part, label in zip(read, labels, strict=True)
    ]


def _decision(scores: Scores) -> str:
    """What a classifier makes of a text, in words."""
    best = int(scores.values.argmax())
    if scores.function == "none":
        return f"{scores.values[best]:.3g}"
    return f"{scores.labels[best]} {scores.values[best]:.0%}"


def draw_attention(sentences: Sequence[DrawnSentence], path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Draw the tokens of each sentence as boxes, one line of boxes for each head, shaded by their weights.

    All sentences share one scale, from 0 to the largest weight. One of more than 40 tokens is drawn smaller and without
    the numbers under them; lines wrap. The same input gives the same
    bytes.

    Args:
        sentences: in reading order.
        path: where to write; the extension says what: `.png`, `.svg` (with text as text) or `.pdf`. The folder is made.
        title: stands above the picture.

    Returns:
        The path written.

    Raises:
        ValueError: if there are no sentences, or the extension is another.
    """
    path = Path(path)
    extension = path.suffix.lower()
    if extension not in _METADATA:
        raise ValueError(
            f"{path}: pictures are written as {', '.join(_METADATA)}, not {extension or 'without an extension'}"
        )
    if not sentences:
        raise ValueError(f"{path}: there is nothing to draw, sentences is empty")
    with matplotlib.rc_context(_STYLE):
        figure = _draw(sentences, title)
        buffer = io.BytesIO()
        dpi = min(150.0, _TALLEST_PNG / figure.get_figheight())
        figure.savefig(buffer, format=extension[1:], dpi=dpi, metadata=_METADATA[extension])
    with replaced_file(path) as beside:
        beside.write_bytes(buffer.getvalue())
    return path


def _draw(sentences: Sequence[DrawnSentence], title: str | None) -> Figure:
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    largest = max(float(np.max(sentence.weights)) for sentence in sentences) or 1.0
    scale = Normalize(0.0, largest)
    y = _MARGIN
    if title is not None:
        y = _draw_heading(axes, title, size=13, longest=_WIDTH - 2 * _MARGIN - 270, y=y)
    y = max(y + 6, 2.4 * _MARGIN)  # below the scale
    for sentence in sentences:
        y = _draw_sentence(axes, sentence, scale, y) + 10
    height = y + _MARGIN / 2
    figure.set_size_inches(_WIDTH / 72, height / 72)
    axes.set(xlim=(0, _WIDTH), ylim=(height, 0))
    _draw_scale(figure, scale, largest, height)
    return figure


def _draw_heading(axes: Axes, text: str, size: float, longest: float, y: float) -> float:
    """Write bold lines of at most `longest` points from `y` on and return the `y` below them."""
    for line in textwrap.wrap(text, int(longest / (0.66 * size))):  # 0.66: the usual width of a bold character
        axes.text(_MARGIN, y, line, size=size, weight="bold", color=_BLACK, va="top")
        y += 1.4 * size
    return y


def _draw_sentence(axes: Axes, sentence: DrawnSentence, scale: Normalize, y: float) -> float:
    """Draw one sentence from `y` on and return the `y` below it."""
    few = len(sentence.offsets) <= _FEW_TOKENS
    size = 10.0 if few else 7.5
    box = size * 1.8
    line = box + (size * 1.1 if few else _GAP)
    y = _draw_heading(axes, sentence.label, size=10.5, longest=_WIDTH - 2 * _MARGIN, y=y) + 5
    boxes = _lay_out(sentence, size)
    for head, weights in enumerate(np.asarray(sentence.weights, dtype=float), start=1):  # (tokens,)
        axes.text(_MARGIN, y + box / 2, f"head {head}", size=8, color=_GREY, va="center_baseline")
        for (token, x, line_number, width), weight in zip(boxes, weights, strict=True):
            top, centre = y + line_number * line, x + width / 2
            colour = _COLOURS(scale(weight))
            axes.add_patch(
                FancyBboxPatch(
                    (x, top), width, box, boxstyle="round,pad=0,rounding_size=3", fc=colour, ec=_EDGE, lw=0.6
                )
            )
            light = float(np.dot(colour[:3], (0.299, 0.587, 0.114))) > 0.55
            axes.text(
                centre,
                top + box / 2,
                token,
                size=size,
                color=_BLACK if light else _WHITE,
                ha="center",
                va="center_baseline",
            )
            if few:
                axes.text(centre, top + box + 2, f"{weight:.2f}", size=6.5, color=_GREY, ha="center", va="top")
        y += (boxes[-1][2] + 1) * line + 4
    return y


def _lay_out(sentence: DrawnSentence, size: float) -> list[tuple[str, float, int, float]]:
    """Break a sentence into lines: for each token what to print, its left edge, its line and its box's width."""
    font = FontProperties(family="DejaVu Sans", size=size)
    left, right = _MARGIN + _HEAD_COLUMN, _WIDTH - _MARGIN
    x, line_number = left, 0
    boxes = []
    for start, end in sentence.offsets:
        token = "".join(character if character.isprintable() else " " for character in sentence.text[start:end])
        room = right - left - size
        length = _length(token, font)
        if length > room:
            token = token[: int(len(token) * room / length) - 2] + "…"
            length = min(_length(token, font), room)
        width = max(length + size, 2.4 * size)  # room for the weight under a short token
        if x + width > right:
            x, line_number = left, line_number + 1
        boxes.append((token, x, line_number, width))
        x += width + _GAP
    return boxes


def _length(token: str, font: FontProperties) -> float:
    return float(text_to_path.get_text_width_height_descent(token, font, ismath=False)[0])


def _draw_scale(figure: Figure, scale: Normalize, largest: float, height: float) -> None:
    """Say at the upper right what the shades mean."""
    left, top, length, thickness = _WIDTH - _MARGIN - 170, _MARGIN + 2, 160.0, 7.0
    location = (left / _WIDTH, 1 - (top + thickness) / height, length / _WIDTH, thickness / height)
    bar = figure.colorbar(ScalarMappable(scale, _COLOURS), cax=figure.add_axes(location), orientation="horizontal")
    bar.outline.set(edgecolor=_EDGE, linewidth=0.6)
    ticks = [0.0, largest / 2, largest]
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.ax.tick_params(labelsize=7, labelcolor=_GREY, length=2, color=_EDGE, pad=2)
    bar.ax.set_ylabel("attention weight", size=8, color=_GREY, rotation=0, ha="right", va="center", labelpad=8)
