"""What a benchmark keeps: one shape of a JSON file, its table in Markdown, its picture."""

import json
import operator
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from modeling_dsa.command.environment import environment
from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.replacing import replaced_file, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Figures: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """What a benchmark has found.

    Attributes:
        options: Those of the command that figures depend on.
        machine: What `describe_machine` says.
        setup: What was measured on: counts and sizes that the options do not say.
        results: The figures of each variant; null where one was not measured.
    """

    options: dict[str, Any]
    machine: dict[str, Any]
    setup: dict[str, Any]
    results: list[dict[str, Any]]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its head.
        cell: A format string over the figures of a row, as in "{seconds:,.1f} ({fastest:.1f} to {slowest:.1f})". The
            cell is empty where one of them is None.
        is_text: Aligned to the left.
    """

    title: str
    cell: str
    is_text: bool = False


@dataclass(frozen=True)
class Table:
    """How a record is shown.

    Attributes:
        columns: From left to right.
        rows: The figures of each row; by default a row for each result.
    """

    columns: Sequence[Column]
    rows: Callable[[Record], Iterable[Figures]] = operator.attrgetter("results")

    def as_markdown(self, record: Record) -> str:
        """The record's table."""
        return markdown_table(
            [column.title for column in self.columns],
            [[_cell(column.cell, row) for column in self.columns] for row in self.rows(record)],
            ["---" if column.is_text else "---:" for column in self.columns],
        )


def _cell(form: str, figures: Figures) -> str:
    try:
        return form.format_map(figures)
    except TypeError:  # None has no format and no parts
        return ""


def describe_machine() -> dict[str, Any]:
    """What figures depend on besides the options. To be asked before measuring, which is load itself."""
    return {
        "environment": environment(),
        "processor": torch.cpu.get_capabilities().get("cpu_name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def read_record(path: Path) -> Record:
    """A record that was written."""
    return Record(**json.loads(path.read_text(encoding="utf-8")))


def write_record(record: Record, table: Table, output: Path, draw: Callable[[Record], "Figure"] | None = None) -> None:
    """Write a record, its picture beside it, and its table into a README.md beside it that has a section for it.

    The section stands between the lines `<!-- table: NAME.json -->` and `<!-- end of table -->`.
    """
    write_json(asdict(record), output)
    readme = output.with_name("README.md")
    if readme.is_file():
        section = rf"(<!-- table: {re.escape(output.name)} -->\n).*?(<!-- end of table -->)"
        filled = re.sub(
            section,
            lambda lines: f"{lines[1]}{table.as_markdown(record)}\n{lines[2]}",
            readme.read_text(encoding="utf-8"),
            flags=re.S,
        )
        with replaced_file(readme) as beside:
            beside.write_text(filled, encoding="utf-8")
    if draw is not None:
        draw_record(record, draw, output)


def draw_record(record: Record, draw: Callable[[Record], "Figure"], output: Path) -> None:
    """Draw a record's picture beside it."""
    from modeling_dsa.files.pictures import save_with_fonts  # not where snli_epoch.py runs

    with replaced_file(output.with_suffix(".png")) as beside:
        save_with_fonts(draw(record), beside)


def keep(record: Record, table: Table, output: Path | None, draw: Callable[[Record], "Figure"] | None = None) -> None:
    """The end of each benchmark: print what was found; write it where there is an output."""
    for name, value in {**record.options, **record.setup, "load_before": record.machine["load_before"]}.items():
        print(f"{name}: {value}")
    print(f"\n{table.as_markdown(record)}")
    if output is not None:
        write_record(record, table, output, draw)
