"""`dsa compare`: finished runs side by side, in a table over seeds with paired tests, curves, and differing examples.

The command `dsa` finds this verb by the entry point in pyproject.toml, as its own package knows nothing of training.
"""

import argparse
import csv
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.command.optional_packages import optional_packages
from modeling_dsa.command.standard_output import standard_output
from modeling_dsa.files.outputs import refuse_input, refuse_other_files, require_folder
from modeling_dsa.files.replacing import filled_folder, write_json

if TYPE_CHECKING:
    from .run_comparison import ComparedRow, Differing

logger = logging.getLogger(__name__)

TABLE, TABLE_JSON, CURVES, DIFFERING = "table.md", "table.json", "plot", "differing.csv"
METRICS = ("validation.accuracy", "test.accuracy")


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Compare finished runs: a table over seeds, paired tests, curves, and the examples on which they differ."
    parser = commands.add_parser(
        "compare",
        help=text,
        description=f"{text} Runs that differ in their seed alone are one row. The differences are those of each row "
        "to the first. Their interval and p (examples) need the scores of the examples: those of --labelled, or of "
        "runs with --save_example_scores true. OUTPUT_DIR gets table.md, table.json, plot.png and plot.svg, and "
        "with --labelled differing.csv.",
    )
    parser.set_defaults(run=run)
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


def run(arguments: argparse.Namespace) -> int:
    """Compare; 0 once all is written.

    Raises:
        ValueError: The runs cannot be compared, a file of theirs is damaged, or matplotlib is missing.
        OSError: A file is missing or cannot be written.
    """
    with optional_packages("Comparing", "train", "matplotlib", "pandas", "pyarrow", "accelerate", "datasets", "scipy"):
        from modeling_dsa.files.pictures import save_png_and_svg

        from .run_comparison import classify_examples, compare_json, compare_rows, compare_table, draw_curves, read_runs

    require_folder(arguments.output_dir, "--output_dir")
    if arguments.labelled is not None:
        refuse_input(arguments.output_dir / DIFFERING, [arguments.labelled], "--output_dir")
    _refuse_other_comparison(arguments.output_dir)
    rows = read_runs(arguments.runs)
    metrics = arguments.metric or [metric for metric in METRICS if any(row.values(metric) for row in rows)]
    if not metrics and arguments.labelled is None:
        known = [f"{split}.{name}" for split, of_split in rows[0].first["metrics"].items() for name in of_split]
        raise ValueError(f"No run has {' or '.join(METRICS)}: name others with --metric, such as {known[0]}.")
    differing = None
    if arguments.labelled is not None:
        differing = classify_examples(rows, arguments.labelled)
        metrics = [*metrics, f"{arguments.labelled.name}.accuracy"]
    differences = compare_rows(rows, metrics)
    table = compare_table(rows, metrics, differences)
    curves = draw_curves(rows)
    with filled_folder(arguments.output_dir, last=TABLE) as folder:
        save_png_and_svg(curves, folder / CURVES)
        if differing is not None:
            _write_differing(differing, rows, folder / DIFFERING)
        write_json(compare_json(rows, metrics, differences, arguments.labelled), folder / TABLE_JSON)
        (folder / TABLE).write_text(f"{table}\n", encoding="utf-8")
    if differing is None:  # those of an earlier comparison
        (arguments.output_dir / DIFFERING).unlink(missing_ok=True)
    logger.info(f"The table is {arguments.output_dir / TABLE}, its picture {arguments.output_dir / CURVES}.png.")
    with standard_output() as answer:
        print(table, file=answer)
    return 0


def _refuse_other_comparison(folder: Path) -> None:
    """Refuse to replace or remove files of the comparison's names that are none of `dsa compare`."""
    from .run_comparison import LAST_LINE

    table = folder / TABLE
    if table.is_file() and table.read_text(encoding="utf-8", errors="replace").rstrip().endswith(LAST_LINE):
        return
    refuse_other_files(
        [table, *(folder / name for name in (TABLE_JSON, f"{CURVES}.png", f"{CURVES}.svg", DIFFERING))], "--output_dir"
    )


def _write_differing(examples: "Sequence[Differing]", rows: "Sequence[ComparedRow]", path: Path) -> None:
    pairs = rows[0].first["model"]["sentences_per_example"] == 2
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", *(["text_pair"] if pairs else []), "label", *(row.name for row in rows)])
        for example in examples:
            texts = [example.text] if isinstance(example.text, str) else example.text
            writer.writerow(map(replace_surrogates, [*texts, example.label, *example.predicted]))
