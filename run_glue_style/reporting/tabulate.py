"""Write a folder of runs as one table: `python -m run_glue_style.reporting.tabulate results/snli`.

Each run is a file FOLDER/ROW/NAME.json, an all_results.json; the files of one ROW are its seeds. The table goes to
FOLDER/table.md. A folder of `run_grid`, which has a grid.yaml, gets the grid's table instead, one of `reproduce`, which
has a table.json, the paper's, both with table.json and plots, and one of `attention_entropy` or
`hop_overlap` its own.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from modeling_dsa.command.command_line import make_parser
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.command.messages import one_line
from modeling_dsa.command.standard_output import standard_output
from modeling_dsa.files.replacing import filled_folder, replaced_file, write_json

from .entropy_table import entropy_table, write_entropy
from .grid.table import read_grid_table
from .overlap_table import overlap_table, write_overlap
from .paper_comparison import Comparison
from .paper_plot import draw_comparison
from .plain_table import plain_table
from .published import read_published
from .rows import ENTROPY, OVERLAP, read_rows

# What `attention_entropy` and `hop_overlap` found in a folder, with what makes a table and the files of it.
_OF_STUDIES = {ENTROPY: (entropy_table, write_entropy), OVERLAP: (overlap_table, write_overlap)}


def read_comparison(folder: Path) -> Comparison | None:
    """The paper's table that `reproduce` fills in this folder, with the runs that are there now; None in others.

    Raises:
        ValueError: The folder has no runs, they do not fit into one table, or table.json is damaged.
    """
    path = folder / "table.json"
    if not path.is_file():
        return None
    with _record(path) as written:
        name, quick, epochs = written["table"], written["quick"], written.get("measured_epochs")
    return Comparison(read_published(name), read_rows(folder), quick, epochs)


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """Write table.md, table.json, plot.png and plot.svg."""
    with filled_folder(folder) as beside:
        (beside / "table.md").write_text(comparison.as_markdown(), encoding="utf-8")
        write_json(comparison.as_json(), beside / "table.json")
        draw_comparison(comparison, beside / "plot")


def table_and_writer(folder: Path) -> tuple[str, Callable[[], None]]:
    """What table.md of a folder says, made from its runs, and what writes it with the files that go with it.

    Raises:
        ValueError: The folder has no runs, they do not fit into one table, or a record is damaged.
    """
    for name, (as_table, write) in _OF_STUDIES.items():
        if (path := folder / name).is_file():
            with _record(path) as content:
                return as_table(content), partial(write, content, folder)
    if (grid := read_grid_table(folder)) is not None:
        return grid.as_markdown(), grid.write
    if (comparison := read_comparison(folder)) is not None:
        return comparison.as_markdown(), partial(write_comparison, comparison, folder)
    table = plain_table(read_rows(folder))
    return table, partial(_write_table, table, folder)


@contextmanager
def _record(path: Path) -> Iterator[Any]:
    """What a JSON file holds; where the block misses something in it, the message names the file."""
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else one_line(error)
        raise ValueError(f"{path} is damaged ({reason}): make it again.") from error


def _write_table(table: str, folder: Path) -> None:
    with replaced_file(folder / "table.md") as beside:
        beside.write_text(table, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line, write the table and print it; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path, help="Folder of the runs.")
    return exit_code_of(partial(_tabulate, parser.parse_args(argv).folder), argv)


def _tabulate(folder: Path) -> None:
    table, write = table_and_writer(folder)
    write()
    with standard_output() as answer:
        print(table, file=answer)


if __name__ == "__main__":
    sys.exit(main())
