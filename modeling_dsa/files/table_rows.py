"""Rows of tables of text: fields between tabs or commas below a header."""

import csv
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from .lines import raw_lines
from .open_quotes import QuotedRow, swallowed_row
from .remote_paths import AnyPath
from .rows import Rows, wanted_columns

logger = logging.getLogger(__name__)

_TOLD = 3  # open quotation marks of a file, each by a warning


def tab_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    """The rows of a table with tabs, in which quotes are plain characters.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It lacks a column, a row has too many fields, or another program put a row's line ends in quotes.
    """
    # Not the csv module: SNLI's sentences have lone quotes, which are plain characters in these files.
    lines = (line.split("\t") if line else [] for line in (line.rstrip("\r\n") for line in raw_lines(path)))
    return _table_rows(_whole(lines, path), path, columns)


def _whole(lines: Iterable[list[str]], path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line, where lines are whole rows: other programs put a text with line ends in quotes."""
    row, is_told = None, False
    for number, fields in enumerate(lines, 1):
        row = row or QuotedRow(len(fields))
        first = row.ended_by(number, fields)
        if first is not None:
            found = f"{path}, line {first} opens a quotation mark that line {number} closes, but"
            if row.columns > 1:
                raise ValueError(
                    f"{found} these lines are rows of their own, as quotation marks are plain characters in "
                    "tables with tabs: write the table as .csv, or each row in one line with all its tabs."
                )
            if not is_told:  # sentences of a dialogue may be so
                _warn_once(
                    f"{found} these lines are texts of their own, as quotation marks are plain characters in "
                    "tables with tabs: if they are one, write the table as .csv."
                )
                is_told = True
        yield number, fields


def csv_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    """The rows of a table with commas, in which quotes hold line ends; warnings tell of quotes that nobody closes.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It lacks a column, a row has too many fields, or a quote is broken.
    """
    csv.field_size_limit(sys.maxsize)  # a news article may be longer than the module's 131,072 characters
    rows = csv.reader(raw_lines(path), strict=True)
    try:
        yield from _table_rows(_told(rows, path), path, columns)
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num} is broken ({error}): fix or remove it.") from error


def _told(rows: Any, path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """The fields of each row; warnings say where open quotation marks seem to hold others."""
    columns, found = 0, 0
    for fields in rows:
        columns = columns or len(fields)
        swallowed = swallowed_row(fields, columns)
        if swallowed is not None:
            found += 1
            if found <= _TOLD:
                _warn_once(
                    f"{path}, line {rows.line_num}: a field of several lines holds {swallowed[:80]!r}, which looks "
                    "like a row of its own: if it is one, close the quotation mark that is open before it."
                )
        yield rows.line_num, fields
    if found > _TOLD:  # articles of several lines have many
        _warn_once(f"{path}: {found - _TOLD:,} more fields of several lines hold what looks like a row of its own.")


@cache
def _warn_once(message: str) -> None:
    """A file is read more than once."""
    logger.warning(message)


def _table_rows(lines: Iterator[tuple[int, list[str]]], path: AnyPath, columns: Sequence[str] | None) -> Rows:
    _, header = next(lines, (1, []))
    wanted = [(column, header.index(column)) for column in wanted_columns(str(path), columns, header)]
    if len(header) == 1 and (others := [mark for mark in ",;\t|" if mark in header[0]]):
        raise ValueError(
            f"{path} has one column, {header[0][:80]!r}: if {others[0]!r} separates its columns, write it with commas "
            "as .csv or with tabs as .tsv; else take that character out of the name."
        )
    for number, fields in lines:
        if not fields:  # an empty line
            continue
        location = f"{path}, line {number}"
        if [fields[0].removeprefix("\ufeff"), *fields[1:]] == header and len(header) > 1:
            raise ValueError(f"{location} repeats the names of the columns, as joined files do: remove it.")
        # A field too many means that a separator is in a text.
        if len(fields) > len(header):
            raise ValueError(f"{location} has {len(fields)} fields, but the header {len(header)}: fix or remove it.")
        # A line may end early, without its last, empty fields.
        yield location, {column: fields[index] if index < len(fields) else "" for column, index in wanted}
