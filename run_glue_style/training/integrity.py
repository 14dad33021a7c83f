"""Sizes and hashes of the files of a folder as they were written, so that nobody computes with damaged ones."""

import json
from pathlib import Path

from modeling_dsa.files.hashing import file_hash
from modeling_dsa.files.replacing import write_json

_HASHES = "manifest.json"  # so that runs of earlier versions go on


def write_hashes(folder: Path) -> None:
    """Write the sizes and SHA-256 of all files in a folder beside them; call it last."""
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": file_hash(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    write_json(files, folder / _HASHES)


def find_damage(folder: Path) -> str | None:
    """What is wrong with the files of a folder that `write_hashes` left, for people; None where they are as written."""
    try:
        files = json.loads((folder / _HASHES).read_text(encoding="utf-8"))
        for name, written in files.items():
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != written["size"]:
                return f"{name} has {path.stat().st_size:,} bytes instead of {written['size']:,}"
            if file_hash(path) != written["sha256"]:
                return f"{name} has other contents than were written"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{_HASHES} cannot be read: {type(error).__name__}"
    return None
