"""Make a paper's table again: train each of its systems with several seeds and write ours beside the published figures.

    python -m run_glue_style.reproduce --table snli --recipe modern --seeds 3
    python -m run_glue_style.reproduce --table sst --data_dir trees --vectors glove.840B.300d.zip

All other options (--recipe, --mixed_precision, --num_train_epochs ...) go to the script that trains: run_nli.py,
run_sst.py or run_stance.py; --vectors is needed where the data are not those of the package. The table is in
OUTPUT_DIR/table.md, table.json and plot.png, and grows with each run. A run is OUTPUT_DIR/SETTING/seed-N.json, its
model is in the folder OUTPUT_DIR/SETTING/seed-N. The same command resumes where it was stopped; what
is finished is not done again.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from modeling_dsa.command.command_line import make_parser, whole_number
from run_glue_style.reporting.grid.definition import LEFT_OUT
from run_glue_style.reporting.paper_comparison import Comparison, read_epochs
from run_glue_style.reporting.published import PublishedTable, read_published
from run_glue_style.reporting.rows import read_rows
from run_glue_style.reporting.tabulate import write_comparison
from run_glue_style.studies.command import run_study
from run_glue_style.studies.runs import PlannedRun, check_run, make_runs
from run_glue_style.studies.table_plan import plan_runs


def reproduce(
    table: PublishedTable,
    runs: Sequence[PlannedRun],
    output_dir: Path,
    quick: bool,
    epochs: Mapping[str, float] | None,
) -> Comparison:
    """Make the runs that are not there yet, and the table after each.

    Args:
        table: The paper's.
        runs: What is to be trained.
        output_dir: Folder of runs and table.
        quick: Whether it is only a trial.
        epochs: As for `Comparison`.

    Raises:
        ValueError: A finished run was made with other options, or does not fit into the table.
        ChildProcessError: A run failed.
        KeyboardInterrupt: It was asked to stop; a run in training has written a checkpoint.
    """

    def comparison() -> Comparison:
        return Comparison(table, read_rows(output_dir), quick, epochs)

    if any(output_dir.glob("*/*.json")):
        comparison()  # mistakes are told before hours of training
    make_runs(runs, lambda: write_comparison(comparison(), output_dir))
    return comparison()


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and make the table; the exit code is that of `run_study`."""
    parser = make_parser(__doc__)
    parser.add_argument("--table", required=True, help="Table of a paper: snli, sst or fnc1.")
    parser.add_argument(
        "--row", nargs="+", default=[], help="Only these systems (dsa-single) or settings (dsa-single-sst2)."
    )
    parser.add_argument(
        "--seeds", type=whole_number(1), default=1, help="Train each with the seeds 0 to SEEDS - 1; default: 1."
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="Only a trial: a few updates on few examples. It has a folder of its own, OUTPUT_DIR-quick.",
    )
    parser.add_argument("--output_dir", type=Path, help="Folder of runs and table; default: runs/reproduce-TABLE.")
    parser.add_argument(
        "--data_dir",
        type=Path,
        help="Folder with the data under their original names: train.txt, dev.txt and test.txt with trees for sst, the "
        "four .csv for fnc1; for snli the three .jsonl, or nothing for the pairs of the package.",
    )
    parser.add_argument(
        "--epochs",
        type=Path,
        metavar="FILE",
        help="Measured seconds of an epoch, benchmarks/table_epoch.json, for the table; default: those of the runs.",
    )
    return run_study(parser, LEFT_OUT | {"setting": "give --row", "seed": "give --seeds"}, _make, argv)


def _make(arguments: argparse.Namespace, options: Sequence[str]) -> tuple[Path, str]:
    table = read_published(arguments.table)
    output_dir = arguments.output_dir or Path("runs") / f"reproduce-{table.name}"
    if arguments.quick:
        output_dir = output_dir.parent / f"{output_dir.resolve().name}-quick"
    if arguments.epochs is not None and not table.costs:
        raise ValueError(f"The table '{table.name}' has no seconds: leave --epochs out.")
    epochs = None if arguments.epochs is None else read_epochs(arguments.epochs)
    runs = plan_runs(table, arguments.row, arguments.seeds, arguments.quick, output_dir, arguments.data_dir, options)
    for run in runs[: len(runs) // arguments.seeds]:  # mistakes are told before hours of training
        try:
            check_run(run)
        except (ValueError, OSError) as error:
            raise ValueError(f"{run.folder.parent.name}: {error}") from error
    return output_dir, reproduce(table, runs, output_dir, arguments.quick, epochs).as_markdown()


if __name__ == "__main__":
    sys.exit(main())
