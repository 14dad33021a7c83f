"""A picture of our runs beside a paper's figures: a panel for each column that has both."""

import math
import statistics
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modeling_dsa.files.pictures import BLUE, VERMILION, save_png_and_svg, wrapped

from .paper_comparison import Comparison
from .units import error_bar

# The shapes differ too.
_OURS: dict[str, Any] = {"color": BLUE, "marker": "o", "linestyle": "none", "capsize": 4}
_PUBLISHED: dict[str, Any] = {
    "color": VERMILION,
    "marker": "D",
    "linestyle": "none",
    "fillstyle": "none",
    "label": "published",
}
_LABEL = "ours: mean ± standard deviation over seeds; without a bar one seed"
_PANELS_IN_A_ROW = 3
_APART = 0.12  # of the two marks of a system, in rows


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw it as a PNG and as an SVG; `path` has no extension. Without a column of both, the paper's figures alone."""
    systems = list(comparison.table.systems)
    published = [column for column in comparison.table.columns if column in comparison.published_columns()]
    both = [column for column in published if any(comparison.cell(system, column).ours for system in systems)]
    columns = both or published
    across = min(_PANELS_IN_A_ROW, len(columns))
    down = math.ceil(len(columns) / across)
    figure = Figure(figsize=(2.2 + 3.0 * across, 1.6 + down * (0.9 + 0.34 * len(systems))), layout="constrained")
    for number, column in enumerate(columns, 1):
        panel = figure.add_subplot(down, across, number, sharey=figure.axes[0] if number > 1 else None)
        panel.tick_params(labelleft=number % across == 1 or across == 1)
        _draw_panel(panel, comparison, column)
    first = figure.axes[0]
    first.set_yticks(range(len(systems)), systems)
    first.set_ylim(len(systems) - 0.5, -0.5)  # the first system on top
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(wrapped(comparison.title(), figure.get_figwidth(), 10), fontsize=10)
    save_png_and_svg(figure, path)


def _draw_panel(panel: Axes, comparison: Comparison, column: str) -> None:
    cells = [comparison.cell(system, column) for system in comparison.table.systems]
    ours = {row: [100 * share for share in cell.ours] for row, cell in enumerate(cells) if cell.ours}
    published = {row: cell.published for row, cell in enumerate(cells) if cell.published is not None}
    means = [statistics.mean(figures) for figures in ours.values()]
    spreads = [error_bar(figures) for figures in ours.values()]
    left = [min(spread, mean) for spread, mean in zip(spreads, means, strict=True)]  # no figure is below 0
    panel.errorbar(means, [row + _APART for row in ours], xerr=[left, spreads], label=_LABEL, **_OURS)
    panel.plot(list(published.values()), [row - _APART for row in published], **_PUBLISHED)
    panel.set_title(column, fontsize=10)
    panel.set_xlabel("percent")
    panel.grid(axis="x", alpha=0.3)
