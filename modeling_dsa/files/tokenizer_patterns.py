"""The regular expressions of a tokenizer: those of a stranger may take hours for one text, or end the process."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

# SHA-256 of all patterns that this package writes, by `modeling_dsa.text.word_rules`; a test compares.
_KNOWN = frozenset(
    (
        "363e489f2619def3b1355a86418e3181710a26af47fb4967a7f4a630faf5d7a9",
        "336d9953c672464d56004ce9d586f2645483ace97e744b99bf7782a1908ddfa0",
        "89badb3e5d24c4383eb1885a98b5ba8ee880515b45dc18fe2e8a644a8ef30851",
        "28e25903fa44fef39e106451899a1a0721a64ea1791e286ca68bb969f9869104",
        "2423cd28daa51794d8ac20f84eda7859670a8b77065e248b6bca211bf2683480",
        "4aab4d362079c30af5399d314b0cc62d7d0f9920f0fdef7d6665e1454a7504c3",
        "a1492e2c5d692513eda155b9468d17dc28888338a3ac40b0d1bf16fb91607b5f",
        "ea3dd0d4f5e941138236057f1e13a1a454e9ebb2163fbddfc0bb3e5850a75a95",
        "b4935894c8ce16bde67bbffc672428b1533c4f1e1e8b1ce21a2933183db6bfa5",
        "2c51bdce0cfe96ef753f0d8e663fea6b4b5627f719f254970d861222dc8e4c5c",
        "40181f27f4f8b7575717cd6015afece61f43d594bede7b22f85e274e978c2fd9",
        "999b1e217a832e4be3793dd14d92533437373f511e62a77840421466605a1093",
        "4d74212c456a2c0f1c167c68f30a4036b7ceb3e05b146ffd664e6b6f85102251",
        "81b3bfc2058e9b86c51cc487a2d713de21d7168dbe4ab682dc52fe61abce4c5b",
        "996525ead67e4bdc3e1e6d2076b664881769b0c8d2dc3fe48f9656ed67e6eab3",
        "43caf290a97008a1c262e3a050a562f2c68ad796168629cf9b83c17d64d99bb6",
        "b0d8fb44d6407e8b374c2b0cec21844b6be51232d3c5ce0b9e9a078a55ddf60e",
        "d0262da91df9178e6e2dd9d837e51ff1db40654c3b56a6ebfd71ee9978fe1217",
    )
)


def refuse_unknown_patterns(path: Path) -> None:
    """Refuse a tokenizer that splits or replaces by a regular expression that this package has not written.

    Call it before the file is loaded: to compile an expression may take hours already. A tokenizer without any is not
    refused, whoever wrote it.

    Args:
        path: A `tokenizer.json`.

    Raises:
        ValueError: It has such an expression.
        OSError: It cannot be read.
    """
    for pattern in find_patterns(path.read_bytes()):
        if hashlib.sha256(pattern.encode("utf-8", "surrogatepass")).hexdigest() not in _KNOWN:
            raise ValueError(
                f"{path} has a regular expression that is not this package's ({pattern[:60]!r}), which may take hours "
                "for a text: where you trust it, load model and tokenizer in Python and give both to SentenceEncoder."
            )


def find_patterns(content: bytes) -> list[str]:
    """All regular expressions in the content of a `tokenizer.json`; none where it is broken, and so never loaded."""
    found: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> None:  # also of a key that stands twice
        found.extend(value for name, value in pairs if name == "Regex" and isinstance(value, str))

    with suppress(ValueError, RecursionError):
        json.loads(content, object_pairs_hook=collect)
    return found
