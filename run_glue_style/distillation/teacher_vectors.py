"""A teacher's sentence vectors in memory-mapped files."""

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modeling_dsa.batching_dsa import unit_vectors
from modeling_dsa.command.messages import one_line
from modeling_dsa.encoding.finite import first_nonfinite
from modeling_dsa.encoding.teacher_words import leading_components
from modeling_dsa.files.replacing import replaced_file

_NUMBERS = re.compile(r"(\d+)")
_SAMPLE = 100_000  # vectors from which the principal components are taken
_AT_ONCE = 10_000  # vectors


class TeacherVectors:
    """The vectors of all sentences, in one file or in shards, which the system reads as they are needed.

    Attributes:
        width: Numbers in a vector.
        sha256: What tells these vectors from others.
    """

    def __init__(self, paths: Sequence[Path], sha256: str | None = None) -> None:
        """Open files.

        Args:
            paths: `.npy` files, in their order, of one array each. (rows, width)
            sha256: Hash of what made them; default: the hash of their contents, which are read for it and checked.

        Raises:
            FileNotFoundError: One is missing.
            ValueError: One is broken, holds no vectors, or vectors of another width than the others; or a vector is not
                finite where no hash says what made it.
        """
        self._paths, self._shards = paths, [_open(path) for path in paths]
        self.width = self._shards[0].shape[1]
        for path, shard in zip(paths, self._shards, strict=True):
            if shard.shape[1] != self.width:
                raise ValueError(
                    f"{path} holds vectors of {shard.shape[1]:,} numbers, and {paths[0]} of {self.width:,}: give "
                    "those of one teacher."
                )
        self._ends = np.cumsum([len(shard) for shard in self._shards])
        if sha256 is None:
            for start in range(0, len(self), _AT_ONCE):
                self.take(np.arange(start, min(start + _AT_ONCE, len(self))))
            sha256 = _hash(paths)
        self.sha256 = sha256

    def __len__(self) -> int:
        return int(self._ends[-1])

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of these rows. (...) -> (..., width)

        Raises:
            ValueError: One of them is not finite.
        """
        flat = rows.ravel()
        taken = np.empty((len(flat), self.width), np.float32)
        shard_of = np.searchsorted(self._ends, flat, "right")  # (rows,)
        for number in np.unique(shard_of):
            chosen = np.flatnonzero(shard_of == number)
            shard = self._shards[number]
            in_shard = flat[chosen] - (self._ends[number] - len(shard))
            with np.errstate(over="ignore"):  # what float32 cannot hold is told in the next lines
                taken[chosen] = shard[in_shard]
            wrong = first_nonfinite(taken[chosen])
            if wrong is not None:
                row = in_shard[wrong] + 1
                raise ValueError(f"{self._paths[number]}, row {row:,} is not finite: make these vectors again.")
        return taken.reshape(*rows.shape, self.width)


def open_vectors(path: Path) -> TeacherVectors:
    """Open a `.npy` file of vectors, or a folder of such files in the order of their names.

    Raises:
        FileNotFoundError: There is no such file, or the folder has none.
        ValueError: As in `TeacherVectors`, or the numbers in the names have another order than the names.
    """
    if not path.is_dir():
        return TeacherVectors([path])
    paths = sorted(path.glob("*.npy"))
    if not paths:
        raise FileNotFoundError(f"{path} holds no .npy file: give the teacher's vectors.")
    counted = sorted(
        paths, key=lambda found: [int(part) if part.isdecimal() else 0 for part in _NUMBERS.split(found.name)]
    )
    if counted != paths and len({_NUMBERS.sub("", found.name) for found in paths}) == 1:
        raise ValueError(
            f"{path}: the names of its files have another order than the numbers in them, such as {paths[1].name} "
            f"before {counted[1].name}: give all numbers as many digits."
        )
    return TeacherVectors(paths)


def principal_components(vectors: TeacherVectors, size: int, folder: Path) -> NDArray[np.float32]:
    """The directions in which the teacher's vectors are longest: products with them keep the cosines best.

    They are those of the second moments, without a mean that is taken away: cosines know of none.

    Args:
        vectors: The teacher's.
        size: How many directions.
        folder: Where `pca-SIZE.npy` is kept, and found by a later call.

    Returns:
        (width, size), orthonormal, the first the one with the most length.
    """
    path = folder / f"pca-{size}.npy"
    with suppress(FileNotFoundError, ValueError):  # there is none, or it is broken
        return _open(path).astype(np.float32)
    rows = np.linspace(0, len(vectors) - 1, min(_SAMPLE, len(vectors))).astype(np.int64)
    moments = np.zeros((vectors.width, vectors.width))
    for part in np.array_split(rows, -(-len(rows) // _AT_ONCE)):
        sample = unit_vectors(vectors.take(part).astype(np.float64))
        moments += sample.T @ sample
    found = np.ascontiguousarray(leading_components(moments, size), np.float32)  # (width, size)
    with replaced_file(path) as beside:
        np.save(beside, found)
    return found


def _open(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {path}: give the teacher's vectors, a .npy file or a folder of them."
        )
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")  # whose words do not advise to unpickle
    except Exception as error:  # numpy reads the header as Python, and fails in as many ways
        raise ValueError(
            f"{path} is no .npy file of vectors ({one_line(error):.300}): write or download it again."
        ) from error
    if array.ndim != 2 or not len(array) or not np.issubdtype(array.dtype, np.floating):
        raise ValueError(
            f"{path} holds an array of {array.dtype} with the shape {array.shape}: give vectors, "
            "(sentences, numbers) of a floating type."
        )
    return array


def _hash(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
