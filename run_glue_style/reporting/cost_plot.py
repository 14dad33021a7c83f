"""Accuracy against size and time: `python -m run_glue_style.reporting.cost_plot results/snli-table`.

What a paper's table says of all its systems (configuration/tables), and the test accuracy of the runs in a folder over
their trained parameters and, with --epochs, over the time of an epoch, as `benchmarks/table_epoch.py` measured it: the
runs themselves were made on machines with other work. The picture is FOLDER/costs.png and FOLDER/costs.svg.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modeling_dsa.command.command_line import make_parser
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.files.pictures import look, save_png_and_svg, scale_by_logarithm, wrapped
from modeling_dsa.files.replacing import filled_folder
from run_glue_style.training.results import read_metric

from .paper_comparison import read_epochs
from .published import PublishedTable, read_published
from .rows import read_rows
from .units import error_bar

_Point = tuple[float, float, float]  # x, accuracy in percent and its standard deviation or NaN


def draw_costs(
    table: PublishedTable,
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    path: Path,
    epochs: Mapping[str, float] | None,
) -> None:
    """Draw it as a PNG and as an SVG.

    Args:
        table: A paper's, with costs.
        runs: The results of each row's runs.
        path: Where, without an extension.
        epochs: Measured seconds of an epoch, by row; a row that has none is left out of that panel.

    Raises:
        ValueError: A run has no test accuracy.
    """
    costs = table.costs.items()
    sizes = {called: (cost.parameters, cost.accuracy, math.nan) for called, cost in costs}
    times = {called: (cost.epoch_seconds, cost.accuracy, math.nan) for called, cost in costs if cost.epoch_seconds}
    ours = {row: _point(of_row) for row, of_row in runs.items()}
    figure = Figure(figsize=(12, 5.6 if epochs is None else 9.0), layout="constrained")
    panels = figure.subplots(1, 3) if epochs is None else figure.subplots(2, 2).flatten()
    # A run's mark is that of its system in the paper; those that the paper does not have come behind.
    called = {f"{name}-{table.name}": system.called for name, system in table.systems.items()}
    systems = {row: called.get(row) or row for row in ours}
    numbers = {name: number for number, name in enumerate(dict.fromkeys([*sizes, *systems.values()]))}
    _draw(panels[0], sizes, numbers, "trained parameters, millions")
    _draw(panels[1], times, numbers, "seconds an epoch, one GTX 1080 Ti")
    _draw(panels[2], ours, {row: numbers[name] for row, name in systems.items()}, "trained parameters, millions")
    titles = ["published", "published", "ours, on the data of these runs"]
    if epochs is not None:
        timed = {row: (epochs[row], *point[1:]) for row, point in ours.items() if row in epochs}
        of_timed = {row: numbers[systems[row]] for row in timed}
        _draw(panels[3], timed, of_timed, f"seconds an epoch at {table.title}'s size, measured here: medians")
        titles.append("ours, on the data of these runs")
        panels[2].set_ylabel("test accuracy, percent")
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title, fontsize=10)
        scale_by_logarithm(panel, "{x:g}")
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("test accuracy, percent")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=2, fontsize=7, frameon=False)
    spread = any(not math.isnan(spread) for *_, spread in ours.values())
    key = "mean ± standard deviation; without a bar one seed" if spread else None
    panels[2].legend(fontsize=7, title=key, title_fontsize=7)
    figure.suptitle(wrapped(f"{table.title}: accuracy against cost", figure.get_figwidth(), 10), fontsize=10)
    save_png_and_svg(figure, path)


def _point(runs: Sequence[Mapping[str, Any]]) -> _Point:
    accuracies = [100 * read_metric(run, "test.accuracy") for run in runs]
    spread = error_bar(accuracies)
    return runs[0]["trained_parameters"] / 1e6, statistics.mean(accuracies), spread


def _draw(panel: Axes, points: Mapping[str, _Point], numbers: Mapping[str, int], axis: str) -> None:
    """A mark for each system, which its number chooses."""
    for name, (x, accuracy, spread) in points.items():
        style = {"linestyle": "none", "label": name, **look(numbers[name])}
        if math.isnan(spread):
            panel.plot([x], [accuracy], **style)
        else:
            panel.errorbar([x], [accuracy], yerr=[spread], capsize=4, **style)
    panel.set_xlabel(axis)


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and draw; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path, help="Folder of runs.")
    parser.add_argument("--table", default="snli", help="The paper's table; default: snli.")
    parser.add_argument("--epochs", type=Path, metavar="FILE", help="Measured epochs: benchmarks/table_epoch.json.")
    return exit_code_of(partial(_draw_folder, parser.parse_args(argv)), argv)


def _draw_folder(arguments: argparse.Namespace) -> None:
    table, runs = read_published(arguments.table), read_rows(arguments.folder)
    if not table.costs:
        raise ValueError(f"The table '{table.name}' says nothing of costs: give another --table.")
    epochs = None if arguments.epochs is None else read_epochs(arguments.epochs)
    with filled_folder(arguments.folder) as beside:
        draw_costs(table, runs, beside / "costs", epochs)


if __name__ == "__main__":
    sys.exit(main())
