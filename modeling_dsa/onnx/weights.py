"""The hash of a model's weights, which tells whether an ONNX file is that of the folder it lies in."""

import hashlib
import json
from typing import BinaryIO, NamedTuple

import numpy as np

_HALVES = ("F16", "BF16")
_READ_AT_ONCE = 1 << 20  # bytes
_LONGEST_HEADER = 100_000_000  # bytes; safetensors' own limit


class _Stored(NamedTuple):
    """Where the numbers of a tensor are, from which byte on and in how many, and what they are."""

    file: BinaryIO
    start: int
    size: int
    dtype: str
    shape: list[int]


def weights_hash(*files: BinaryIO) -> str:
    """SHA-256 of the tensors of a model's safetensors files: their names, types, shapes and numbers, and neither their
    order nor the file that each is in.

    Half precision counts as the float32 that it is loaded as, so files of either have the hash of the model in memory.

    Raises:
        ValueError: A file is no safetensors file.
    """
    tensors: dict[str, _Stored] = {}
    for file in files:
        header_size = int.from_bytes(file.read(8), "little")
        try:
            if header_size > _LONGEST_HEADER:
                raise ValueError(f"its header is said to have {header_size:,} bytes")
            header = json.loads(file.read(header_size))
            header.pop("__metadata__", None)
            for name, tensor in header.items():
                begin, end = tensor["data_offsets"]
                tensors[name] = _Stored(file, 8 + header_size + begin, end - begin, tensor["dtype"], tensor["shape"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            name = getattr(file, "name", "A file of weights")
            raise ValueError(f"{name} is no safetensors file ({error}): save the model again.") from error
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(json.dumps([name, "F32" if tensor.dtype in _HALVES else tensor.dtype, tensor.shape]).encode())
        tensor.file.seek(tensor.start)
        for read in range(0, tensor.size, _READ_AT_ONCE):  # a word table is as large as all else that a session holds
            digest.update(_widened(tensor.file.read(min(_READ_AT_ONCE, tensor.size - read)), tensor.dtype))
    return digest.hexdigest()


def _widened(numbers: bytes, stored: str) -> bytes:
    """Half precision as float32, without loss; everything else as it is."""
    if stored == "F16":
        return np.frombuffer(numbers, "<f2").astype("<f4").tobytes()
    if stored == "BF16":  # the upper half of a float32
        return (np.frombuffer(numbers, "<u2").astype("<u4") << 16).tobytes()
    return numbers
