"""Texts from files, to take a vocabulary from."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_Rows = Iterator[tuple[str, Sequence[Any]]]  # where each row stands, and its values in the wanted columns


def read_texts(paths: Sequence[Path], columns: Sequence[str] = ()) -> list[str]:
    r"""Read the texts of files, in their order; an empty or missing value is no text.

    Args:
        paths: UTF-8 files: `.txt` with one text a line, `.jsonl` with one object a line, `.csv` and `.tsv` with a
            header (in `.tsv` quotes are plain characters), `.parquet` (which needs pyarrow).
        columns: The columns that hold texts, in all files but `.txt`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file has another ending or is broken, lacks a column, or a value is no text. The message says
            where.
    """
    texts: list[str] = []
    for path in paths:
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            raise ValueError(f"{path} has an unknown ending: give {', '.join(_READERS)}.")
        if not path.exists():
            raise FileNotFoundError(f"There is no file {path}: give files of texts.")
        if path.is_dir():
            raise ValueError(f"{path} is a folder: give the files in it.")
        for place, values in reader(path, columns):
            for value in values:
                if value is not None and not isinstance(value, str):
                    raise ValueError(f"{place}: {value!r} is no text: mend the row or name another column.")
                if value:
                    texts.append(value)
    return texts


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number} is not UTF-8: save the file as UTF-8.") from error


def _txt_rows(path: Path, columns: Sequence[str]) -> _Rows:  # noqa: ARG001  (a .txt has no columns)
    for number, line in enumerate(_lines(path), 1):
        yield f"{path}, line {number}", [line.rstrip("\r\n")]


def _json_rows(path: Path, columns: Sequence[str]) -> _Rows:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{place} is broken JSON ({error.msg}): mend or remove it.") from error
        if not isinstance(row, dict):
            raise ValueError(f'{place} is no JSON object: each line must be one, such as {{"text": "..."}}.')
        _check_columns(place, columns, list(row))
        yield place, [row[column] for column in columns]


def _csv_rows(path: Path, columns: Sequence[str]) -> _Rows:
    return _table_rows(path, columns, csv.reader(_lines(path), strict=True))


def _tsv_rows(path: Path, columns: Sequence[str]) -> _Rows:
    return _table_rows(path, columns, csv.reader(_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE))


def _table_rows(path: Path, columns: Sequence[str], rows: Any) -> _Rows:
    try:
        header: list[str] = next(rows, [])
        _check_columns(str(path), columns, header)
        wanted = [header.index(column) for column in columns]
        for fields in rows:
            place = f"{path}, line {rows.line_num}"
            if len(fields) > len(header):
                raise ValueError(f"{place} has {len(fields)} fields, but the header {len(header)}: mend or remove it.")
            # A line may end early, without its last, empty fields.
            yield place, [fields[index] for index in wanted if index < len(fields)]
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num} is broken ({error}): mend or remove it.") from error


def _parquet_rows(path: Path, columns: Sequence[str]) -> _Rows:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(f'Reading {path} needs pyarrow: pip install "dsa-transformers[train]".') from error
    try:
        with parquet.ParquetFile(path) as file:
            _check_columns(str(path), columns, file.schema_arrow.names)
            number = 0
            for batch in file.iter_batches(columns=list(columns)):
                for values in zip(*(batch.column(column).to_pylist() for column in columns), strict=True):
                    number += 1
                    yield f"{path}, row {number}", values
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} is no whole Parquet file: write or download it again.") from error


def _check_columns(place: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    missing = [column for column in wanted if column not in there]
    if missing:
        raise ValueError(f"{place} has no column {missing[0]!r}: it has {', '.join(there)}.")
    if not wanted:
        raise ValueError(f"{place} has the columns {', '.join(there)}: say with --text_columns which hold the texts.")


_READERS: dict[str, Callable[[Path, Sequence[str]], _Rows]] = {
    ".txt": _txt_rows,
    ".jsonl": _json_rows,
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".parquet": _parquet_rows,
}
