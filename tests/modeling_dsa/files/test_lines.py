"""modeling_dsa.files.lines: lines, and where each is."""

import gzip
from pathlib import Path

import pytest

from modeling_dsa.files.lines import read_lines
from modeling_dsa.files.text_files import read_rows, read_texts


def test_lines_keep_their_spaces_and_number(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("\ufeffa \r\n\n b\u2028c".encode()))
    assert list(read_lines(path)) == [
        (f"{path}, line 1", "a "),
        (f"{path}, line 2", ""),
        (f"{path}, line 3", " b\u2028c"),
    ]
    assert read_texts([path]) == ["a ", " b\u2028c"]


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text\rA man\rA dog\r", "carriage return that ends no line"),
        ("text\nA man\n".encode("utf-16-le"), "zero byte"),
        (b"PK\x03\x04\x14\x00", "zero byte"),
    ],
)
def test_lines_that_are_none_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_lines, read_rows):
        with pytest.raises(ValueError, match=f"line 1 holds a {message}"):
            list(read(path))
