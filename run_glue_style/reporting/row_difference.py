"""How much better one row of a folder of runs is than another, over the seeds that both have.

    python -m run_glue_style.reporting.row_difference results/sst dsa-single-sst2 static-cnn-sst2

For each metric: the mean difference, Student's 95 % interval over the seeds, and a paired t-test over them.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from modeling_dsa.command.command_line import make_parser
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.command.messages import suggestion
from modeling_dsa.command.standard_output import standard_output
from modeling_dsa.files.markdown import markdown_table
from run_glue_style.training.results import read_metric

from .grid.differences import OTHER_EXAMPLES, Measured, compare, difference_cells
from .rows import read_rows


def difference_table(folder: Path, row: str, other: str, metrics: Sequence[str]) -> str:
    """The differences of two rows as Markdown.

    Args:
        folder: Of runs, FOLDER/ROW/seed-N.json.
        row: A row.
        other: The row that it is compared with.
        metrics: Such as `test.accuracy`.

    Raises:
        ValueError: There is no such row or metric, or the rows have no seed in common or other examples.
    """
    rows = read_rows(folder)
    for name in (row, other):
        if name not in rows:
            raise ValueError(f"{folder} has no row '{name}'. {suggestion(name, rows)}")
    lines = []
    for metric in metrics:
        found = compare(_measured(rows[row], metric), _measured(rows[other], metric), metric)
        if found is None:
            raise ValueError(f"{row} and {other} have no seed in common: train both with the same seeds.")
        if found == OTHER_EXAMPLES:
            raise ValueError(f"{row} and {other} were measured on other examples, so '{metric}' has no difference.")
        told, _, p_seeds = difference_cells(found, metric)
        lines.append([metric, told, p_seeds, str(found.seeds)])
    return markdown_table([f"{row} less {other}", "difference [95 %]", "p (seeds)", "seeds"], lines)


def _measured(runs: Sequence[Mapping[str, Any]], metric: str) -> Measured:
    return Measured({run["seed"]: read_metric(run, metric) for run in runs}, runs=runs)


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and print the table; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path, help="Folder of runs.")
    parser.add_argument("row")
    parser.add_argument("other", help="The row that it is compared with.")
    parser.add_argument(
        "--metric", nargs="+", default=["validation.accuracy", "test.accuracy"], help="Default: both splits' accuracy."
    )
    return exit_code_of(partial(_print_difference, parser.parse_args(argv)), argv)


def _print_difference(arguments: argparse.Namespace) -> None:
    table = difference_table(arguments.folder, arguments.row, arguments.other, arguments.metric)
    with standard_output() as answer:
        print(table, file=answer)


if __name__ == "__main__":
    sys.exit(main())
