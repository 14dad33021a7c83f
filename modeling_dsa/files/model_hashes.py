"""What a model's folder computes, as numbers that tell it from all others."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .hashing import describe_files, file_hash, require_hash
from .model_folder import CONFIG

# Fields of a config that say where it comes from, and not what its model computes.
_ORIGIN = ("_name_or_path", "auto_map", "custom_pipelines", "fold_embeddings", "transformers_version")
_OF_THE_LAST_CALL = ("padding", "truncation")  # of a tokenizer, which keeps what it was asked for


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


@contextmanager
def unchanged(model: str, files: Iterable[Path]) -> Iterator[tuple[dict[str, str], dict[Path, dict[str, str]]]]:
    """Refuse figures of a model, or of files, that have changed while the block measured them.

    Args:
        model: A folder; of a Hub id nothing is said.
        files: What it is measured on. Of one that is missing, what reads it tells.

    Yields:
        What `model_file_hashes` gives of the model, and the name and SHA-256 of each file that is there.

    Raises:
        ValueError: One of them has changed.
    """
    hashes = model_file_hashes(model)
    described = {path: describe_files([path])[0] for path in files if path.is_file()}
    yield hashes, described
    require_model(model, hashes)
    for path, file in described.items():
        require_hash(path, file["sha256"])
