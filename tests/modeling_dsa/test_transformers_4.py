"""What transformers 5 has saved loads under transformers 4.57, from a folder and from the Hub."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from loopback_hub import LoopbackHub
from repository_clients import Result, outputs_of, publish, run_repository_client, vectors_of, visit
from small_repositories import SYSTEMS, Saved, offline_environment, save_system
from small_runs import small_tokenizer

CACHE = Path(__file__).parents[2] / ".cache"
RELEASE = "transformers-4.57"
# What transformers 4.57 asks for; everything else is that of the running interpreter.
REQUIREMENTS = ["transformers==4.57.*", "huggingface_hub>=0.34,<1.0", "tokenizers>=0.22,<=0.23.0"]
TOKEN = "hf_ana"

pytestmark = pytest.mark.slow


def install(cache: Path) -> Path:
    """The folder of transformers 4.57, which is installed there once.

    Raises:
        ConnectionError: pip could not install it.
    """
    folder = cache / RELEASE
    cache.mkdir(exist_ok=True)
    (cache / ".gitignore").write_text("*\n", encoding="utf-8")
    with FileLock(cache / f"{RELEASE}.lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                packages = Path(scratch) / "packages"
                options = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
                command = [sys.executable, "-m", "pip", "install", *options, "--target", str(packages), *REQUIREMENTS]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise ConnectionError(f"pip could not install {' '.join(REQUIREMENTS)}: {done.stderr.strip()}")
                packages.replace(folder)
    return folder


@pytest.fixture(scope="module")
def libraries() -> Path:
    """Where transformers 4.57 and its own libraries lie."""
    try:
        return install(CACHE)
    except ConnectionError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    folder = tmp_path_factory.mktemp("saved")
    return {name: save_system(folder, name) for name in SYSTEMS}


@pytest.fixture(scope="module")
def visited(libraries: Path, saved: dict[str, Saved], tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("stranger")
    environment = offline_environment(folder / "home") | {"PYTHONPATH": str(libraries)}
    sources = {name: str(system.folder) for name, system in saved.items()}
    return run_repository_client(environment, folder, visit, sources=sources, sentence_transformers=False)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path_factory.mktemp("hub")) as running:
        running.add_user("ana", TOKEN, orgs=["org"])
        yield running


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_folder_gives_the_same_numbers(saved: dict[str, Saved], visited: Result, name: str) -> None:
    assert visited["transformers"].startswith("4.57.")
    assert visited["package"][0] == "ModuleNotFoundError"
    model, loaded = saved[name].model, visited[name]["loaded"]
    assert loaded["classes"] == ["DSAConfig", type(model).__name__, "DSAModel"]
    assert loaded["packages"] == ["transformers_modules"]
    assert loaded["problems"] == []
    assert loaded["training"] == [False, False]
    assert loaded["outputs"] == outputs_of(model, small_tokenizer())
    assert loaded["base_outputs"] == outputs_of(saved[name].base, small_tokenizer())


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_frozen_table_stays_frozen(visited: Result, name: str) -> None:
    trains = not SYSTEMS[name][1].get("freeze_embeddings", True)
    assert visited[name]["loaded"]["table_trains"] == [trains, trains]
    assert visited[name]["loaded"]["others_train"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_vectors_of_sentences(saved: dict[str, Saved], visited: Result, name: str) -> None:
    found = visited[name]["pipelines"]
    expected = torch.tensor(vectors_of(saved[name].base, small_tokenizer()))
    assert found["class"] == "SentenceEmbeddingPipeline"
    torch.testing.assert_close(torch.tensor(found["vectors"]), expected)
    torch.testing.assert_close(torch.tensor(found["vectors_batched"]), expected)


def test_classes(saved: dict[str, Saved], visited: Result) -> None:
    found, model = visited["nli"]["pipelines"], saved["nli"].model
    scores = torch.tensor(outputs_of(model, small_tokenizer())["logits"]).softmax(-1).tolist()
    expected = [dict(zip(model.config.id2label.values(), row, strict=True)) for row in scores]
    for given, right in zip(found["pairs"], expected, strict=True):
        assert {answer["label"]: answer["score"] for answer in given} == pytest.approx(right, abs=1e-6)
    assert found["pairs_as_texts"] == found["pairs"]
    assert found["topics"]["scores"] == sorted(found["topics"]["scores"], reverse=True)


def test_the_hub_gives_the_same_numbers(
    libraries: Path, saved: dict[str, Saved], visited: Result, hub: LoopbackHub, tmp_path: Path
) -> None:
    folders = {"nli": str(saved["nli"].folder), "encoder": str(saved["encoder"].folder)}
    writer = hub.environment(tmp_path / "writer")
    published = run_repository_client(writer, tmp_path, publish, **folders, folder=str(tmp_path / "new"), token=TOKEN)
    environment = hub.environment(tmp_path / "reader") | {"PYTHONPATH": str(libraries)}
    sources = {"nli": "org/nli"}
    found = run_repository_client(environment, tmp_path, visit, sources=sources, sentence_transformers=False)
    assert found["transformers"] == visited["transformers"]
    assert found["nli"]["loaded"]["outputs"] == published["after"]
    assert found["nli"]["loaded"]["base_outputs"] == visited["nli"]["loaded"]["base_outputs"]
    assert found["nli"]["loaded"]["table_trains"] == [False, False]
    assert found["nli"]["pipelines"]["vectors"] == visited["nli"]["pipelines"]["vectors"]
    best = [classes[0]["label"] for classes in found["nli"]["pipelines"]["pairs"]]
    assert best == [
        saved["nli"].model.config.id2label[row.argmax().item()] for row in torch.tensor(published["after"]["logits"])
    ]
