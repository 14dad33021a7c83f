"""Settings for all tests."""

from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
import torch
from hypothesis import settings
from loopback_hub import LoopbackHub

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

# The tests' tensors are tiny: a second thread costs more than it brings, and the machine has other work.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test draws the same random numbers, alone or among others."""
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def datasets_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of `datasets` of the module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        yield


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    """A Hub without users or repositories."""
    with LoopbackHub(tmp_path / "hub") as running:
        yield running
