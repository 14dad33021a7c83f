"""A picture of a grid: a panel for each metric, with each row's runs, their mean and the base's."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Blue and vermilion of Okabe and Ito stay apart for every kind of colour vision.
_RUNS, _BASE = "#0072B2", "#D55E00"


def draw_grid(title: str, metrics: Sequence[str], rows: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Draw it as a PNG and as an SVG.

    Args:
        title: What the grid asks.
        metrics: Names of the metrics.
        rows: The values of each metric over the seeds, by row, as shares; the first row is the base.
        path: Where, without an extension.
    """
    figure = Figure(figsize=(2.4 + 3.2 * len(metrics), 1.4 + 0.34 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for index, (panel, metric) in enumerate(zip(panels, metrics, strict=True)):
        _draw_panel(panel, [[100 * value for value in values[index]] for values in rows.values()])
        panel.set_title(metric, fontsize=10)
    panels[0].set_yticks(range(len(rows)), list(rows))
    panels[0].set_ylim(len(rows) - 0.5, -0.5)  # the base on top
    figure.suptitle(title, fontsize=10, wrap=True)
    # The same figures give the same bytes.
    figure.savefig(path.with_suffix(".png"), dpi=150, metadata={"Software": None})
    with matplotlib.rc_context({"svg.hashsalt": "grid"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})


def _draw_panel(panel: Axes, rows: Sequence[Sequence[float]]) -> None:
    means = [statistics.mean(values) for values in rows]
    spreads = [statistics.stdev(values) if len(values) > 1 else 0.0 for values in rows]
    panel.axvline(means[0], color=_BASE, linewidth=1)
    panel.errorbar(means, range(len(rows)), xerr=spreads, color=_RUNS, marker="o", linestyle="none", capsize=4)
    for index, values in enumerate(rows):
        panel.plot(values, [index + 0.2] * len(values), color=_RUNS, marker=".", linestyle="none", alpha=0.5)
    panel.set_xlabel("percent")
    panel.grid(axis="x", alpha=0.3)
