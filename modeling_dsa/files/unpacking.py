"""Files that may be packed: opening them, and how much may come out of one before it is refused."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .remote_paths import AnyPath

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Text packs to a fifth or a tenth. What unpacks to far more was made to fill a memory or a disk.
_LARGEST_RATIO = 100
_ALWAYS_ALLOWED = 1 << 24  # bytes: small files of one text many times
_CHUNK = 1 << 18  # bytes


def check_unpacked(name: str, unpacked: int, packed: int) -> None:
    """Refuse a file that unpacks to out of all proportion.

    Args:
        name: What the message calls it.
        unpacked: Bytes that have come out of it, or will.
        packed: Its own bytes.

    Raises:
        ValueError: They are more than a hundred times its own and 16 MiB.
    """
    if unpacked > _ALWAYS_ALLOWED + _LARGEST_RATIO * packed:
        raise ValueError(
            f"{name} unpacks to more than {_LARGEST_RATIO} times its {packed:,} bytes, as no text does: if you trust "
            "it, give what it holds in a file that is not packed."
        )


class GzipReader(io.RawIOBase):
    """The bytes that a gzip file holds.

    Reading raises ValueError as `check_unpacked` does, and what `gzip` raises where the file is broken.
    """

    def __init__(self, file: IO[bytes], path: AnyPath) -> None:
        """Read from an open file, and say of mistakes that they are in `path`."""
        super().__init__()
        self._file = gzip.GzipFile(fileobj=file)
        self._name, self._packed = str(path), path.stat().st_size

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is, though a step back unpacks from the start."""
        return True

    def readinto(self, buffer: "Buffer") -> int:
        """As `io.RawIOBase.readinto`."""
        count = self._file.readinto(buffer)
        check_unpacked(self._name, self._file.tell(), self._packed)
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As `io.IOBase.seek`."""
        if whence == io.SEEK_END:  # GzipFile would go there whatever comes out
            while self.read(_CHUNK):
                pass
        return self._file.seek(offset, io.SEEK_CUR if whence == io.SEEK_END else whence)

    def tell(self) -> int:
        """As `io.IOBase.tell`."""
        return self._file.tell()

    def close(self) -> None:
        """As `io.IOBase.close`."""
        self._file.close()
        super().close()


@contextmanager
def open_unpacked(path: AnyPath) -> Iterator[io.BufferedIOBase]:
    """Open a file, unpacked where it ends in `.gz`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is a folder or a pipe; or, also while it is read, a broken gzip file, or as `check_unpacked`.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}: give files of texts.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the files in it.")
    if not path.is_file():  # it is read more than once, and a pipe would wait for ever
        raise ValueError(f"{path} is no regular file: write what it gives to a file first, or pipe it to `-`.")
    try:
        with ExitStack() as opened:
            file: Any = opened.enter_context(path.open("rb"))
            if not isinstance(path, Path):  # fsspec's own way to lines is slow
                file = opened.enter_context(io.BufferedReader(file))
            if path.name.lower().endswith(".gz"):
                file = opened.enter_context(io.BufferedReader(GzipReader(file, path), _CHUNK))
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a broken gzip file ({error}): pack or download it again.") from error
