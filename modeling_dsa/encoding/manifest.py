"""What made a folder of vectors: written into it, and compared by whoever goes on there."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from modeling_dsa.files.remote_paths import AnyPath
from modeling_dsa.files.replacing import write_json

from .vector_files import made_by

MANIFEST = "_manifest.json"  # what reads a folder of Parquet files passes over names with such a beginning

# What the vectors depend on, in parts. Their names tell people; the rest tells whether two runs give the same files.
Manifest: TypeAlias = dict[str, dict[str, Any]]


def check_or_write_manifest(folder: AnyPath, manifest: Manifest, overwrite: bool) -> str:
    """Leave the manifest in a folder, unless it holds the vectors of another one.

    Args:
        folder: The vectors' own.
        manifest: What they depend on.
        overwrite: Replace what is there.

    Returns:
        The run: a hash that marks the files that are its own.

    Raises:
        ValueError: The folder holds vectors of another manifest, or a broken one.
    """
    path, run = folder / MANIFEST, _hash(manifest)
    if path.is_file() and not overwrite:
        try:
            found = _without_names(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{path} is broken: give --overwrite to start again, or another folder.") from error
        wanted = _without_names(manifest)
        others = [part for part in wanted if found.get(part) != wanted[part]]
        if others:
            raise ValueError(
                f"{folder} holds vectors of another run, which differs in its {' and its '.join(others)}: give "
                "--overwrite to replace them, or another folder."
            )
        if found == wanted:  # other processes read it, and not every file system replaces a file in one step
            return run
    write_json(manifest, path)
    return run


def require_own(folder: AnyPath, run: str, shards: Sequence[AnyPath] = ()) -> None:
    """Check that the folder's manifest, and these of its shards, are still this run's.

    Raises:
        ValueError: They are not.
    """
    try:
        is_own = _hash(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))) == run
    except (OSError, ValueError, AttributeError):
        is_own = False
    if not is_own or any(made_by(path) != run for path in shards):
        raise ValueError(
            f"{folder} was written by another run, too: its vectors are mixed. Encode again with --overwrite, or to "
            "another folder."
        )


def _without_names(manifest: Manifest) -> Manifest:
    return {
        part: {name: value for name, value in fields.items() if name != "name"} for part, fields in manifest.items()
    }


def _hash(manifest: Manifest) -> str:
    return hashlib.sha256(json.dumps(_without_names(manifest), sort_keys=True).encode()).hexdigest()
