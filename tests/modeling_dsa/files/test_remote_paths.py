"""Paths by URL: those of this machine are plain ones, and what cannot be reached or written is told at once."""

import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modeling_dsa.files.remote_paths import check_writable, parse_path
from modeling_dsa.files.replacing import replaced_file
from modeling_dsa.files.text_files import read_rows


def test_a_path_of_this_machine_is_a_plain_one(tmp_path: Path) -> None:
    assert parse_path("a/b.txt") == Path("a/b.txt")
    assert type(parse_path(f"file://{tmp_path}/a.txt")) is type(tmp_path)
    assert parse_path(f"file://{tmp_path}/a.txt") == tmp_path / "a.txt"


def test_what_cannot_be_reached_is_one_sentence() -> None:
    for url, message in (
        ("nowhere://a", r"^nowhere://a cannot be reached \(ValueError: Unsupported filesystem: 'nowhere'\)\.$"),
        (
            "http://127.0.0.1:9/a",
            r"^http://127.0.0.1:9/a cannot be reached \(ClientConnectorError: Cannot connect",
        ),
        ("gs://bucket/a", r"^gs://bucket/a needs a package that is missing: Please install gcsfs[^.]*\.$"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_path(url)


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "text\nA dog.\n")
    path = parse_path(f"zip://a.csv::file://{tmp_path}/a.zip")
    assert [row for _, row in read_rows(path)] == [{"text": "A dog."}]
    with pytest.raises(ValueError, match=r"cannot be written \(NotImplementedError\): give another output\.$"):
        check_writable(path)


def test_a_remote_file_is_whole_or_not_there() -> None:
    path = parse_path("memory://replacing/new/a.txt")
    check_writable(path)
    for text in ("one", "two"):
        with replaced_file(path) as beside:
            beside.write_text(text)
            assert not path.exists() or path.read_text() == "one"
        assert path.read_text() == text
    with suppress(KeyError), replaced_file(path) as beside:
        beside.write_text("three")
        raise KeyError
    assert path.read_text() == "two"
    assert [name for name in MemoryFileSystem.store if "replacing" in name] == ["/replacing/new/a.txt"]
