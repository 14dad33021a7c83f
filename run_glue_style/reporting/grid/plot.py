"""A picture of a grid: a panel for each metric, with each row's runs, their mean and the base's."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from run_glue_style.reporting.pictures import BLUE, VERMILION, save_picture
from run_glue_style.reporting.units import is_percent


def draw_grid(title: str, metrics: Sequence[str], rows: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Draw it as a PNG and as an SVG.

    Args:
        title: What the grid asks.
        metrics: Names of the metrics.
        rows: The values of each metric over the seeds, by row; the first row is the base.
        path: Where, without an extension.
    """
    figure = Figure(figsize=(2.4 + 3.2 * len(metrics), 1.4 + 0.34 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for index, (panel, metric) in enumerate(zip(panels, metrics, strict=True)):
        factor = 100 if is_percent(metric) else 1
        _draw_panel(panel, [[factor * value for value in values[index]] for values in rows.values()])
        panel.set_xlabel("percent" if is_percent(metric) else "")
        panel.set_title(metric, fontsize=10)
    panels[0].set_yticks(range(len(rows)), list(rows))
    panels[0].set_ylim(len(rows) - 0.5, -0.5)  # the base on top
    figure.suptitle(title, fontsize=10, wrap=True)
    save_picture(figure, path)


def _draw_panel(panel: Axes, rows: Sequence[Sequence[float]]) -> None:
    means = [statistics.mean(values) for values in rows]
    spreads = [statistics.stdev(values) if len(values) > 1 else 0.0 for values in rows]
    panel.axvline(means[0], color=VERMILION, linewidth=1)
    panel.errorbar(means, range(len(rows)), xerr=spreads, color=BLUE, marker="o", linestyle="none", capsize=4)
    for index, values in enumerate(rows):
        panel.plot(values, [index + 0.2] * len(values), color=BLUE, marker=".", linestyle="none", alpha=0.5)
    panel.grid(axis="x", alpha=0.3)
