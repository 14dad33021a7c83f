"""Run an ablation that is a YAML file: train each row with several seeds and write how it differs from the base.

    python -m run_glue_style.run_grid snli-dynamic --output_dir runs/snli-dynamic
    python -m run_glue_style.run_grid my-grid.yaml --output_dir runs/my-grid --vectors glove.840B.300d.zip --seeds 0 1

All other options (data, vectors, --mixed_precision ...) go to the script that the grid names. All rows are checked
before the first one trains. The table is in OUTPUT_DIR/table.md, table.json, plot.png and plot.svg, and grows with each
run.
A run is OUTPUT_DIR/ROW/seed-N.json, with all its results but for texts of the data in seed-N.json.gz and the scores of
its examples in seed-N.npz; its model is in the folder OUTPUT_DIR/ROW/seed-N. The same command resumes where it was
stopped; what is finished is not done again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from modeling_dsa.command.command_line import make_parser, whole_number
from modeling_dsa.shipped.settings import grid_path
from run_glue_style.reporting.grid.definition import LEFT_OUT, read_grid
from run_glue_style.reporting.grid.table import GridTable
from run_glue_style.studies.command import run_study
from run_glue_style.studies.grid_plan import plan_grid
from run_glue_style.studies.runs import make_runs


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and make the table; the exit code is that of `run_study`."""
    parser = make_parser(__doc__)
    parser.add_argument("grid", help="A grid in configuration/grids by name, or a YAML file.")
    parser.add_argument("--output_dir", type=Path, help="Folder of runs and table; default: runs/GRID.")
    parser.add_argument("--row", nargs="+", default=[], help="Train only these rows.")
    parser.add_argument("--seeds", type=whole_number(0), nargs="+", help="Train with these seeds; default: the grid's.")
    return run_study(parser, LEFT_OUT | {"seed": "give --seeds"}, _make, argv)


def _make(arguments: argparse.Namespace, options: Sequence[str]) -> tuple[Path, str]:
    grid = read_grid(grid_path(arguments.grid))
    output_dir = arguments.output_dir or Path("runs") / grid.path.stem
    seeds = grid.seeds if arguments.seeds is None else arguments.seeds
    runs = plan_grid(grid, arguments.row, seeds, output_dir, options)
    GridTable(grid, output_dir)  # mistakes are told before hours of training
    make_runs(runs, lambda: GridTable(grid, output_dir).write())
    return output_dir, GridTable(grid, output_dir).as_markdown()


if __name__ == "__main__":
    sys.exit(main())
