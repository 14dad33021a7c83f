"""Write beside and rename: a file or folder is whole or not there, whatever stops the process."""

import errno
import glob
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from .remote_paths import AnyPath, is_object_store

if TYPE_CHECKING:
    from upath import UPath

PathOrUPath = TypeVar("PathOrUPath", Path, "UPath")


_LONGEST_NAME = 255 - len(".unfinished---4194304") - 64  # bytes beside the marks, a host's name and a process's number


@contextmanager
def replaced_file(path: AnyPath) -> Iterator[Path]:
    """A path beside `path`, with the same extension, to write to; at the end of the block it takes the name of `path`.

    Where the block fails, `path` stays as it was and what was written is removed. The folder is made. A link stays one:
    the file it leads to is replaced, but for a link into the Hub's cache, whose blobs are shared. What goes to
    another machine is written here, in the folder for temporary files, and uploaded at the end of the block. Where its
    file system replaces no file, the old one has another name until the new one has its.

    Raises:
        ValueError: It is a device or a pipe, which the file would replace for all that use it.
        OSError: It cannot be written.
    """
    if not isinstance(path, Path):
        with TemporaryDirectory() as folder:
            yield Path(folder, path.name)
            _upload(Path(folder, path.name), path)
        return
    if (path.exists() and not (path.is_file() or path.is_dir())) or path.parent == Path("/dev"):
        raise ValueError(f"{path} is a device or a pipe, where no file can be made: give the name of a file.")
    if path.is_symlink() and path.resolve().parent.name != "blobs":
        path = path.resolve()
    beside = _beside(path)
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        _name_file(error, path, beside)
        raise
    finally:
        with suppress(OSError):  # a read-only file system's would hide why the block failed
            beside.unlink(missing_ok=True)


@contextmanager
def filled_folder(folder: Path, last: str | None = None) -> Iterator[Path]:
    """A fresh folder beside `folder` to write into; at the end of the block its entries move there, one rename each.

    Where the block fails nothing moves. Other entries of `folder` stay; a folder of the same name is replaced.

    Args:
        folder: Where the entries go; it is made.
        last: The entry that moves after all others, and so tells that they are there.
    """
    folder = folder.resolve()  # `.` and `..` have no name to write beside
    beside = _beside(folder)
    try:
        beside.mkdir()
        yield beside
        folder.mkdir(exist_ok=True)
        for entry in sorted(beside.iterdir(), key=lambda entry: entry.name == last):
            target = folder / entry.name
            if entry.is_dir() and target.is_dir():
                shutil.rmtree(target)
            entry.replace(target)
    except OSError as error:
        _name_file(error, folder, beside)
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _upload(file: Path, path: "UPath") -> None:
    if is_object_store(path):
        path.fs.put_file(str(file), path.path)
        return
    beside = _beside(path)
    try:
        beside.fs.put_file(str(file), beside.path)
        _move(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _move(beside: "UPath", path: "UPath") -> None:
    """Give a file the name of another one, which some file systems refuse and WebHDFS passes over in silence."""
    try:
        beside.fs.mv(beside.path, path.path)
    except Exception:  # each file system has an error of its own for it
        if not (beside.exists() and path.exists()):
            raise
    if not beside.exists():
        return
    old = beside.with_name(f"{beside.name}.old")  # the old file's name until the new one has its
    try:
        if path.exists():
            path.fs.mv(path.path, old.path)
        if not path.exists():
            beside.fs.mv(beside.path, path.path)
    finally:
        if old.exists() and not path.exists():
            path.fs.mv(old.path, path.path)
    old.unlink(missing_ok=True)
    if beside.exists():
        raise OSError(f"{path} was not written, as its file system did not rename {beside.name}: give another output.")


def _name_file(error: OSError, path: Path, beside: Path) -> None:
    """The error of a full disk names no file, and others one that the user has never heard of."""
    if error.errno is not None and (error.filename is None or Path(error.filename).is_relative_to(beside)):
        error.filename = str(path)
        del error.filename2  # the same by its other name


def json_text(content: Any) -> str:
    """The text of a JSON file.

    Raises:
        ValueError: It holds NaN or an infinity, which JSON has no name for.
    """
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(content: Any, path: AnyPath) -> None:
    """Write a JSON file, whole or not at all.

    Raises:
        ValueError: As for `json_text`.
    """
    with replaced_file(path) as beside:
        beside.write_text(json_text(content), encoding="utf-8")


def _beside(path: PathOrUPath) -> PathOrUPath:
    """Where this process writes what `path` shall be; what killed processes of this machine left there is removed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # as it says of a file
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from None
    prefix, name = f".unfinished-{socket.gethostname()}-", _short(path.name)
    for left in path.parent.glob(f"{prefix}*-{glob.escape(name)}"):
        process = left.name.removeprefix(prefix).removesuffix(f"-{name}")
        if process.isdecimal() and (int(process) == os.getpid() or not _is_running(int(process))):
            shutil.rmtree(left) if isinstance(left, Path) and left.is_dir() else left.unlink(missing_ok=True)
    return path.with_name(f"{prefix}{os.getpid()}-{name}")


def _short(name: str) -> str:
    """A name to which marks can be added: the same extensions, and a hash before them where it is too long."""
    if len(os.fsencode(name)) <= _LONGEST_NAME:
        return name
    extensions = "".join(Path(name).suffixes[-2:])
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32] + (
        extensions if len(os.fsencode(extensions)) < 64 else ""
    )


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
