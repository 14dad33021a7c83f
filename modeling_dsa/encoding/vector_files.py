"""Files of vectors that are written row by row, and are there when they are complete."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy

from modeling_dsa.command.optional_packages import optional_packages
from modeling_dsa.files.remote_paths import AnyPath
from modeling_dsa.files.replacing import replaced_file

Append: TypeAlias = Callable[[np.ndarray[Any, np.dtype[Any]]], None]  # takes vectors, (rows, width)

SHARD_SIZE = 100_000  # rows of each file in a folder
_RUN = b"dsa run"  # the key of a Parquet file's metadata under which stands what made it


@contextmanager
def write_npy(path: AnyPath, dtype: str, width: int) -> Iterator[Append]:
    """Write one array (rows, width) to a `.npy` file; nothing but the rows at hand is held in memory.

    Args:
        path: The file. It appears at the end of the block, and not at all where the block fails.
        dtype: Of the array.
        width: Numbers in a vector.

    Yields:
        What appends rows.
    """
    rows = 0

    with replaced_file(path) as beside, beside.open("wb") as file:

        def write_header() -> None:
            # numpy leaves room in a header for the first axis to grow.
            header = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (rows, width)}
            npy.write_array_header_1_0(file, header)

        def append(vectors: np.ndarray[Any, np.dtype[Any]]) -> None:
            nonlocal rows
            file.write(np.ascontiguousarray(vectors).data)
            rows += len(vectors)

        write_header()
        yield append
        file.seek(0)
        write_header()


@contextmanager
def write_parquet(path: AnyPath, dtype: str, width: int, first_row: int, run: str) -> Iterator[Append]:
    """Write rows to a Parquet file with the columns `row` (int64) and `vector` (a list of fixed size).

    Args:
        path: As for [`write_npy`].
        dtype: Of the vectors' numbers.
        width: Numbers in a vector.
        first_row: The number of the first row.
        run: What [`made_by`] will know the file by.

    Yields:
        What appends rows.

    Raises:
        ValueError: pyarrow is not installed.
    """
    arrow, parquet = _pyarrow(path)
    number = arrow.from_numpy_dtype(np.dtype(dtype))
    schema = arrow.schema([("row", arrow.int64()), ("vector", arrow.list_(number, width))], metadata={_RUN: run})
    # Parquet has no integer of one byte: 256 values in a dictionary take one.
    options = {"use_dictionary": dtype == "int8", "compression": "none"}
    with replaced_file(path) as beside, parquet.ParquetWriter(beside, schema, **options) as file:
        row = first_row

        def append(vectors: np.ndarray[Any, np.dtype[Any]]) -> None:
            nonlocal row
            lists = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), width)
            numbers = arrow.array(np.arange(row, row + len(vectors)))
            file.write_table(arrow.Table.from_arrays([numbers, lists], schema=schema))
            row += len(vectors)

        yield append


def made_by(path: AnyPath) -> str | None:
    """The `run` of a file of [`write_parquet`], or None where there is no such file."""
    arrow, parquet = _pyarrow(path)
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            metadata = parquet.read_schema(file).metadata or {}
    except arrow.ArrowException:
        return None
    except OSError as error:
        if error.errno is not None:  # else pyarrow's word for a damaged footer
            raise
        return None
    return metadata.get(_RUN, b"").decode() or None


def _pyarrow(path: AnyPath) -> tuple[Any, Any]:
    with optional_packages(f"Writing {path}", "evaluation", "pyarrow"):
        import pyarrow
        from pyarrow import parquet
    return pyarrow, parquet
