"""run_glue_style.tasks.glue, on folders laid out as the Hub's data set and on lines of GLUE's own files."""

from pathlib import Path
from typing import Any

import datasets
import evaluate
import pytest

from run_glue_style.tasks.glue import GLUE, TaskName
from run_glue_style.tasks.labelled_examples import load_file, load_hub

# (columns of the Hub's data set, those of GLUE's own files, a label of a file and what it stands for)
LAYOUTS: dict[str, tuple[str, str, str, float]] = {
    "cola": ("sentence label idx", "sentence label", "1", 1),
    "sst2": ("sentence label idx", "sentence label", "0", 0),
    "mrpc": ("sentence1 sentence2 label idx", "Quality,#1 ID,#2 ID,#1 String,#2 String", "1", 1),
    "qqp": ("question1 question2 label idx", "id qid1 qid2 question1 question2 is_duplicate", "0", 0),
    "stsb": ("sentence1 sentence2 label idx", "index genre sentence1 sentence2 score", "3.75", 3.75),
    "mnli": ("premise hypothesis label idx", "pairID genre sentence1 sentence2 label1 gold_label", "neutral", 1),
    "qnli": ("question sentence label idx", "index question sentence label", "not_entailment", 1),
    "rte": ("sentence1 sentence2 label idx", "index sentence1 sentence2 label", "entailment", 0),
    "wnli": ("sentence1 sentence2 label idx", "index sentence1 sentence2 label", "1", 1),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.parametrize("name", GLUE)
def test_examples_of_the_hub_and_of_the_files_are_read(tmp_path: Path, name: TaskName) -> None:
    columns, file_columns, written, meant = LAYOUTS[name]
    task = GLUE[name]
    label = datasets.ClassLabel(names=list(task.class_names)) if task.class_names else datasets.Value("float32")
    features = datasets.Features(
        {column: datasets.Value("string") for column in columns.split()}
        | {"label": label, "idx": datasets.Value("int32")}
    )
    for split, value in {"train": meant, "validation": meant, "test": -1}.items():
        row: dict[str, Any] = {column: [f"{column} {split}"] for column in columns.split()}
        row |= {"label": [value], "idx": [0]}
        datasets.Dataset.from_dict(row, features=features).to_parquet(tmp_path / "hub" / f"{split}.parquet")
    splits = load_hub(str(tmp_path / "hub"), None, task.form)
    assert [len(split) for split in splits.values()] == [1, 1, 0]
    assert splits["train"][0] == {**{text: f"{text} train" for text in task.texts}, "label": meant}

    header = file_columns.split("," if "," in file_columns else " ")
    texts = [column for column in header if column in (*task.texts, *task.file_columns)]
    label_column = next(column for column in header if column in task.form.label_columns)
    fields = [written if column == label_column else f"a {column}" for column in header]
    (tmp_path / "train.tsv").write_text("\t".join(header) + "\n" + "\t".join(fields) + "\n")
    expected = dict(zip(task.texts, (f"a {column}" for column in texts), strict=True))
    assert load_file("train", tmp_path / "train.tsv", task.form)[0] == {**expected, "label": meant}


def test_metrics_are_those_of_the_leaderboard() -> None:
    for name, task in GLUE.items():
        scores = evaluate.combine(list(task.metrics)).compute(predictions=[0, 1, 1], references=[0, 1, 0])
        assert isinstance(scores[task.metric_for_best_model], float), name
    assert {name for name, task in GLUE.items() if task.metric_for_best_model != "accuracy"} == {
        "cola",
        "mrpc",
        "qqp",
        "stsb",
    }
    mrpc = evaluate.combine(list(GLUE["mrpc"].metrics))
    assert mrpc.compute(predictions=[0, 1, 1], references=[0, 1, 0])["f1"] == pytest.approx(2 / 3)
    assert mrpc.compute(predictions=[0, 0], references=[0, 0])["f1"] == 0.0
