"""Rows of Parquet files, also packed ones."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from modeling_dsa.command.optional_packages import optional_packages

from .remote_paths import AnyPath
from .rows import Rows, wanted_columns
from .unpacking import check_unpacked, open_unpacked

_ROWS = 256  # that are unpacked at once: each may be a value that the file holds a single time


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
    with open_unpacked(path) as file:
        try:
            yield parquet.ParquetFile(file)
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:  # damaged pages have no name
            raise ValueError(f"{path} is a broken Parquet file: write or download it again.") from error


def count_rows(path: AnyPath) -> int:
    """How many rows a Parquet file says that it has.

    Raises:
        FileNotFoundError, ValueError: As in `open_parquet`.
    """
    with open_parquet(path) as table:
        return int(table.metadata.num_rows)


def parquet_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    """The rows of a Parquet file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As in `open_parquet`, or the file lacks a column, or unpacks to out of all proportion.
    """
    with open_parquet(path) as table:
        wanted = list(wanted_columns(str(path), columns, table.schema_arrow.names))
        for number, values in enumerate(_parquet_values(path, table, wanted), 1):
            yield f"{path}, row {number}", dict(zip(wanted, values, strict=True))


def _parquet_values(path: AnyPath, table: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The values of each row, where neither pages nor rows unpack to out of all proportion."""
    packed, unpacked = path.stat().st_size, 0
    groups = (table.metadata.row_group(index) for index in range(table.metadata.num_row_groups))
    check_unpacked(str(path), sum(group.total_byte_size for group in groups), packed)
    for batch in table.iter_batches(_ROWS, columns=columns):
        found = (batch.column(name) for name in columns)
        arrays = [array.dictionary_decode() if hasattr(array, "dictionary_decode") else array for array in found]
        unpacked += sum(array.nbytes for array in arrays)
        check_unpacked(str(path), unpacked, packed)
        yield from zip(*(array.to_pylist() for array in arrays), strict=True)
