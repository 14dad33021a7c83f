"""How systems grow with their examples: `python -m run_glue_style.reporting.growth_plot results/distillation-growth`.

A panel for each metric, over the examples that a run saw: those that it had, times its epochs. Of each system a line
joins the runs of one epoch, which saw more for having more, and a dashed one those that saw the same ones more often.
The picture is FOLDER/growth.png and FOLDER/growth.svg.
"""

import argparse
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
from modeling_dsa.files.pictures import look, save_png_and_svg, scale_by_logarithm
from modeling_dsa.files.replacing import filled_folder
from run_glue_style.training.results import epochs_trained, read_metric

from .rows import read_rows
from .units import error_bar, is_percent

_Runs = Sequence[Mapping[str, Any]]
_MORE, _AGAIN = "one epoch over more", "more epochs over the same"


def draw_growth(rows: Mapping[str, _Runs], metrics: Sequence[str], path: Path) -> None:
    """Draw it as a PNG and as an SVG.

    Args:
        rows: The runs of each row, which differ in examples, epochs, encoder and pooling.
        metrics: Such as "validation.cosine".
        path: Where, without an extension.

    Raises:
        ValueError: A run has no such metric.
    """
    figure = Figure(figsize=(1 + 4.4 * len(metrics), 4.4), layout="constrained")
    for panel, metric in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
        for number, (system, lines) in enumerate(_lines(rows).items()):
            for name, runs in lines.items():
                if runs:
                    style = {**look(number), "label": f"{system}: {name}", "linestyle": "--" if name == _AGAIN else "-"}
                    _draw(panel, runs, metric, style)
        scale_by_logarithm(panel, "{x:,.0f}")
        panel.set(xlabel="examples seen", ylabel="percent" if is_percent(metric) else "")
        panel.set_title(metric, fontsize=10)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(alpha=0.3)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    save_png_and_svg(figure, path)


def _lines(rows: Mapping[str, _Runs]) -> dict[str, dict[str, list[_Runs]]]:
    """The rows of each line, by system and kind, in the order of what they saw."""
    lines: dict[str, dict[str, list[_Runs]]] = {}
    for runs in sorted(rows.values(), key=_seen):
        model = runs[0]["model"]
        of_system = lines.setdefault(f"{model['encoder']}, {model['pooling']}", {_MORE: [], _AGAIN: []})
        of_system[_MORE if _epochs(runs) <= 1 else _AGAIN].append(runs)
    for of_system in lines.values():
        if again := of_system[_AGAIN]:
            start = [runs for runs in of_system[_MORE] if _examples(runs) == _examples(again[0])]
            of_system[_AGAIN] = [*start, *again]
    return lines


def _draw(panel: Axes, line: Sequence[_Runs], metric: str, style: Mapping[str, Any]) -> None:
    unit = 100 if is_percent(metric) else 1
    values = [[unit * read_metric(run, metric) for run in runs] for runs in line]
    spreads = [error_bar(found) for found in values]
    means = [statistics.mean(found) for found in values]
    panel.errorbar([_seen(runs) for runs in line], means, spreads, markersize=4, capsize=3, **style)


def _examples(runs: _Runs) -> int:
    return int(runs[0]["data"]["train"]["examples"])


def _epochs(runs: _Runs) -> float:
    return statistics.mean(map(epochs_trained, runs))


def _seen(runs: _Runs) -> float:
    return _examples(runs) * _epochs(runs)


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and draw; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path, help="Folder of a grid's runs.")
    parser.add_argument("--metrics", nargs="+", default=["validation.cosine"], help="Default: validation.cosine.")
    return exit_code_of(partial(_draw_folder, parser.parse_args(argv)), argv)


def _draw_folder(arguments: argparse.Namespace) -> None:
    rows = read_rows(arguments.folder)
    try:
        with filled_folder(arguments.folder) as beside:
            draw_growth(rows, arguments.metrics, beside / "growth")
    except KeyError as error:
        raise ValueError(f"A run in {arguments.folder} has no {error}: make it again.") from error


if __name__ == "__main__":
    sys.exit(main())
