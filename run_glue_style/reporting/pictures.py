"""Pictures as files: the same figures give the same bytes."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

# Of Okabe and Ito: they stay apart for every kind of colour vision.
BLUE, VERMILION = "#0072B2", "#D55E00"
COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "oDs^vP*X<>"


def save_picture(figure: Figure, path: Path) -> None:
    """Write a PNG and an SVG.

    Args:
        figure: The picture.
        path: Where, without an extension.
    """
    figure.savefig(path.with_suffix(".png"), dpi=150, metadata={"Software": None})
    with matplotlib.rc_context({"svg.hashsalt": "dsa"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
