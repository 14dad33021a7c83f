"""Settings for all tests."""

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from filelock import FileLock
from huggingface_hub import constants
from hypothesis import settings
from loopback_hub import LoopbackHub
from small_repositories import Saved, save_system

# Here and, before anything else, in every Python that a test starts.
LOOPBACK_ONLY = Path(__file__).parent / "support" / "loopback_only"
os.environ["PYTHONPATH"] = str(LOOPBACK_ONLY)
runpy.run_path(str(LOOPBACK_ONLY / "sitecustomize.py"))

# The tests' tensors are tiny: a second thread costs more than it brings, and the machine has other work.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)

# Where it is set, every process that a test starts compiles all modules that it imports, for some ten seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Where the Hub is switched off, that of the tests would be, too.
os.environ.pop("HF_HUB_OFFLINE", None)
constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = False

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


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


@pytest.fixture(scope="session", autouse=True)
def _modules_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the code of repositories: one for all, as a process finds its package in one folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
        yield


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    """A Hub without users or repositories."""
    with LoopbackHub(tmp_path / "hub") as running:
        yield running


def _export_once(factory: pytest.TempPathFactory, name: str, *options: str) -> Saved:
    """A classifier of pairs, with its fp32 and int8 ONNX files in the folder, as `dsa onnx` writes them.

    An export takes seconds: the first worker of pytest-xdist makes it for all, whose folders lie in one.
    """
    from modeling_dsa import DSAForNLI
    from modeling_dsa.cli.main import main

    own = factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    folder = shared / "nli"
    with FileLock(shared.with_suffix(".lock")):
        if not (folder / "onnx").exists():
            sizes = {"embedding_size": 64, "hidden_size": 16, "first_layer_size": 16, "growth_size": 8}
            save_system(shared, "nli", **sizes, attention_head_size=24)
            before = {path.name for path in folder.iterdir()}
            assert main(["onnx", str(folder), "--int8", *options]) == 0
            assert {path.name for path in folder.iterdir()} == before | {"onnx"}
    return Saved(folder, DSAForNLI.from_pretrained(folder))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A classifier of pairs, with its fp32 and int8 ONNX files in the folder."""
    return _export_once(tmp_path_factory, "exported")


@pytest.fixture(scope="session")
def memory_mapped(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """The same classifier, with the tables in files of their own."""
    return _export_once(tmp_path_factory, "memory_mapped", "--memory_mapped")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Matplotlib's figures that were saved."""
    from matplotlib.figure import Figure

    figures: list[Any] = []
    save = Figure.savefig

    def savefig(figure: Any, *arguments: Any, **options: Any) -> None:
        figures.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return figures
