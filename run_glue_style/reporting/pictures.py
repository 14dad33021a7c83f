"""Pictures of results: the same figures give the same bytes."""

from pathlib import Path

from matplotlib.figure import Figure

from modeling_dsa.files.pictures import save_figure


def save_picture(figure: Figure, path: Path) -> None:
    """Write a PNG and an SVG.

    Args:
        figure: The picture.
        path: Where, without an extension.
    """
    save_figure(figure, path.with_suffix(".png"), path.with_suffix(".svg"), dpi=150)
