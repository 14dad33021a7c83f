"""Files of other file systems, by URL: `s3://bucket/a.txt`, `hf://...` and whatever else fsspec reaches."""

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from modeling_dsa.command.messages import one_line

if TYPE_CHECKING:
    from upath import UPath

AnyPath: TypeAlias = Union[Path, "UPath"]

_OBJECT_STORES = frozenset({"abfs", "abfss", "az", "gcs", "gs", "hf", "s3", "s3a"})


def parse_path(text: str) -> AnyPath:
    """The path of a file or folder of this machine, or of what a URL names.

    Args:
        text: A path, or a URL of fsspec. Its file system is asked once whether the path is there, so that missing
            packages and credentials come to light.

    Raises:
        ValueError: There is no such file system, or its package is missing, or it cannot be reached.
    """
    if "://" not in text:
        return Path(text)
    from fsspec.implementations.local import LocalFileSystem
    from upath import UPath

    try:
        path = UPath(text)
        path.fs.info(path.path)  # `exists` says no, too, where a host is down
    except ImportError as error:
        raise ValueError(f"{text} needs a package that is missing: {str(error).rstrip('.')}.") from error
    except FileNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise ValueError(f"{text} cannot be reached ({_reason(cause)}).") from error
    except Exception as error:  # each file system has errors of its own for credentials and connections
        raise ValueError(f"{text} cannot be reached ({_reason(error)}).") from error
    return Path(path.path) if isinstance(path.fs, LocalFileSystem) else path


def check_writable(path: AnyPath) -> None:
    """Refuse a remote path beside which no file can be written, at the price of an empty one; others are left alone.

    Raises:
        ValueError: It cannot.
    """
    if isinstance(path, Path):
        return
    probe = path.with_name(f".writable-{path.name}-{uuid.uuid4().hex}")  # a process's own
    try:
        if not is_object_store(path):  # it has no folders but buckets, and one with a mistyped name must not be made
            path.parent.mkdir(parents=True, exist_ok=True)
        probe.fs.pipe_file(probe.path, b"")
        probe.fs.rm_file(probe.path)
    except Exception as error:
        raise ValueError(f"{path} cannot be written ({_reason(error)}): give another output.") from error


def is_object_store(path: "UPath") -> bool:
    """Whether a path is that of an object, which is there when its upload is complete and not before."""
    return path.protocol in _OBJECT_STORES


def _reason(error: Exception) -> str:
    said = one_line(error).rstrip(".")
    return f"{type(error).__name__}: {said:.300}" if said else type(error).__name__
