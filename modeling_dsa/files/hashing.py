"""What a file holds, as one number that tells it from all others."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from .model_folder import CONFIG
from .remote_paths import AnyPath

# Fields of a config that say where it comes from, and not what its model computes.
_ORIGIN = ("_name_or_path", "auto_map", "custom_pipelines", "fold_embeddings", "transformers_version")
_OF_THE_LAST_CALL = ("padding", "truncation")  # of a tokenizer, which keeps what it was asked for


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


def weight_file_hashes(model: str) -> dict[str, str]:
    """SHA-256 of each file of weights in a model's folder; none of a Hub id."""
    return {path.name: file_hash(path) for path in sorted(Path(model).glob("*.safetensors"))}


def config_hash(content: str | bytes) -> str:
    """SHA-256 of what the content of a config.json says of a model, wherever it comes from."""
    return _hash_without(_ORIGIN, content)


def tokenizer_hash(content: str | bytes) -> str:
    """SHA-256 of what the content of a tokenizer.json makes of texts."""
    return _hash_without(_OF_THE_LAST_CALL, content)


def model_file_hashes(model: str) -> dict[str, str]:
    """SHA-256 of what a model's folder computes: files of weights, config and tokenizer; of a Hub id there is none.

    Of the config and the tokenizer it is a hash of what they say, however it is written.
    """
    hashes = weight_file_hashes(model)
    for name, hash_of in ((CONFIG, config_hash), ("tokenizer.json", tokenizer_hash)):
        if (path := Path(model) / name).is_file():
            hashes[name] = hash_of(path.read_bytes())
    return hashes


def _hash_without(names: Sequence[str], content: str | bytes) -> str:
    """SHA-256 of JSON without some entries; of anything else, which who loads it refuses, as it is."""
    try:
        kept = {name: value for name, value in json.loads(content).items() if name not in names}
    except (ValueError, RecursionError, AttributeError):
        return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def require_model(model: str, hashes: Mapping[str, str]) -> None:
    """Refuse a model that has changed since it was loaded.

    Args:
        model: A folder; of a Hub id nothing is said.
        hashes: What `model_file_hashes` gave before.

    Raises:
        ValueError: It has.
    """
    if model_file_hashes(model) != hashes:
        raise ValueError(f"The model in {model} changed while it was measured: do it again.")
