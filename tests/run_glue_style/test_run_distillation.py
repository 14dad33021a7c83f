"""The script for distillation, from outside: texts and a teacher in, a sentence encoder out."""

from pathlib import Path
from typing import Any

import pytest
from small_repositories import save_system
from small_runs import SMALL_SIZES, pairs, read_results, run_main, write_pair_files

from run_glue_style.run_distillation import main

pytestmark = pytest.mark.usefixtures("datasets_cache")
QUICK: dict[str, Any] = {
    **{name: size for name, size in SMALL_SIZES.items() if name != "classifier_hidden_sizes"},
    "setting": "dsa-small",
    "num_train_epochs": 4,
    "per_device_train_batch_size": 32,
    "learning_rate": 0.01,
    "validation_sentences": 40,
    "report_to": "none",
    "cpu": True,
}


def run_distillation(options: dict[str, Any]) -> int:
    return run_main(main, "run_distillation.py", QUICK | options)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Distinct sentences, and some copies."""
    path: Path = tmp_path_factory.mktemp("texts") / "sentences.txt"
    sentences = list(dict.fromkeys(row[column] for row in pairs("train") for column in ("premise", "hypothesis")))
    path.write_text("\n".join([*sentences[:400], *sentences[:20]]) + "\n")
    return path


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model: a small encoder of this package."""
    return save_system(tmp_path_factory.mktemp("teacher"), "encoder", attention_head_size=12).folder


@pytest.fixture(scope="module")
def options(texts: Path, teacher: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("data")
    vectors = write_pair_files(folder, {"train": 4}, width=8)["vectors"]
    return {"texts": texts, "teacher": teacher, "vectors": vectors, "cache_dir": folder / "cache"}


@pytest.fixture(scope="module")
def finished(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output: Path = tmp_path_factory.mktemp("runs") / "student"
    assert run_distillation(options | {"output_dir": output}) == 0
    return output


def test_a_fresh_student_learns_the_vectors_of_its_teacher(finished: Path) -> None:
    results = read_results(finished)
    assert results["model"]["projection_size"] == 24
    assert results["metrics"]["validation"]["cosine"] > 0.95 > results["history"][0]["validation_cosine"]
