"""What all pictures share: colours and marks, room for names, fonts for their characters, and bytes that stay equal."""

import logging
import textwrap
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Tick
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogLocator, NullFormatter

logger = logging.getLogger(__name__)

# Of Okabe and Ito, which stay apart for every kind of colour vision; their yellow is left out, their black is grey, and
# their orange and sky blue are darker, so that each stands out by 3 to 1 from a white page and from a dark one.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
COLOURS = (BLUE, VERMILION, GREEN, "#CC79A7", "#C28500", "#3595CC", "#767676")
MARKS = "oDs^vP*X<>"  # more than there are colours, so that the two together repeat after 70
BLACK, WHITE = "#000000", "#ffffff"

# Neither date nor version go into the file, so that the same input gives the same bytes.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
EXTENSIONS = tuple(_METADATA)
_FONT = "DejaVu Sans"  # comes with matplotlib
_CHARACTER, _WIDE_CHARACTER = 0.62, 1.0  # their usual widths, in sizes of the font
_LEGEND_MARK = 4.5  # what stands in a legend beside a name, likewise


def look(number: int) -> dict[str, Any]:
    """Colour and mark of one of several things."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)]}


def scale_by_logarithm(panel: Axes, label: str) -> None:
    """Make the horizontal axis logarithmic, with labels at 1, 2 and 5 times the powers of ten alone.

    Args:
        panel: Whose axis it is.
        label: How a number `x` is written, such as "{x:,.0f}".
    """
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(label)
    panel.xaxis.set_minor_formatter(NullFormatter())


def contrast(first: Any, second: Any) -> float:
    """The contrast of two colours by WCAG 2, from 1 to 21."""
    dark, light = sorted(_luminance(colour) for colour in (first, second))
    return (light + 0.05) / (dark + 0.05)


def text_colour(background: Any) -> str:
    """That of black and white which is read better."""
    return max(BLACK, WHITE, key=lambda colour: contrast(colour, background))


def _luminance(colour: Any) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return sum(part * share for part, share in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def wrapped(text: str, inches: float, size: float) -> str:
    """A title or name in lines that are no wider than this.

    Args:
        text: What is written.
        inches: The room.
        size: Of the font, in points.
    """
    characters = 72 * inches / size / (_width(text) / max(1, len(text)) or _CHARACTER)
    return textwrap.fill(text, max(1, int(characters)))


def legend_columns(names: Iterable[str], inches: float, size: float) -> int:
    """How many columns of a legend of these names this room has; likewise."""
    longest = max(_width(line) for name in names for line in name.split("\n"))
    return max(1, int(72 * inches / size / (longest + _LEGEND_MARK)))


def _width(text: str) -> float:
    return sum(_WIDE_CHARACTER if unicodedata.east_asian_width(one) in "WF" else _CHARACTER for one in text)


def find_fonts(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Names of fonts that have the characters of these texts between them, and the characters that no font here has."""
    families, missing = [_FONT], set(filter(str.isprintable, "".join(texts)))
    entries = sorted(font_manager.fontManager.ttflist, key=lambda entry: (entry.name != _FONT, entry.name, entry.fname))
    for entry in entries:
        if not missing:
            break
        if entry.name.startswith("Last Resort"):  # its glyphs are the empty boxes
            continue
        lacks = missing - set(map(chr, font_manager.get_font(entry.fname).get_charmap()))
        if lacks != missing and entry.name not in families:
            families.append(entry.name)
        missing = lacks
    return families, sorted(missing)


def say_missing(characters: Sequence[str]) -> None:
    """Say which characters are drawn as boxes, if any."""
    if characters:
        logger.warning(
            f"No font here has {len(characters)} of the characters, such as {characters[0]!r}, so they are drawn as "
            "empty boxes: install one that has them, such as Noto. Pages (.html) need none."
        )


def save_with_fonts(figure: Figure, *paths: Path, dpi: float = 120) -> None:
    """Write a picture, whose texts get fonts for all their characters; $ is one like others.

    Args:
        figure: The picture.
        paths: Where; the extension of each says what: `.png`, `.svg` or `.pdf`.
        dpi: Of a PNG.
    """
    texts = figure.findobj(Text)
    families, missing = find_fonts(text.get_text() for text in texts)
    say_missing(missing)
    of_ticks = {label for tick in figure.findobj(Tick) for label in (tick.label1, tick.label2)}
    for text in texts:
        text.set_fontfamily(families)
        if text not in of_ticks:  # powers of ten on a logarithmic axis are formulas
            text.set_parse_math(False)
    for path in paths:
        save_as_it_is(figure, path, dpi)


def save_png_and_svg(figure: Figure, path: Path) -> None:
    """Write a PNG and an SVG, likewise.

    Args:
        figure: The picture.
        path: Where, without an extension.
    """
    save_with_fonts(figure, *(path.with_name(f"{path.name}{extension}") for extension in (".png", ".svg")), dpi=150)


@contextmanager
def silent_glyphs() -> Iterator[None]:
    """Without matplotlib's warnings of each missing character: `say_missing` says it once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def save_as_it_is(figure: Figure, path: Path, dpi: float) -> None:
    """Write a picture with the fonts that its texts have; the same figure gives the same bytes."""
    extension = path.suffix.lower()
    with matplotlib.rc_context({"svg.hashsalt": "dsa"}), silent_glyphs():
        figure.savefig(path, format=extension[1:], dpi=dpi, metadata=_METADATA[extension])
