"""The stance script from outside: command line in, folder out."""

import logging
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_runs import SMALL_SIZES, logged_error, read_results, run_main, same_tensors
from small_stances import NAMES, TOPICS, make_tables, write_stances
from transformers import pipeline

from modeling_dsa import DSAForSequenceClassification
from modeling_dsa.text.tokenization import count_words
from run_glue_style.run_stance import DataArguments, main, make_task
from run_glue_style.tasks.fnc_score import FNCScore
from run_glue_style.tasks.metrics import ClassificationMetric
from run_glue_style.tasks.stance import CLASS_NAMES
from run_glue_style.training.labelled_run import make_objective
from run_glue_style.training.objective import Classification
from run_glue_style.training.recipe import TrainingRecipe

pytestmark = pytest.mark.usefixtures("datasets_cache")
WIDTH = 12
QUICK: dict[str, Any] = {
    "setting": "dsa-single-snli",
    **SMALL_SIZES,
    "validation_share": 0.2,
    "num_train_epochs": 4,
    "per_device_train_batch_size": 32,
    "evaluations_per_epoch": 1,
    "optimizer": "adamw",
    "schedule": "cosine",
    "learning_rate": 0.01,
    "metric_for_best_model": "fnc_relative",
    "report_to": "none",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The four files in a folder, and vectors of their words, as options."""
    folder = write_stances(tmp_path_factory.mktemp("fnc"))
    texts = []
    for part, topics in (("train", TOPICS), ("test", ("pianos", "rivers", "clouds"))):
        stances, bodies = make_tables(topics, part)
        texts += [row["Headline"] for row in stances] + [row["articleBody"] for row in bodies]
    generator = np.random.default_rng(0)
    lines = [
        " ".join([word, *(f"{number:.4f}" for number in generator.normal(size=WIDTH))])
        for word in count_words(texts, lowercase=True)
    ]
    vectors = folder / "vectors.txt"
    vectors.write_text("\n".join(lines) + "\n")
    return {"data_dir": folder, "vectors": vectors}


def run_stance(options: dict[str, Any]) -> int:
    return run_main(main, "run_stance.py", {"cpu": True} | options)


@pytest.fixture(scope="module")
def finished(files: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder of a run, and what it logged."""
    folder: Path = tmp_path_factory.mktemp("runs") / "finished"
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    try:
        assert run_stance(QUICK | files | {"output_dir": folder}) == 0
    finally:
        logging.getLogger().removeHandler(handler)
    return folder, "\n".join(lines)


def test_results_have_all_figures_of_the_saved_model(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    results = read_results(folder)
    stances, bodies = make_tables(("pianos", "rivers", "clouds"), "test")
    texts = {row["Body ID"]: row["articleBody"] for row in bodies}
    classify = pipeline("text-classification", model=str(folder))
    found = classify([{"text": row["Headline"], "text_pair": texts[row["Body ID"]]} for row in stances])
    predictions = [CLASS_NAMES.index(answer["label"]) for answer in found]
    references = [CLASS_NAMES.index(row["Stance"]) for row in stances]
    written = results["metrics"]["test"]
    written.pop("loss")
    expected = ClassificationMetric(CLASS_NAMES).compute(predictions=predictions, references=references)
    expected |= FNCScore(CLASS_NAMES).compute(predictions=predictions, references=references)
    assert written == expected
    assert written["fnc_max"] == 3 * 12 + 0.25 * (len(stances) - 36)


def test_inverse_document_frequencies_are_of_the_first_training(files: dict[str, Any], tmp_path: Path) -> None:
    short = {"max_train_steps": 1, "report_to": "none"}
    options = QUICK | files | short | {"pair_features": ["first", "idf_overlap"], "output_dir": tmp_path / "first"}
    assert run_stance(options) == 0
    further = short | {"model_name_or_path": tmp_path / "first", "max_train_samples": 64, "data_dir": files["data_dir"]}
    assert run_stance(further | {"output_dir": tmp_path / "further"}) == 0
    idf, kept = (
        load_file(tmp_path / name / "model.safetensors")["pair_features.overlap.idf"] for name in ("first", "further")
    )
    assert torch.equal(idf, kept)
    documents = float((idf[0] - 1).exp()) - 1  # no text holds padding
    frequencies = (1 + documents) / (idf - 1).exp() - 1
    torch.testing.assert_close(frequencies, frequencies.round(), rtol=0, atol=1e-3)
    assert 1 <= frequencies.max() <= round(documents, 3)


def test_results_say_what_was_run(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    results = read_results(folder)
    assert results["task"] == "stance"
    assert results["source"] == ", ".join(NAMES.values())
    assert results["model"]["sentences_per_example"] == 2
    assert results["model"]["id2label"] == {str(number): name for number, name in enumerate(CLASS_NAMES)}
    assert list(results["data"]) == ["train", "validation", "test"]
    assert results["data"]["test"]["examples"] == 3 * (12 + 4 * 2)
    assert results["data"]["train"]["examples"] == 8 * (12 + 4 * 7)
    assert results["vectors"] == "vectors.txt"
    best = max(record["validation_fnc_relative"] for record in results["history"])
    assert results["metrics"]["validation"]["fnc_relative"] == best
    assert isinstance(DSAForSequenceClassification.from_pretrained(folder), DSAForSequenceClassification)


def test_the_summary_has_the_official_score_and_each_class(finished: tuple[Path, str]) -> None:
    folder, written = finished
    scores = read_results(folder)["metrics"]["test"]
    assert f"test: accuracy {scores['accuracy']:.1%}, macro F1 {scores['macro_f1']:.1%}" in written
    classes = ", ".join(f"{name} {scores['per_class'][name]['f1']:.1%}" for name in CLASS_NAMES)
    assert f"test: F1 {classes}; fnc_score {scores['fnc_score']:g}, fnc_max 42, fnc_relative" in written
    assert "Validation holds out 2 of 10 topics" in written


def test_who_learns_points_counts_an_unrelated_pair_as_a_quarter(files: dict[str, Any]) -> None:
    for learns, points in ((True, (1.0, 1.0, 1.0, 0.25)), (False, None)):
        task = make_task(DataArguments(data_dir=files["data_dir"], learn_points=learns))
        objective = make_objective(task, TrainingRecipe())
        assert isinstance(objective, Classification)
        assert objective.class_points == points


def test_each_pairs_share_of_the_official_score_is_kept_for_paired_tests() -> None:
    objective = make_objective(make_task(DataArguments(data_dir=Path())), TrainingRecipe())
    scores = objective.example_scores(torch.eye(4), torch.tensor([0, 2, 2, 3]))  # right, other related class, right, ..
    assert scores["fnc_relative"].tolist() == pytest.approx([4 / 3.25, 1 / 3.25, 4 / 3.25, 1 / 3.25])


def test_without_a_limit_every_token_is_read(finished: tuple[Path, str]) -> None:
    folder, written = finished
    texts = read_results(folder)["texts"]["test"]
    assert texts["headline"] == {"texts": 9, "tokens": 45, "longest": 5, "truncated": 0, "unread_share": 0.0}
    assert (texts["body"]["texts"], texts["body"]["truncated"], texts["body"]["unread_share"]) == (12, 0, 0.0)
    assert f"Every token is read; the longest text has {texts['body']['longest']} tokens." in written


def test_effect_of_a_limit_is_reported(tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    options = QUICK | files | {"output_dir": tmp_path, "max_sentence_tokens": 6, "max_train_steps": 1}
    assert run_stance(options) == 0
    texts = read_results(tmp_path)["texts"]
    assert (texts["train"]["body"]["texts"], texts["train"]["body"]["truncated"]) == (32, 32)
    assert texts["train"]["headline"]["truncated"] == 0
    tokens = texts["test"]["body"]["tokens"]
    assert texts["test"]["body"]["unread_share"] == pytest.approx((tokens - 12 * 6) / tokens)
    assert re.search(
        r"The first 6 tokens of each text are read: 52 of 91 texts are longer, the longest has \d+ tokens, and "
        r"\d\d\.\d% of all tokens are not read\.",
        caplog.text,
    )


def test_four_files_are_like_a_folder_and_one_may_lie_elsewhere(
    tmp_path: Path, files: dict[str, Any], finished: tuple[Path, str]
) -> None:
    folder = files["data_dir"]
    options = QUICK | {"vectors": files["vectors"], "max_train_steps": 1}
    options |= {option: folder / name for option, name in NAMES.items()}
    assert run_stance(options | {"output_dir": tmp_path / "four"}) == 0
    stances = (folder / NAMES["test_stances"]).read_text("utf-8")
    elsewhere = tmp_path / "mine.csv"
    elsewhere.write_text("\n".join(stances.splitlines()[:21]) + "\n", "utf-8")
    options = QUICK | files | {"test_stances": elsewhere, "max_train_steps": 1}
    assert run_stance(options | {"output_dir": tmp_path / "mixed"}) == 0
    expected = read_results(finished[0])["data"]
    assert read_results(tmp_path / "four")["data"] == expected
    mixed = read_results(tmp_path / "mixed")["data"]
    assert mixed["test"]["examples"] == 20
    assert {name: mixed[name] for name in ("train", "validation")} == {
        name: expected[name] for name in ("train", "validation")
    }


def test_run_that_was_interrupted_inside_a_grouped_epoch_ends_in_the_same_weights(
    tmp_path: Path, files: dict[str, Any], finished: tuple[Path, str]
) -> None:
    options = QUICK | files | {"output_dir": tmp_path}
    count = 0
    original = DSAForSequenceClassification.forward

    def forward(self: DSAForSequenceClassification, *arguments: Any, **keywords: Any) -> Any:
        nonlocal count
        count += self.training
        if self.training and count == 14:  # of 10 batches an epoch
            signal.raise_signal(signal.SIGTERM)
        return original(self, *arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DSAForSequenceClassification, "forward", forward)
        assert run_stance(options) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]
    torch.manual_seed(12345)
    assert run_stance(options) == 0
    whole, resumed = read_results(finished[0]), read_results(tmp_path)
    assert whole["history"] == resumed["history"]
    assert same_tensors(*(load_file(folder / "model.safetensors") for folder in (finished[0], tmp_path)))


@pytest.mark.parametrize("share", [0.0, 0.51, -1.0, float("nan")])
def test_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"validation_share must be greater than 0 and at most 0\.5, got"):
        DataArguments(validation_share=share)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_dir": None}, "Give --train_stances, or --data_dir with the competition's four files"),
        ({"validation_share": 0.01}, r"are of 10 topics, but holding out a share of 0\.01 by whole topics takes 100"),
        ({"metric_for_best_model": "f1"}, "no metric 'f1'.*accuracy, macro_f1, fnc_score, fnc_relative"),
    ],
)
def test_mistake_is_one_sentence(
    tmp_path: Path,
    files: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    options = QUICK | files | {"output_dir": "run"} | changes
    assert run_stance({name: value for name, value in options.items() if value is not None}) == 2
    assert re.search(message, logged_error(caplog))
    assert not list(tmp_path.iterdir())
