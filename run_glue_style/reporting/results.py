"""Files that a run leaves: all_results.json, and a model folder that is never half-written."""

import json
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = (
    "dsa-transformers",
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "datasets",
    "evaluate",
    "safetensors",
    "scikit-learn",
    "numpy",
)


def environment() -> dict[str, Any]:
    """What a run's figures depend on besides its settings: versions and hardware."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cpu_threads": torch.get_num_threads(),
        "gpu": device,
    }


def write_json(content: Any, path: Path) -> None:
    """Write a JSON file beside its place and rename it."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)


@contextmanager
def filled_folder(folder: Path) -> Iterator[Path]:
    """A fresh folder to write into; at the end of the block its files move into `folder`, one rename each.

    Where the block fails nothing moves.
    """
    beside = folder / ".unfinished"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        yield beside
        for path in beside.iterdir():
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(beside)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # a checkout that runs without being installed
        return None
