"""A picture of a grid: a panel for each metric, with each row's runs, their mean and the base's."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modeling_dsa.files.pictures import BLUE, VERMILION, legend_columns, save_png_and_svg, wrapped
from run_glue_style.reporting.units import error_bar, is_percent

_NAME = 2.6  # inches for the name of a row


def draw_grid(title: str, metrics: Sequence[str], rows: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Draw it as a PNG and as an SVG.

    Args:
        title: What the grid asks.
        metrics: Names of the metrics.
        rows: The values of each metric over the seeds, by row; the first row is the base.
        path: Where, without an extension.
    """
    names = [wrapped(row, _NAME, 10) for row in rows]
    lines = max(name.count("\n") + 1 for name in names)
    width = 2.4 + 3.2 * len(metrics)
    title = wrapped(title, width - 0.4, 10)
    height = 1.8 + 0.17 * title.count("\n") + (0.17 + 0.17 * lines) * len(rows)
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for index, (panel, metric) in enumerate(zip(panels, metrics, strict=True)):
        factor = 100 if is_percent(metric) else 1
        _draw_panel(panel, [[factor * value for value in values[index]] for values in rows.values()])
        panel.set_xlabel("percent" if is_percent(metric) else "")
        panel.set_title(metric, fontsize=10)
    panels[0].set_yticks(range(len(rows)), names, parse_math=False)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)  # the base on top
    handles = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))  # each label once
    columns = legend_columns(handles, width, 8)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=10)
    save_png_and_svg(figure, path)


def _draw_panel(panel: Axes, rows: Sequence[Sequence[float]]) -> None:
    means = [statistics.mean(values) for values in rows]
    spreads = [error_bar(values) for values in rows]
    panel.axvline(means[0], color=VERMILION, linewidth=1, label="mean of the first row")
    label = "mean ± standard deviation over seeds; without a bar one seed"
    style: dict[str, Any] = {"color": BLUE, "linestyle": "none"}
    panel.errorbar(means, range(len(rows)), xerr=spreads, marker="o", capsize=4, label=label, **style)
    for index, values in enumerate(rows):
        panel.plot(values, [index + 0.2] * len(values), marker=".", alpha=0.5, label="a run", **style)
    panel.grid(axis="x", alpha=0.3)
