"""modeling_dsa.encoding.vector_files: what is appended is what others read, and a file is whole or not there."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from modeling_dsa.encoding.vector_files import Append, made_by, write_npy, write_parquet

Vectors = np.ndarray[Any, np.dtype[Any]]


def vectors(dtype: str, rows: int = 5) -> Vectors:
    found: Vectors = np.random.default_rng(rows).normal(0, 50, (rows, 3)).astype(dtype)
    return found


@pytest.mark.parametrize(("dtype", "parts"), [("float32", [5, 0, 2000]), ("float16", []), ("int8", [5, 0, 2000])])
def test_npy_holds_all_rows(tmp_path: Path, dtype: str, parts: list[int]) -> None:
    with write_npy(tmp_path / "a.npy", dtype, 3) as append:
        for rows in parts:
            append(vectors(dtype, rows))
    expected = np.concatenate([vectors(dtype, 0), *(vectors(dtype, rows) for rows in parts)])
    found = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert found.dtype == dtype
    assert found.shape == expected.shape
    assert (found == expected).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_parquet_holds_row_numbers_and_lists_of_fixed_size(tmp_path: Path, dtype: str) -> None:
    with write_parquet(tmp_path / "a.parquet", dtype, 3, 70, "run") as append:
        append(vectors(dtype, 5))
        append(vectors(dtype, 2000)[::2])
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table.schema.names == ["row", "vector"]
    assert table["row"].to_pylist() == list(range(70, 70 + 1005))
    found = np.array(table["vector"].to_pylist(), dtype)
    assert (found == np.concatenate([vectors(dtype, 5), vectors(dtype, 2000)[::2]])).all()
    assert table.schema.field("vector").type == pyarrow.list_(pyarrow.from_numpy_dtype(np.dtype(dtype)), 3)
    assert made_by(tmp_path / "a.parquet") == "run"


def test_int8_takes_one_byte_a_number(tmp_path: Path) -> None:
    found: Vectors = np.random.default_rng(0).integers(-127, 128, (5000, 100)).astype(np.int8)
    with write_parquet(tmp_path / "a.parquet", "int8", 100, 0, "run") as append:
        append(found)
    assert (tmp_path / "a.parquet").stat().st_size < 1.1 * (found.nbytes + 8 * len(found))


@pytest.mark.parametrize(
    "writer",
    [lambda path: write_npy(path, "float32", 3), lambda path: write_parquet(path, "float32", 3, 0, "new")],
    ids=["npy", "parquet"],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_file_that_failed_is_not_there_and_an_old_one_stays(
    tmp_path: Path,
    writer: Callable[[Path], AbstractContextManager[Append]],
    error: type[BaseException] | BaseException,
) -> None:
    def fail() -> None:
        with writer(tmp_path / "a") as append:
            append(vectors("float32"))
            assert [found for found in tmp_path.iterdir() if not found.name.startswith(".")] == before
            raise error

    before: list[Path] = []
    with pytest.raises((KeyboardInterrupt, OSError)):
        fail()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").write_text("old")
    before = [tmp_path / "a"]
    with pytest.raises((KeyboardInterrupt, OSError)):
        fail()
    assert list(tmp_path.iterdir()) == before
    assert (tmp_path / "a").read_text() == "old"
    with writer(tmp_path / "a") as append:
        append(vectors("float32"))
    assert (tmp_path / "a").stat().st_size > 100
    assert list(tmp_path.iterdir()) == before


def test_made_by_knows_only_whole_files_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert made_by(path) is None
    path.write_text("PAR1")
    assert made_by(path) is None
    pyarrow.parquet.write_table(pyarrow.table({"row": [1]}), path)
    assert made_by(path) is None
    content = bytearray(path.read_bytes())
    content[-60:-8] = bytes(52)  # a damaged footer
    path.write_bytes(content)
    assert made_by(path) is None


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with (
        pytest.raises(ValueError, match=r"a needs pyarrow: pip install \"\.\[evaluation\]\" in a clone of dsa-"),
        write_parquet(tmp_path / "a", "int8", 3, 0, ""),
    ):
        pass
