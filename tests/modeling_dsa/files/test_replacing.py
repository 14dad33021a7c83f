"""modeling_dsa.files.replacing: whole or not there."""

import contextlib
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modeling_dsa.files.remote_paths import parse_path
from modeling_dsa.files.replacing import filled_folder, replaced_file, write_json


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figures.json"
    write_json({"a": "ä"}, path)
    with contextlib.suppress(RuntimeError), replaced_file(path) as beside:
        beside.write_text("half")
        raise RuntimeError
    with pytest.raises(ValueError, match="JSON"):
        write_json({"a": float("nan")}, path)
    assert path.read_text(encoding="utf-8") == '{\n  "a": "ä"\n}\n'
    assert names(path.parent) == ["figures.json"]


def test_a_link_stays_one_but_into_the_blobs_of_a_cache(tmp_path: Path) -> None:
    for folder, is_link in (("files", True), ("blobs", False)):
        target, link = tmp_path / folder / "target.json", tmp_path / f"{folder}.json"
        write_json("old", target)
        link.symlink_to(target)
        write_json("new", link)
        assert link.read_text(encoding="utf-8") == '"new"\n'
        assert (link.is_symlink(), target.read_text(encoding="utf-8") == '"new"\n') == (is_link, is_link)


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 125 + ".json")
    write_json({}, path)
    assert names(tmp_path) == [path.name]


def test_devices_and_pipes_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull), Path("/dev/stdout")):
        with pytest.raises(ValueError, match="is a device or a pipe"):
            write_json({}, path)
    assert (tmp_path / "pipe").is_fifo()
    assert Path(os.devnull).is_char_device()


def test_a_folder_is_filled_at_once_or_not(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with filled_folder(folder) as beside:
        (beside / "onnx").mkdir()
        (beside / "onnx" / "old").touch()
        (beside / "config").touch()
    with contextlib.suppress(RuntimeError), filled_folder(folder) as beside:
        (beside / "half").touch()
        raise RuntimeError
    assert names(folder) == ["config", "onnx"]
    with filled_folder(folder) as beside:
        (beside / "onnx").mkdir()
        (beside / "onnx" / "new").touch()
    assert names(folder) == ["config", "onnx"]
    assert names(folder / "onnx") == ["new"]
    assert names(tmp_path) == ["model"]


def test_the_current_folder_is_filled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for folder in (Path(), Path("..")):
        with filled_folder(folder) as beside:
            (beside / "figures").touch()
    assert names(tmp_path) == ["figures", "here"]
    assert names(tmp_path / "here") == ["figures"]


def test_what_a_killed_process_left_is_removed_and_a_running_ones_is_not(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    left = tmp_path / f".unfinished-{socket.gethostname()}-{killed.stdout.strip()}-model"
    left.mkdir()
    (left / "half").touch()
    of_init = tmp_path / f".unfinished-{socket.gethostname()}-1-model"
    of_init.mkdir()
    with filled_folder(tmp_path / "model"):
        assert not left.exists()
    assert of_init.exists()


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=f"{tmp_path / 'file'}'$"):
        write_json({}, tmp_path / "file" / "figures.json")
    with (
        pytest.raises(FileNotFoundError, match=f"{tmp_path / 'figures.json'}'$"),
        replaced_file(tmp_path / "figures.json") as beside,
    ):
        beside.rename(beside)


def test_what_cannot_be_removed_does_not_hide_why_writing_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)  # as on a read-only file system
    with (
        pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'a.txt'}'"),
        replaced_file(tmp_path / "a.txt"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Passing(MemoryFileSystem):  # type: ignore[misc]
    """Renames no file to one that is there and says nothing, as WebHDFS does."""

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        if not self.exists(path2):
            super().mv(path1, path2, **options)


class Refusing(MemoryFileSystem):  # type: ignore[misc]
    """Renames no file to one that is there."""

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        if self.exists(path2):
            raise FileExistsError(path2)
        super().mv(path1, path2, **options)


class Idle(MemoryFileSystem):  # type: ignore[misc]
    """Renames nothing and says nothing."""

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        pass


class Failing(MemoryFileSystem):  # type: ignore[misc]
    """Is gone when a file is to be renamed."""

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        self.rm(path1)
        raise ConnectionError("gone")


@contextlib.contextmanager
def memory_as(kind: type[MemoryFileSystem]) -> Iterator[None]:
    """What is behind `memory://`."""
    fsspec.register_implementation("memory", kind, clobber=True)
    try:
        yield
    finally:
        fsspec.register_implementation("memory", MemoryFileSystem, clobber=True)


@pytest.mark.parametrize("kind", [Passing, Refusing])
def test_a_file_is_replaced_where_its_file_system_replaces_none(kind: type[MemoryFileSystem]) -> None:
    with memory_as(kind):
        path = parse_path(f"memory://renaming-{kind.__name__}/a.json")
        for content in ("old", "new"):
            write_json(content, path)
            assert path.read_text() == f'"{content}"\n'
        assert [found.name for found in path.parent.iterdir()] == ["a.json"]


def test_a_file_that_was_not_renamed_is_told() -> None:
    home = "memory://renaming-told"
    write_json("old", parse_path(f"{home}/a.json"))
    with memory_as(Failing), pytest.raises(ConnectionError, match="gone"):
        write_json("new", parse_path(f"{home}/a.json"))
    assert parse_path(f"{home}/a.json").read_text() == '"old"\n'
    with memory_as(Idle), pytest.raises(OSError, match=r"a\.json was not written, as its file system did not rename"):
        write_json("new", parse_path(f"{home}/a.json"))
    assert parse_path(f"{home}/a.json").read_text() == '"old"\n'
