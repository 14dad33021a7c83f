"""The hash of a model's weights, which tells whether an ONNX file is that of the folder it lies in."""

import hashlib
import json
from typing import BinaryIO


def weights_hash(file: BinaryIO) -> str:
    """SHA-256 of the tensors of a safetensors file: their names, types, shapes and numbers, and not their order."""
    header_size = int.from_bytes(file.read(8), "little")
    header = json.loads(file.read(header_size))
    header.pop("__metadata__", None)
    digest = hashlib.sha256()
    for name, tensor in sorted(header.items()):
        begin, end = tensor["data_offsets"]
        digest.update(json.dumps([name, tensor["dtype"], tensor["shape"]]).encode())
        file.seek(8 + header_size + begin)
        digest.update(file.read(end - begin))
    return digest.hexdigest()
