"""The script for distillation, from outside: texts and a teacher in, a sentence encoder out."""

import itertools
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from small_runs import (
    SMALL_SIZES,
    logged_error,
    pairs,
    read_results,
    run_main,
)
from small_teachers import save_teacher
from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import AutoModel

from modeling_dsa import DSAConfig, DSAModel, SentenceEncoder
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.shipped.settings import setting_folder, setting_names
from run_glue_style.distillation import teacher_cache
from run_glue_style.run_distillation import main, read

pytestmark = pytest.mark.usefixtures("datasets_cache")
QUICK: dict[str, Any] = {
    **{name: size for name, size in SMALL_SIZES.items() if name != "classifier_hidden_sizes"},
    "setting": "dsa-small",
    "embedding_size": 24,
    "freeze_embeddings": False,
    "num_train_epochs": 6,
    "per_device_train_batch_size": 32,
    "learning_rate": 0.01,
    "embedding_learning_rate": "none",
    "evaluations_per_epoch": 1,
    "similarity_weight": 1,
    "validation_sentences": 40,
    "report_to": "none",
    "cpu": True,
}


def run_distillation(options: dict[str, Any]) -> int:
    return run_main(main, "run_distillation.py", QUICK | options)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Distinct sentences, some copies, and a blank line, whose vector has the length 0."""
    path: Path = tmp_path_factory.mktemp("texts") / "sentences.txt"
    sentences = list(dict.fromkeys(row[column] for row in pairs("train") for column in ("premise", "hypothesis")))
    path.write_text("\n".join([*sentences[:400], "", *sentences[:20]]) + "\n")
    return path


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher") / "means", 24)


@pytest.fixture(scope="module")
def options(texts: Path, teacher: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"texts": texts, "teacher": teacher, "cache_dir": tmp_path_factory.mktemp("data") / "cache"}


@pytest.fixture(scope="module")
def finished(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output: Path = tmp_path_factory.mktemp("runs") / "student"
    assert run_distillation(options | {"output_dir": output}) == 0
    return output


def shard_times(options: dict[str, Any]) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in options["cache_dir"].glob("*/vectors-*.npy")}


def test_a_fresh_student_learns_the_vectors_of_its_teacher(finished: Path) -> None:
    results = read_results(finished)
    assert results["model"]["projection_size"] == results["teacher"]["width"] == 24
    assert results["data"]["validation"]["examples"] == 40
    assert results["metrics"]["validation"]["cosine"] > results["history"][0]["validation_cosine"] + 0.1
    assert results["metrics"]["validation"]["recall_at_1"] > 0.2  # by chance 1 of 40


def test_the_folder_loads_everywhere_and_its_card_names_the_teacher(finished: Path, teacher: Path) -> None:
    sentences = ["A man plays a guitar.", "Two dogs run."]
    vectors = SentenceEncoder.from_pretrained(finished).encode(sentences)
    assert type(AutoModel.from_pretrained(finished)) is DSAModel
    assert SentenceTransformer(str(finished)).encode(sentences) == pytest.approx(vectors, abs=1e-5)
    card = ModelCard.load(finished / "README.md")
    results = read_results(finished)
    assert f"- **Teacher.** {teacher.name}, 24 numbers a sentence." in card.text
    assert (
        f"| mean cosine with the teacher's vector | **{results['metrics']['validation']['cosine']:.3f}** |" in card.text
    )
    assert card.data.pipeline_tag == "sentence-similarity"
    assert (finished / "attention.png").is_file()


def test_a_narrower_student_learns_principal_components_and_the_cache_is_not_computed_again(
    finished: Path, options: dict[str, Any], tmp_path: Path
) -> None:
    before = shard_times(options)
    assert before
    rows = [f"{row['premise']}\t{row['hypothesis']}\t{row['label']}" for row in pairs("validation")[:10]]
    similarity = tmp_path / "pairs.tsv"
    similarity.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    changes = {"projection_size": 8, "matryoshka": [2, 4], "similarity_file": similarity, "max_train_steps": 4}
    assert run_distillation(options | changes | {"output_dir": tmp_path / "run"}) == 0
    assert shard_times(options) == before
    assert [path.name for path in options["cache_dir"].glob("*/pca-*.npy")] == ["pca-8.npy"]
    results = read_results(tmp_path / "run")
    assert results["recipe"]["metric_for_best_model"] == "spearman"
    assert results["metrics"]["validation"]["spearman"] == results["metrics"]["validation"]["spearman_pairs"]
    assert "reduced to its first 8 principal components" in (tmp_path / "run" / "README.md").read_text("utf-8")


def test_a_saved_student_learns_pairs_from_a_file_of_vectors(
    finished: Path, teacher: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [(row["premise"], row["hypothesis"]) for row in pairs("train")[:60]]
    (tmp_path / "pairs.tsv").write_text("\n".join(["a\tb", *map("\t".join, rows)]) + "\n")
    vectors = SentenceTransformer(str(teacher)).encode([text for row in rows for text in row])
    np.save(tmp_path / "vectors.npy", vectors)
    options = {
        "texts": tmp_path / "pairs.tsv",
        "text_column": ["a", "b"],
        "teacher_vectors": tmp_path / "vectors.npy",
        "model_name_or_path": finished,
        "contrastive_weight": 0.1,
        "validation_sentences": 20,
        "max_train_steps": 2,
        "learning_rate": 1e-4,
        "output_dir": tmp_path / "run",
    }
    sizes = (*SMALL_SIZES, "setting", "embedding_size")
    unsized = {name: value for name, value in QUICK.items() if name not in sizes}
    assert run_main(main, "run_distillation.py", unsized | options) == 0
    results = read_results(tmp_path / "run")
    assert results["metrics"]["validation"]["cosine"] > 0.4  # what it had learnt before
    assert results["data"]["validation"]["examples"] == 20
    np.save(tmp_path / "vectors.npy", np.zeros_like(vectors))
    other = {"output_dir": tmp_path / "other"}
    assert run_main(main, "run_distillation.py", unsized | options | other) == 2
    assert "vectors.npy: the vectors of all sentences that are held out have the length 0" in logged_error(caplog)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": None}, "Say what to learn from"),
        ({"teacher": None}, "Give either --teacher"),
        (
            {"teacher_vectors": "few.npy", "teacher": None, "vectors": "unread.txt"},
            "few.npy holds 3 vectors, and .* 421 sentences",
        ),
        ({"projection_size": 25}, "The student's vectors have 25 numbers and the teacher's 24: give --projection_size"),
        ({"pooling": "variational"}, "A part of pooling 'variational' learns from the class of each example"),
        ({"matryoshka": [24]}, "--matryoshka 24: the student's vectors have only 24 numbers"),
        ({"balance_classes": True}, "--balance_classes is for classes, and a teacher's vectors have none"),
        ({"evaluate_train": True}, "--evaluate_train is for labelled examples"),
        ({"encoder_learning_rate": 0.1}, "--encoder_learning_rate is for a model with a classifier"),
        (
            {"metric_for_best_model": "spearman"},
            "There is no metric 'spearman' to choose the best weights by: give one of",
        ),
        ({"validation_sentences": 399}, "--validation_sentences 399 leaves nothing to train on"),
        (
            {"embedding_learning_rate": 0.1, "freeze_embeddings": True},
            "--embedding_learning_rate is for a word table that is trained",
        ),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    changes: dict[str, Any],
    message: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("few.npy", np.ones((3, 24), np.float32))
    own = options | {"cache_dir": tmp_path / "cache"} | changes
    given = {name: value for name, value in own.items() if value is not None}
    assert run_distillation(given | {"output_dir": tmp_path / "run"}) == 2
    assert re.search(message, logged_error(caplog))
    assert [path.name for path in tmp_path.iterdir()] == ["few.npy"]  # the teacher's work is not begun


@pytest.mark.parametrize("name", setting_names())
def test_every_setting_that_learns_from_no_classes_can_be_distilled_by_the_recipe_of_an_encoder(name: str) -> None:
    run = read(["--texts", "texts.txt", "--teacher", "org/model", "--setting", name])
    config = DSAConfig.from_pretrained(setting_folder(name))
    if POOLINGS[config.pooling].learns_from_classes:
        with pytest.raises(ValueError, match=f"A part of pooling '{config.pooling}' learns from the class"):
            run.check()
    else:
        recipe = run.check().identity["recipe"]
        assert recipe["num_train_epochs"] == (4 if name == "dsa-mini-en" else 2)
        assert recipe["embedding_learning_rate"] == (None if config.freeze_embeddings else 0.001)


@contextmanager
def a_stop(kind: type[torch.nn.Module], is_time: Callable[[torch.nn.Module, Any], bool]) -> Iterator[None]:
    """A SIGTERM in the batches of a model of that class at which it is time."""

    def hook(module: torch.nn.Module, inputs: Any) -> None:
        if isinstance(module, kind) and is_time(module, inputs):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what the run does not handle ends no tests
    handle = register_module_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()
        signal.signal(signal.SIGTERM, before)


def test_a_stop_in_the_cache_or_in_training_costs_no_work_and_no_bit(options: dict[str, Any], tmp_path: Path) -> None:
    sentences = [row[column] for row in pairs("train") for column in ("premise", "hypothesis")]
    (tmp_path / "more.txt").write_text("\n".join(sentences) + "\n")  # in two parts
    own = options | {"texts": tmp_path / "more.txt", "cache_dir": tmp_path / "cache"}
    own |= {"max_train_steps": 10, "checkpointing_steps": 5}
    output = {"output_dir": tmp_path / "stopped"}
    with a_stop(Transformer, lambda _, inputs: len(inputs[0]["input_ids"]) > 1):  # the teacher's words
        assert run_distillation(own | output) == 130
    assert not (tmp_path / "cache").exists()
    with a_stop(Transformer, lambda *_: any((tmp_path / "cache").glob("*/part-*"))):  # its sentences
        assert run_distillation(own | output) == 130
    (part,) = (tmp_path / "cache").glob("*/*.npy")
    assert len(np.load(part)) == teacher_cache.PART_ROWS
    batches = itertools.count(1)
    with a_stop(DSAModel, lambda model, _: model.training and next(batches) == 7):  # the student
        assert run_distillation(own | output) == 130
    assert (tmp_path / "stopped" / "checkpoints" / "step-7").is_dir()
    shards = shard_times(own)
    assert list((tmp_path / "cache").glob("*/*.npy")) == list(shards)
    assert run_distillation(own | output) == 0
    assert shard_times(own) == shards
    assert run_distillation(own | {"output_dir": tmp_path / "whole"}) == 0
    stopped, whole = (load_file(tmp_path / name / "model.safetensors") for name in ("stopped", "whole"))
    assert stopped.keys() == whole.keys()
    assert all(torch.equal(stopped[name], whole[name]) for name in whole)
