"""Attention over words in a terminal: words on a shade, each with its weight in percent."""

import io
from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .attention import AttentionRow, Scores, TextAttention

# From no attention to the largest weight: ColorBrewer's Blues, each with a colour of text that reads on it.
_STYLES = ("#0b1524 on #f7fbff", "#0b1524 on #c6dbef", "#0b1524 on #6baed6", "#ffffff on #2171b5", "#ffffff on #08306b")
_WIDTH = 100  # columns, where no terminal says how many


def explanation_renderable(texts: Mapping[str, TextAttention], scores: Scores | None) -> RenderableType:
    """Texts under every iteration, with a classifier's scores, for a console of rich.

    Args:
        texts: What to show, by name; with equal numbers of iterations and of heads.
        scores: What the classifier says.
    """
    parts: list[RenderableType] = []
    if scores is not None:
        parts += [Text(f"{_printable(label)} {value}") for label, value in scores.shown()]
    largest = max(float(text.weights.max()) for text in texts.values())
    count = len(next(iter(texts.values())).weights)
    for iteration in range(count):
        of = f", routing iteration {iteration + 1} of {count}" if count > 1 else ""
        for name, text in texts.items():
            grid = Table.grid(padding=(0, 1))
            for row in text.rows(iteration):
                grid.add_row(row.name, _words(text.words, row, largest))
            parts += [Text(f"\n{name}{of}", style="bold"), grid]
    return Group(*parts)


def explanation_text(texts: Mapping[str, TextAttention], scores: Scores | None) -> str:
    """The same as plain text.

    Args:
        texts: As for `explanation_renderable`.
        scores: As for `explanation_renderable`.
    """
    written = io.StringIO()
    # In a notebook rich would show it at once, and write nothing.
    console = Console(file=written, width=_WIDTH, color_system=None, force_jupyter=False)
    console.print(explanation_renderable(texts, scores))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def _words(words: list[str], row: AttentionRow, largest: float) -> Text:
    line = Text()
    for index, (word, weight) in enumerate(zip(words, row.weights.tolist(), strict=True)):
        spread = "" if row.spread is None else f"±{row.spread[index]:.0%}"
        shade = round(weight / largest * (len(_STYLES) - 1)) if largest else 0
        # A line breaks at blanks, so that a word keeps its weight.
        line.append(f"{_printable(word)}:{weight:.0%}{spread}".replace(" ", "·"), style=_STYLES[shade])
        line.append(" ")
    return line


def _printable(text: str) -> str:
    """Without characters that command a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
