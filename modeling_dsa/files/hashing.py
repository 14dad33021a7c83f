"""What a file holds, as one number that tells it from all others."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from .remote_paths import AnyPath


def file_hash(path: AnyPath) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # one of fsspec has `readinto`


def require_hash(path: AnyPath, sha256: str) -> None:
    """Refuse a file that has changed since its hash was taken, and so has perhaps been read in parts of two contents.

    Raises:
        ValueError: It has, or it is no longer there.
    """
    try:
        is_same = file_hash(path) == sha256
    except FileNotFoundError:
        is_same = False
    if not is_same:
        raise ValueError(f"{path} has changed while it was read: start again when it is complete.")


def describe_files(paths: Sequence[Path]) -> list[dict[str, str]]:
    """The name and SHA-256 of each file."""
    return [{"name": path.name, "sha256": file_hash(path)} for path in paths]


def with_length(text: str) -> bytes:
    """A text's bytes behind their number, so that a hash over many texts tells where each of them ends."""
    encoded = text.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "little") + encoded
