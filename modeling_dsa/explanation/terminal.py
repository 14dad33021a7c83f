"""Attention over words in a terminal: words on a shade, each with its weight in percent."""

import io
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .attention import UNKNOWN, UNKNOWN_MARK, AttentionRow, LabelScores, TextAttention, decimals

# From no attention to the largest weight: ColorBrewer's Blues, each with a colour of text that reads on it.
_STYLES = ("#0b1524 on #f7fbff", "#0b1524 on #c6dbef", "#0b1524 on #6baed6", "#ffffff on #2171b5", "#ffffff on #08306b")
_WIDTH = 100  # columns, where no terminal says how many


def explanation_renderable(texts: Mapping[str, TextAttention], scores: LabelScores | None) -> RenderableType:
    """Texts under every iteration, with a classifier's scores, for a console of rich.

    Args:
        texts: What to show, by name; with equal numbers of iterations and of heads.
        scores: What the classifier says.
    """
    parts: list[RenderableType] = []
    if scores is not None:
        parts += [Text(f"{_printable(label)} {value}") for label, value in scores.shown()]
    largest = max(text.largest for text in texts.values())
    count = len(next(iter(texts.values())).weights)
    for iteration in range(count):
        of = f", routing iteration {iteration + 1} of {count}" if count > 1 else ""
        for name, text in texts.items():
            grid = Table.grid(padding=(0, 1))
            for row in text.rows(iteration):
                grid.add_row(row.name, _Words(text, row, largest))
            parts += [Text(f"\n{name}{of}", style="bold"), grid]
    if not all(known for text in texts.values() for known in text.known):
        parts.append(Text(f"\n{UNKNOWN_MARK} {UNKNOWN}"))
    parts += [Text(f"\n{name}: {text.cut}") for name, text in texts.items() if text.cut]
    return Group(*parts)


def explanation_text(texts: Mapping[str, TextAttention], scores: LabelScores | None) -> str:
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


@dataclass(frozen=True)
class _Words:
    """The words of a text with the weights of one row, as wide as there is room."""

    text: TextAttention
    row: AttentionRow
    largest: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # With fewer colours several shades become one with their text.
        yield self._line(options.max_width, console.color_system in ("256", "truecolor"))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._line(options.max_width, False))

    def _line(self, width: int, shaded: bool) -> Text:
        format_ = f".{decimals(self.largest) - 2}%"
        line = Text(overflow="fold")  # else rich takes the blank behind wide characters for one too many
        for index, (word, weight) in enumerate(zip(self.text.words, self.row.weights.tolist(), strict=True)):
            spread = "" if self.row.spread is None else f"±{self.row.spread[index]:{format_}}"
            share = f":{weight:{format_}}{spread}{'' if self.text.known[index] else UNKNOWN_MARK}"
            shade = round(weight / self.largest * (len(_STYLES) - 1)) if self.largest else 0
            # A line breaks at blanks, so that a word keeps its weight.
            shown = _shortened(_printable(word).replace(" ", "·"), width - len(share)) + share
            line.append(shown, style=_STYLES[shade] if shaded else None)
            line.append(" ")
        return line


def _shortened(word: str, width: int) -> str:
    """A word in so many columns of a terminal, but at least one."""
    return word if cell_len(word) <= width else set_cell_size(word, max(0, width - 1)).rstrip() + "…"


def _printable(text: str) -> str:
    """Without characters that command a terminal."""
    shown = (character for character in text if unicodedata.category(character) != "Cf")  # such as joiners
    return "".join(character if character.isprintable() else " " for character in shown)
