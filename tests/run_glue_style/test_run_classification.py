"""The script for labels of one's own, from outside: command line in, folder out."""

import csv
import json
import logging
import random
import re
import shutil
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_runs import SMALL_SIZES, logged_error, read_results, run_main
from transformers import AutoModelForSequenceClassification, pipeline

from modeling_dsa import DSAForSequenceClassification
from run_glue_style.run_classification import DataArguments, main, make_task

pytestmark = pytest.mark.usefixtures("datasets_cache")
WIDTH = 8
# A pair's class is that of the one telling word in its second text; its number is how often that word stands there.
LABELS = {"yes, of course": "sure", "no 🙁": "never", "don't know": "maybe"}
NEUTRAL = ["shall", "we", "meet", "there", "at", "noon", "they", "said", "again"]
QUICK: dict[str, Any] = {
    **SMALL_SIZES,
    "num_train_epochs": 5,
    "per_device_train_batch_size": 32,
    "learning_rate": 0.02,
    "embedding_dropout": 0,
    "classifier_dropout": 0,
    "report_to": "none",
    "cpu": True,
}


def run_classification(options: dict[str, Any]) -> int:
    return run_main(
        main, "run_classification.py", {name: value for name, value in options.items() if value is not None}
    )


def make_rows(count: int) -> list[dict[str, Any]]:
    draw, rows = random.Random(0), []
    for _ in range(count):
        label, times = draw.choice(list(LABELS)), draw.randint(1, 4)
        answer = [*draw.sample(NEUTRAL, 3), *[LABELS[label]] * times]
        draw.shuffle(answer)
        rows.append(
            {"ask": " ".join(draw.sample(NEUTRAL, 4)), "reply": " ".join(answer), "class": label, "score": times}
        )
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Examples as a table and as JSON lines, and vectors of their words."""
    folder, generator, rows = tmp_path_factory.mktemp("data"), np.random.default_rng(0), make_rows(320)
    for name, part in (("train", rows[:240]), ("test", rows[240:])):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["class", "ask", "reply"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(part)
    lines = [json.dumps({"text": row["reply"], "score": row["score"] + 0.25}) for row in rows]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    vectors = [[word, *map(str, generator.normal(size=WIDTH).round(4))] for word in [*NEUTRAL, *LABELS.values()]]
    (folder / "vectors.txt").write_text("\n".join(map(" ".join, vectors)) + "\n")
    return folder


@pytest.fixture(scope="module")
def finished(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run on pairs with three classes."""
    output: Path = tmp_path_factory.mktemp("runs") / "answers"
    options = {
        "train_file": folder / "train.csv",
        "test_file": folder / "test.csv",
        "text_column": ["ask", "reply"],
        "validation_split": 40,
        "vectors": folder / "vectors.txt",
        "calibrate": True,
        "output_dir": output,
    }
    assert run_classification(QUICK | options) == 0
    return output


def test_classes_of_pairs_are_learnt_and_named(finished: Path) -> None:
    results = read_results(finished)
    names = ["don't know", "no 🙁", "yes, of course"]
    assert results["task"] == "classification"
    assert results["setting"] == results["recipe_name"] == "dsa-small"
    assert results["source"] == "train.csv, test.csv"
    assert {name: split["examples"] for name, split in results["data"].items()} == {
        "train": 200,
        "validation": 40,
        "test": 80,
    }
    assert list(results["metrics"]["test"]["per_class"]) == names
    assert results["metrics"]["test"]["accuracy"] > results["metrics"]["test"]["majority_accuracy"] + 0.3
    model = AutoModelForSequenceClassification.from_pretrained(finished)
    assert type(model) is DSAForSequenceClassification
    assert model.config.id2label == dict(enumerate(names))
    assert (model.config.sentences_per_example, model.config.problem_type) == (2, "single_label_classification")
    found = pipeline("text-classification", str(finished))([{"text": "shall we meet", "text_pair": "they said never"}])
    assert found[0]["label"] == "no 🙁"


def test_the_figures_are_those_of_the_calibrated_model_that_is_saved(finished: Path, folder: Path) -> None:
    results = read_results(finished)
    assert len(results["calibration"]["biases"]) == 3
    with (folder / "test.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    classify = pipeline("text-classification", str(finished), top_k=None)
    answers: Any = classify([{"text": row["ask"], "text_pair": row["reply"]} for row in rows])
    probabilities = [
        next(one["score"] for one in answer if one["label"] == row["class"])
        for row, answer in zip(rows, answers, strict=True)
    ]
    assert results["metrics"]["test"]["loss"] == pytest.approx(-np.log(probabilities).mean(), rel=1e-3)


def test_card_shows_examples_of_the_run_with_real_outputs(finished: Path) -> None:
    card = (finished / "README.md").read_text("utf-8")
    asked = re.search(r'print\(classify\((\{"text": .*\})\)\)', card)
    assert asked is not None
    assert json.loads(asked[1]).keys() == {"text", "text_pair"}
    texts = [f"{first} [SEP] {second}" for first, second in read_results(finished)["shown_examples"]]
    assert len(texts) == 3
    for text in texts:
        assert f"- text: {text}\n" in card
    assert "*don't know*, *no 🙁*, *yes, of course*" in card


@pytest.fixture(scope="module")
def regression(finished: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder of a run on numbers that starts from the encoder of the first run, and what it logged."""
    output: Path = tmp_path_factory.mktemp("runs") / "numbers"
    options = {"train_file": folder / "train.jsonl", "validation_split": 0.2, "model_name_or_path": finished}
    options |= {name: value for name, value in QUICK.items() if name not in SMALL_SIZES}
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    assert run_classification(options | {"output_dir": output, "num_train_epochs": 8, "encoder_learning_rate": 0}) == 0
    card = (output / "README.md").read_text(encoding="utf-8")
    assert "numbers a word; kept as they are." in card
    assert ", unchanged." in card
    root.removeHandler(handler)
    root.setLevel(level)
    return output, "\n".join(lines)


def test_numbers_are_learnt_by_a_new_head_on_a_saved_encoder(regression: tuple[Path, str], finished: Path) -> None:
    output, logged = regression
    results = read_results(output)
    scores = results["metrics"]["validation"]
    assert results["task"] == "regression"
    assert results["recipe"]["metric_for_best_model"] == "spearman"
    assert results["recipe"]["weight_decay"] == 0.01
    assert scores["pearson"] > 0.5
    assert scores["mean_absolute_error"] < scores["constant_absolute_error"]
    assert "Regression: column 'score' holds numbers from 1.25 to 4.25." in logged
    assert "the head is a new one, as its own is for other labels" in logged
    model = AutoModelForSequenceClassification.from_pretrained(output)
    assert results["model"]["architectures"] == ["DSAForSequenceClassification"]
    assert results["trained_parameters"] == sum(weight.numel() for weight in model.classifier.parameters())
    assert f"validation: Pearson {scores['pearson']:.3f}, Spearman {scores['spearman']:.3f}; mean absolute er" in logged
    before, after = (load_file(path / "model.safetensors") for path in (finished, output))
    table = "dsa.embed_tokens.weight"
    assert torch.equal(before[table], after[table])
    card = (output / "README.md").read_text("utf-8")
    assert f"| Pearson's correlation with the labels | **{scores['pearson']:.3f}** |" in card


def test_saved_regression_gives_the_same_numbers(regression: tuple[Path, str], folder: Path) -> None:
    output, _ = regression
    data = make_task(DataArguments(train_file=folder / "train.jsonl", validation_split=0.2)).load()["validation"]
    predicted = pipeline("text-classification", str(output))(data["text"][:])
    errors = [abs(found["score"] - label) for found, label in zip(predicted, data["label"], strict=True)]
    expected = read_results(output)["metrics"]["validation"]["mean_absolute_error"]
    assert np.mean(errors) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("factor", "starts_anew"), [(1, False), (1000, True)])
def test_a_saved_regression_goes_on_unless_its_numbers_are_others(
    factor: int,
    starts_anew: bool,
    regression: tuple[Path, str],
    folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text("utf-8").splitlines()]
    lines = [json.dumps(row | {"score": factor * row["score"]}) for row in rows]
    (tmp_path / "train.jsonl").write_text("\n".join(lines) + "\n")
    options = {"train_file": tmp_path / "train.jsonl", "validation_split": 0.2, "model_name_or_path": regression[0]}
    caplog.set_level("INFO")
    few = {"max_train_steps": 1, "evaluations_per_epoch": 1, "learning_rate": 1e-6, "report_to": "none", "cpu": True}
    assert run_classification(options | few | {"output_dir": tmp_path / "run"}) == 0
    scores = read_results(tmp_path / "run")["metrics"]["validation"]
    assert any("the last layer of its head starts anew" in message for message in caplog.messages) == starts_anew
    ratio = scores["mean_absolute_error"] / scores["constant_absolute_error"]
    assert 0.9 < ratio < 1.1 if starts_anew else ratio < 0.9  # of a model that says the mean label of every example


@pytest.mark.parametrize("change", [{"pair_features": ["second", "first"]}, {"classifier_hidden_sizes": [5]}])
def test_another_head_than_the_saved_one_is_drawn(
    change: dict[str, Any], finished: Path, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"train_file": folder / "train.csv", "test_file": folder / "test.csv", "model_name_or_path": finished}
    caplog.set_level("INFO")
    few = {"max_train_steps": 1, "evaluations_per_epoch": 1, "validation_split": 0.2, "report_to": "none", "cpu": True}
    columns = {"text_column": ["ask", "reply"], "label_column": "class"}
    assert run_classification(options | few | columns | change | {"output_dir": tmp_path / "run"}) == 0
    assert any("the head is a new one" in message for message in caplog.messages)


def test_a_saved_head_that_does_not_say_that_its_labels_are_classes_is_kept(
    finished: Path, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = shutil.copytree(finished, tmp_path / "model")
    config = json.loads((model / "config.json").read_text("utf-8"))
    (model / "config.json").write_text(json.dumps(config | {"problem_type": None}), "utf-8")
    options = {"train_file": folder / "train.csv", "model_name_or_path": model, "output_dir": tmp_path / "run"}
    columns = {"text_column": ["ask", "reply"], "label_column": "class", "validation_split": 0.2}
    caplog.set_level("INFO")
    # So few epochs are one update.
    few = {"num_train_epochs": 1e-12, "learning_rate": 1e-30, "report_to": "none", "cpu": True}
    assert run_classification(options | few | columns) == 0
    assert not any("the head is a new one" in message for message in caplog.messages)
    assert read_results(tmp_path / "run")["metrics"]["validation"]["accuracy"] > 0.7


@pytest.mark.parametrize(("low", "high"), [("1.5", "1e39"), ("1700000000.0", "1700000001.5"), ("1e-320", "2e-320")])
def test_numbers_that_float32_cannot_hold_or_tell_apart_are_refused(
    low: str, high: str, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, output = tmp_path / "train.csv", tmp_path / "run"
    path.write_text("text,label\n" + f"we meet,{low}\nthey said,{high}\n" * 4)
    options = {"train_file": path, "validation_split": 2, "vectors": folder / "vectors.txt", "output_dir": output}
    sizes = {"setting": "dsa-small", "embedding_size": WIDTH, "problem_type": "regression"}
    assert run_classification({**QUICK, **sizes, **options}) == 2
    assert "train.csv: the labels in column 'label' go from" in logged_error(caplog)
    assert not output.exists()


def test_a_file_without_labels_is_no_split(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, labels in (("train", "1.5 2.5 0.5 3.5"), ("validation", "1.5 2.5"), ("test", "-1 -1")):
        (tmp_path / f"{name}.csv").write_text("text,label\n" + "".join(f"we meet {n},{n}\n" for n in labels.split()))
    caplog.set_level("INFO")
    files = {f"{name}_file": tmp_path / f"{name}.csv" for name in ("train", "validation", "test")}
    options = files | {"vectors": folder / "vectors.txt", "output_dir": tmp_path / "run", "setting": "dsa-small"}
    assert run_classification({**QUICK, **options, "embedding_size": WIDTH, "problem_type": "regression"}) == 0
    assert set(read_results(tmp_path / "run")["metrics"]) == {"validation"}
    assert "The split 'test' has no labels, and is left out." in caplog.messages
    with pytest.raises(ValueError, match=r"test\.csv has no row with a label, and validation chooses"):
        make_task(DataArguments(train_file=files["train_file"], validation_file=files["test_file"]))


def test_classes_of_a_folder_of_tables_are_those_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    rows = [f"text {number},{number % 3:03}" for number in range(12)]
    (tmp_path / "data" / "train.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    given: dict[str, Any] = {"validation_split": 0.25}
    by_name = make_task(DataArguments(dataset_name=str(tmp_path / "data"), **given))
    by_file = make_task(DataArguments(train_file=tmp_path / "data" / "train.csv", **given))
    assert by_name.class_names == by_file.class_names == ("000", "001", "002")
    assert by_name.load()["train"].to_dict() == by_file.load()["train"].to_dict()


def test_data_set_by_name_holds_a_validation_split_out_and_leaves_hidden_labels(tmp_path: Path) -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["zebra", "ant"])}
    )
    for split, labels in {"train": [0, 1] * 10, "test": [1, 0], "unsupervised": [-1, -1]}.items():
        rows = {"text": [f"{split} {index}" for index in range(len(labels))], "label": labels}
        datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / f"{split}-00000-of-00001.parquet")
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n"
        + "".join(f"  - split: {name}\n    path: {name}-*\n" for name in ("train", "test", "unsupervised"))
        + "---\n"
    )
    task = make_task(DataArguments(dataset_name=str(tmp_path), validation_split=0.2))
    assert task.class_names == ("zebra", "ant")
    assert {name: len(split) for name, split in task.load().items()} == {"train": 16, "validation": 4, "test": 2}
    with pytest.raises(ValueError, match=r"no validation split, only train, test: give --validation_split 0\.1"):
        make_task(DataArguments(dataset_name=str(tmp_path))).load()


def test_glue_keeps_the_two_validation_splits_of_mnli_apart(tmp_path: Path) -> None:
    for split in ("train", "validation_matched", "validation_mismatched"):
        rows = {"premise": [f"{split} a"], "hypothesis": ["b"], "label": [2]}
        datasets.Dataset.from_dict(rows).to_parquet(tmp_path / "data" / f"{split}-00000-of-00001.parquet")
    task = make_task(DataArguments(task_name="mnli", dataset_name=str(tmp_path)))
    assert list(task.load()) == ["train", "validation_matched", "validation_mismatched"]
    assert (task.name, task.class_names[2]) == ("mnli", "contradiction")
    with pytest.raises(ValueError, match="--task_name mnli has its own columns and labels: leave out --text_column"):
        make_task(DataArguments(task_name="mnli", text_column=["premise"]))


@pytest.mark.parametrize("size", [0, -1, 1.5, float("nan"), float("inf")])
def test_size_out_of_range_is_refused(size: float) -> None:
    with pytest.raises(ValueError, match="validation_split must be a share between 0 and 1 or a whole number of exa"):
        DataArguments(validation_split=size)


ENCODER = Path(__file__).resolve().parents[2] / "model_cards" / "dsa-mini-en"
SAVED = {**dict.fromkeys([*SMALL_SIZES, "vectors"]), "model_name_or_path": ENCODER}
GOOD = "text,label\na b,x\nb c,y\na,x\nb,y\n"


@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (GOOD, {"train_file": None}, "Say what the data are: --train_file, --dataset_name, or --task_name"),
        (GOOD, {"validation_split": None}, "give --validation_file, or --validation_split 0.1"),
        (GOOD, {"validation_split": 3}, "validation_split 3 would hold out 3 of 4 examples, and each class"),
        (GOOD, {"validation_file": "train.csv"}, "Give either --validation_file or --validation_split, and not both"),
        (GOOD, {"text_column": ["a", "b", "c"]}, "--text_column takes one column, or the two different ones"),
        (GOOD, {"text_column": ["txt"]}, r"train\.csv has no column 'txt': it has text, label; did you mean 'text'"),
        (GOOD, {"label_column": "labl"}, r"train\.csv has no column 'labl'"),
        (GOOD, {"problem_type": "regression"}, r"train\.csv, line 2: the label 'x' is no number"),
        (GOOD, {"train_file": "none.csv"}, r"none\.csv, split 'train': there is no such file"),
        (GOOD, {**SAVED, "hidden_size": 7}, "dsa-mini-en has an encoder of other parts or sizes than --hidden_size 7"),
        ("text,label\n你好,x\n好你,y\n你,x\n", SAVED, "knows no word of 3 of 3 texts, such as '.*': train a --setting"),
        (GOOD, {"validation_file": "train.csv", "validation_split": None}, "split 'validation' is the training data"),
        (GOOD, {"max_train_samples": 1}, "All 1 training examples are '.': give examples of two classes or more"),
        (GOOD, {"encoder_learning_rate": 0}, "0 freezes the encoder of a saved model, and that of a setting would"),
        (GOOD, SAVED | {"encoder_learning_rate": 0, "freeze_embeddings": False}, "leave --freeze_embeddings out"),
        (GOOD, {"metric_for_best_model": "spearman"}, "no metric 'spearman' to choose the best weights by: give one"),
        (GOOD.replace("y", "x"), {}, r"column 'label' holds only 'x': two or more classes are needed"),
        (GOOD.replace("b c", ""), {}, r"train\.csv, line 3: the text is '', not a text"),
        (GOOD + "c,\n", {}, r"train\.csv, line 6: there is no label"),
        (GOOD + "c,nan\n", {"problem_type": "regression"}, r"the label 'x' is no number"),
        ("text,label\na,0.5\nb,nan\n", {}, r"train\.csv, line 3: the label 'nan' is no number"),
        ("text,label\na,0.5\nb,1.5\nc,2\n", {"label_smoothing": 0.1}, "--label_smoothing is for classes, and these"),
        ("text,label\na,0.5\nb,1.5\nc,2\n", {"balance_classes": True}, "--balance_classes is for classes, and these"),
        ("text,label\na,0.5\nb,1.5\nc,2\n", {"metric_for_best_model": "accuracy"}, "no metric 'accuracy'.*pearson, sp"),
    ],
)  # fmt: skip
def test_mistake_is_one_sentence(
    tmp_path: Path,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    content: str,
    changes: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").write_text(content)
    options = {"train_file": "train.csv", "validation_split": 1, "vectors": folder / "vectors.txt", "output_dir": "run"}
    assert run_classification(QUICK | options | changes) == 2
    assert re.search(message, logged_error(caplog))
    assert not (tmp_path / "run").exists()


def test_a_folder_with_something_else_is_not_overwritten(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "README.md").write_text("my notes")
    options = {"train_file": folder / "train.jsonl", "validation_split": 0.2, "vectors": folder / "vectors.txt"}
    assert run_classification(QUICK | options | {"output_dir": tmp_path}) == 2
    assert f"{tmp_path} holds README.md, but no run that could go on: give another" in logged_error(caplog)
    assert (tmp_path / "README.md").read_text() == "my notes"
