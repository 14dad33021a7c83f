"""Compare finished runs: a table over seeds, paired tests, curves, and the examples on which they differ.

    python -m run_glue_style.compare runs/dsa-single-snli runs/static-cnn-snli --labelled dev.jsonl

Runs that differ in their seed alone are one row. The differences are those of each row to the first. Their interval and
p (examples) need the scores of the examples: those of --labelled, or of runs with --save_example_scores true.
OUTPUT_DIR gets table.md, plot.png and plot.svg, and with --labelled differing.csv.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from modeling_dsa.files.replacing import filled_folder

from .reporting.pictures import save_picture
from .reporting.run_comparison import (
    ComparedRow,
    Differing,
    classify_examples,
    compare_table,
    draw_curves,
    read_runs,
)
from .studies.command import run_command

TABLE, CURVES, DIFFERING = "table.md", "plot", "differing.csv"
METRICS = ("validation.accuracy", "test.accuracy")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="Folders of finished runs.")
    parser.add_argument(
        "--metric", nargs="+", metavar="NAME", help="Default: those of validation.accuracy and test.accuracy that are."
    )
    parser.add_argument(
        "--labelled", type=Path, metavar="FILE", help="Labelled texts or pairs that all models classify."
    )
    parser.add_argument(
        "--output_dir", type=Path, default=Path("runs/compared"), help="Where to write; default: %(default)s."
    )
    return parser.parse_args(argv)


def _compare(arguments: argparse.Namespace) -> tuple[Path, str]:
    rows = read_runs(arguments.runs)
    metrics = arguments.metric or [metric for metric in METRICS if any(row.values(metric) for row in rows)]
    differing: list[Differing] | None = None
    if arguments.labelled is not None:
        differing = classify_examples(rows, arguments.labelled)
        metrics = [*metrics, f"{arguments.labelled.name}.accuracy"]
    table = compare_table(rows, metrics)
    curves = draw_curves(rows)
    with filled_folder(arguments.output_dir, last=TABLE) as folder:
        save_picture(curves, folder / CURVES)
        if differing is not None:
            _write_differing(differing, rows, folder / DIFFERING)
        (folder / TABLE).write_text(f"{table}\n", encoding="utf-8")
    return arguments.output_dir, table


def _write_differing(examples: Sequence[Differing], rows: Sequence[ComparedRow], path: Path) -> None:
    pairs = bool(examples) and not isinstance(examples[0].text, str)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", *(["text_pair"] if pairs else []), "label", *(row.name for row in rows)])
        for example in examples:
            texts = [example.text] if isinstance(example.text, str) else example.text
            writer.writerow([*texts, example.label, *example.predicted])


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and compare; the exit code is that of `run_command`."""
    return run_command(partial(_compare, _parse(argv)))


if __name__ == "__main__":
    sys.exit(main())
