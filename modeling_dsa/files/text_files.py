"""Rows, lines and texts of files: JSON lines, tables and Parquet, each also packed with gzip."""

import csv
import gzip
import json
import logging
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

from .messages import it_has, listed
from .open_quotes import QuotedRow, swallowed_row
from .optional_packages import optional_packages
from .remote_paths import AnyPath
from .unpacking import GzipReader, check_unpacked

logger = logging.getLogger(__name__)

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Iterator[tuple[str, Row]]  # where each row is, such as "a.csv, line 7", and its values by column

DASH, STANDARD_INPUT = "-", "standard input"  # on a command line, and in messages
_CHUNK = 1 << 18  # bytes that are unpacked at once
_TOLD = 3  # open quotation marks of a file, each by a warning
_PARQUET_ROWS = 256  # that are unpacked at once: each may be a value that the file holds a single time


def read_texts(paths: Sequence[Path], columns: Sequence[str] = ()) -> list[str]:
    r"""Read the texts of files, in their order; an empty or missing value is no text.

    Args:
        paths: UTF-8 files: `.txt` with one text a line where no columns are given, else the formats of `read_rows`.
        columns: The columns that hold texts.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As in `read_rows`, or no columns are given, or a value is no text. The message says where.
    """
    texts: list[str] = []
    for path in paths:
        if file_extension(path) == ".txt" and not columns:
            texts.extend(line for _, line in read_lines(path) if line)
            continue
        for location, row in read_rows(path, columns or None):
            if not columns:
                raise ValueError(f"{path} has the columns {listed(row)}: say with --text_column which hold the texts.")
            for value in row.values():
                if text := optional_text(value, location):
                    texts.append(text)
    return texts


def required_text(value: object, location: str) -> str:
    """A text with more than blanks in it.

    Raises:
        ValueError: The value is none.
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{location}: {value!r:.80} is no text: fix or remove it.")
    return value


def row_texts(row: Row, columns: Sequence[str], location: str) -> list[str]:
    """The texts of a row, by its columns of texts.

    Raises:
        ValueError: One of them has none.
    """
    return [required_text(row[column], f"{location}, column {column!r}") for column in columns]


def optional_text(value: object, location: str) -> str:
    """A text, empty for a missing value.

    Raises:
        ValueError: The value is something else.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{location}: {value!r:.80} is no text: fix the row or name another column.")
    return value


def read_rows(path: AnyPath, columns: Sequence[str] | None = None) -> Rows:
    r"""Read a file's rows one after another; empty lines are no rows, but rows of empty values are. No two columns may
    have one name.

    Args:
        path: A UTF-8 file: `.jsonl` with one object a line, `.json` with that or one array of objects, `.csv`, `.tsv`
            and tab-separated `.txt` with a header (in these two quotes are plain characters), `.parquet` (which needs
            pyarrow), each also with `.gz` behind.
        columns: The columns to read, which the file must have; None reads all that there are.

    Returns:
        Where each row is, such as `a.csv, line 7`, and its values by column, in the order of `columns`. Values
        are texts in tables, where a line that ends early has empty texts in its last columns, and of any type
        elsewhere. Mistakes but for the extension come to light while the rows are read.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file has an unsupported extension, is broken, lacks a column, or unpacks to out of all
            proportion. The message says where.
    """
    return _READERS[file_extension(path)](path, columns)


def read_lines(path: AnyPath) -> Iterator[tuple[str, str]]:
    """Read the lines of a UTF-8 file, also with `.gz` behind.

    Yields:
        Where the line is, such as `a.txt, line 7`, and the line without its end.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8 or a broken gzip file.
    """
    for number, line in enumerate(_lines(path), 1):
        yield f"{path}, line {number}", line.rstrip("\r\n")


def read_standard_input() -> Iterator[tuple[str, str]]:
    """Read the lines of standard input as they come; as in `read_lines`.

    Raises:
        ValueError: It is closed, or a line is not UTF-8.
    """
    if sys.stdin is None:
        raise ValueError("Standard input is closed: pipe sentences into it, or give a file.")
    for number, line in enumerate(_decoded(STANDARD_INPUT, sys.stdin.buffer), 1):
        yield f"{STANDARD_INPUT}, line {number}", line.rstrip("\r\n")


def file_extension(path: AnyPath) -> str:
    """The extension that says how to read a file, in lower case and without `.gz`.

    Raises:
        ValueError: `read_rows` does not know it.
    """
    extension = _extension(path)
    if extension not in _READERS:
        supported = ", ".join(_READERS)
        raise ValueError(f"{path} has an unsupported extension: give {supported} or one of them with .gz behind.")
    return extension


def is_readable(path: AnyPath) -> bool:
    """Whether a file's extension is one that `read_rows` knows."""
    return _extension(path) in _READERS


def _extension(path: AnyPath) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def require_column(where: str, column: str, there: Iterable[str]) -> None:
    """Refuse a column that is not there.

    Raises:
        ValueError: It is none of them.
    """
    if column not in there:
        raise ValueError(f"{where} has no column {column!r}: {it_has(column, there)}")


@contextmanager
def open_parquet(path: AnyPath) -> Iterator[Any]:
    """Open a file as a `pyarrow.parquet.ParquetFile`, unpacked where it ends in `.gz`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: pyarrow is not installed, or the file is a broken Parquet file; also while it is read.
    """
    with optional_packages(f"Reading {path}", "evaluation", "pyarrow"):
        import pyarrow
        from pyarrow import parquet
    with _open(path) as file:
        try:
            yield parquet.ParquetFile(file)
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:  # damaged pages have no name
            raise ValueError(f"{path} is a broken Parquet file: write or download it again.") from error


@contextmanager
def _open(path: AnyPath) -> Iterator[BufferedIOBase]:
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}: give files of texts.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the files in it.")
    if not path.is_file():  # it is read more than once, and a pipe would wait for ever
        raise ValueError(f"{path} is no regular file: write what it gives to a file first, or pipe it to `-`.")
    try:
        with ExitStack() as opened:
            file: Any = opened.enter_context(path.open("rb"))
            if not isinstance(path, Path):  # fsspec's own way to lines is slow
                file = opened.enter_context(BufferedReader(file))
            if path.name.lower().endswith(".gz"):
                file = opened.enter_context(BufferedReader(GzipReader(file, path), _CHUNK))
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a broken gzip file ({error}): pack or download it again.") from error


def _lines(path: AnyPath) -> Iterator[str]:
    with _open(path) as file:
        yield from _decoded(str(path), file)


def _decoded(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}, line {number} is not UTF-8: save it as UTF-8.") from error
        if number == 1:
            _refuse_other_lines(name, text)
        yield text


def _refuse_other_lines(name: str, first: str) -> None:
    """Refuse what would be read as UTF-8, but as other lines than were meant."""
    if "\0" in first:
        raise ValueError(f"{name}, line 1 holds a zero byte, as UTF-16 and files of programs do: save it as UTF-8.")
    if "\r" in first.rstrip("\r\n"):
        raise ValueError(
            f"{name}, line 1 holds a carriage return that ends no line, as in files of old Macs: end lines with \\n."
        )


def _json_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        location = f"{path}, line {number}"
        row = _parsed(line, location)
        if not isinstance(row, dict):
            found, example = repr(line[:80].strip()), '{"text": "..."}'
            raise ValueError(f"{location} is no JSON object but {found}: each line must be one, such as {example}.")
        yield location, {column: row[column] for column in _wanted(location, columns, list(row))}


def _parsed(text: str, location: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_with_single_keys)
    except json.JSONDecodeError as error:
        if "\n" in text.rstrip("\r\n"):
            location += f", line {error.lineno}"
        what = f"{error.msg} at character {error.colno}"
    except RecursionError:
        what = "it is nested too deeply"
    except ValueError as error:  # a key that stands twice, or a number of thousands of digits
        what = str(error).partition(";")[0]
    raise ValueError(f"{location} is broken JSON ({what}): fix or remove it.")


def _with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"it has the key {_repeated([key for key, _ in pairs])!r} twice")
    return found


def _repeated(names: Sequence[str]) -> str | None:
    """The first name that stands twice, if one does."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _json_file_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    first = next((line for line in _lines(path) if line.strip()), "")
    if not first.lstrip().startswith("["):
        yield from _json_rows(path, columns)
        return
    rows = _parsed("".join(_lines(path)), str(path))
    for number, row in enumerate(rows, 1):
        location = f"{path}, row {number}"
        if not isinstance(row, dict):
            raise ValueError(f"{location} is no JSON object but {repr(row)[:80]}: the array must hold objects.")
        yield location, {column: row[column] for column in _wanted(location, columns, list(row))}


def _tab_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    # Not the csv module: SNLI's sentences have lone quotes, which are plain characters in these files.
    lines = (line.split("\t") if line else [] for line in (line.rstrip("\r\n") for line in _lines(path)))
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


def _csv_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    csv.field_size_limit(sys.maxsize)  # a news article may be longer than the module's 131,072 characters
    rows = csv.reader(_lines(path), strict=True)
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
    wanted = [(column, header.index(column)) for column in _wanted(str(path), columns, header)]
    if len(header) == 1 and (others := [mark for mark in ",;\t|" if mark in header[0]]):
        raise ValueError(
            f"{path} has one column, {header[0][:80]!r}: if {others[0]!r} separates its columns, write it with commas "
            "as .csv or with tabs as .tsv; else take that character out of the name."
        )
    for number, fields in lines:
        if not fields:  # an empty line
            continue
        location = f"{path}, line {number}"
        if fields == header and len(header) > 1:
            raise ValueError(f"{location} repeats the names of the columns, as joined files do: remove it.")
        # A field too many means that a separator is in a text.
        if len(fields) > len(header):
            raise ValueError(f"{location} has {len(fields)} fields, but the header {len(header)}: fix or remove it.")
        # A line may end early, without its last, empty fields.
        yield location, {column: fields[index] if index < len(fields) else "" for column, index in wanted}


def _parquet_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    with open_parquet(path) as table:
        wanted = list(_wanted(str(path), columns, table.schema_arrow.names))
        for number, values in enumerate(_parquet_values(path, table, wanted), 1):
            yield f"{path}, row {number}", dict(zip(wanted, values, strict=True))


def _parquet_values(path: AnyPath, table: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The values of each row, where neither pages nor rows unpack to out of all proportion."""
    packed, unpacked = path.stat().st_size, 0
    groups = (table.metadata.row_group(index) for index in range(table.metadata.num_row_groups))
    check_unpacked(str(path), sum(group.total_byte_size for group in groups), packed)
    for batch in table.iter_batches(_PARQUET_ROWS, columns=columns):
        found = (batch.column(name) for name in columns)
        arrays = [array.dictionary_decode() if hasattr(array, "dictionary_decode") else array for array in found]
        unpacked += sum(array.nbytes for array in arrays)
        check_unpacked(str(path), unpacked, packed)
        yield from zip(*(array.to_pylist() for array in arrays), strict=True)


def _wanted(location: str, columns: Sequence[str] | None, there: Sequence[str]) -> Sequence[str]:
    """The columns to read of those that are there, of which no two may have one name."""
    repeated = _repeated([name for name in there if name])  # tables end in empty columns without a name
    if repeated is not None:
        raise ValueError(f"{location} has the column {repeated!r:.80} twice: rename or remove one.")
    for column in columns or ():
        require_column(location, column, there)
    return there if columns is None else columns


_READERS: dict[str, Callable[[AnyPath, Sequence[str] | None], Rows]] = {
    ".txt": _tab_rows,
    ".jsonl": _json_rows,
    ".json": _json_file_rows,
    ".csv": _csv_rows,
    ".tsv": _tab_rows,
    ".parquet": _parquet_rows,
}
