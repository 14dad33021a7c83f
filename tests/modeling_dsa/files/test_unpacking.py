"""modeling_dsa.files.unpacking: small files that hold gigabytes, given to what reads them."""

import gzip
import os
import re
import zipfile
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from modeling_dsa.files.text_files import read_rows, read_texts
from modeling_dsa.text.word_vectors import read_vectors
from run_glue_style.training.results import read_results

STARTS = {
    "a.json.gz": b"[",
    "a.jsonl.gz": b'{"text": "a"}\n',
    "a.csv.gz": b'text\n"',
    "a.tsv.gz": b"text\n",
    "a.parquet.gz": b"PAR1",
}


BLANKS = (b" " * 255 + b"\n") * (1 << 16)


@pytest.fixture(scope="module")
def blanks() -> bytes:
    """16 MiB of blank lines, packed."""
    return gzip.compress(BLANKS, 1)


def test_a_small_file_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, blanks: bytes) -> None:
    for name, start in STARTS.items():
        path = tmp_path / name
        path.write_bytes(gzip.compress(start) + blanks * 3)
        message = f"{re.escape(str(path))} unpacks to more than 100 times its [0-9,]+ bytes, as no text does: if you "
        with pytest.raises(ValueError, match=message):
            list(read_rows(path, ["text"]))
    with pytest.raises(ValueError, match=r"a\.json\.gz unpacks to more than 100 times"):
        read_results(tmp_path / "a.json.gz")


def test_packed_word_vectors_that_hold_next_to_nothing_are_refused(tmp_path: Path, blanks: bytes) -> None:
    vectors = b"the 0.1 0.2\n"
    (tmp_path / "a.gz").write_bytes(gzip.compress(vectors) + blanks * 3)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a.txt", vectors + 4 * BLANKS)
    for name in ("a.gz", "a.zip"):
        with pytest.raises(ValueError, match=rf"{name} unpacks to more than 100 times its [0-9,]+ bytes"):
            read_vectors(tmp_path / name, progress=False)


def test_a_parquet_file_whose_pages_or_rows_repeat_one_long_text_is_refused(tmp_path: Path) -> None:
    text = pyarrow.array(["x" * 900_000])
    repeated = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 1000, pyarrow.int8()), text)
    tables = {"dictionary": repeated, "pages": text.take(pyarrow.array([0] * 100))}
    for name, column in tables.items():
        path = tmp_path / f"{name}.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"text": column}), path, compression="zstd")
        with pytest.raises(ValueError, match=rf"{name}\.parquet unpacks to more than 100 times"):
            list(read_rows(path))


def test_many_rows_of_one_text_are_read_from_a_small_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a man"}\n' * 20_000))
    assert (tmp_path / "a.jsonl.gz").stat().st_size < 10_000
    assert sum(1 for _ in read_rows(tmp_path / "a.jsonl.gz")) == 20_000


def test_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"a\.txt is no regular file"):
        read_texts([tmp_path / "a.txt"])


@pytest.mark.parametrize("content", [b"id,text", gzip.compress(b"id,text\n1,a\n" * 1000, mtime=0)[:-9]])
def test_broken_gzip_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"{path} is a broken gzip file (")):
        read_texts([path], ["text"])
