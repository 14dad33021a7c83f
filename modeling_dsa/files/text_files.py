"""Rows and texts of files in any format, which the extension tells."""

from collections.abc import Callable, Sequence
from pathlib import Path

from modeling_dsa.command.messages import listed

from .json_rows import json_file_rows, json_line_rows
from .lines import read_lines
from .parquet_rows import parquet_rows
from .remote_paths import AnyPath
from .rows import Rows
from .table_rows import csv_rows, tab_rows
from .text_values import optional_text


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


def file_extension(path: AnyPath) -> str:
    """The extension that says how to read a file, in lower case and without `.gz`.

    Raises:
        ValueError: `read_rows` does not know it, or the path is a folder's.
    """
    extension = _extension(path)
    if extension not in _READERS and path.is_dir():
        raise ValueError(f"{path} is a folder: give one file of it.")
    if extension not in _READERS:
        supported = ", ".join(_READERS)
        raise ValueError(f"{path} has an unsupported extension: give {supported} or one of them with .gz behind.")
    return extension


def is_readable(path: AnyPath) -> bool:
    """Whether a file's extension is one that `read_rows` knows."""
    return _extension(path) in _READERS


def _extension(path: AnyPath) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


_READERS: dict[str, Callable[[AnyPath, Sequence[str] | None], Rows]] = {
    ".txt": tab_rows,
    ".jsonl": json_line_rows,
    ".json": json_file_rows,
    ".csv": csv_rows,
    ".tsv": tab_rows,
    ".parquet": parquet_rows,
}
