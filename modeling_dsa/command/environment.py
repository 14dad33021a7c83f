"""What a run's figures depend on besides its settings: versions and hardware."""

import platform
from importlib.metadata import PackageNotFoundError, version
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
    "scipy",
    "sentence-transformers",
    "numpy",
)


def environment() -> dict[str, Any]:
    """Versions of the packages that compute, and the hardware; None for what is not there."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cpu_threads": torch.get_num_threads(),
        "gpu": device,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # a checkout that runs without being installed
        return None
