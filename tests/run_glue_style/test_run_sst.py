"""The SST script from outside: command line in, folder out."""

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import SMALL_SIZES, logged_error, read_results, run_main
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from modeling_dsa import DSAForSequenceClassification
from modeling_dsa.shipped.settings import setting_folder
from run_glue_style.run_sst import main
from run_glue_style.tasks.sst import CLASS_NAMES, SST, load_sst_files

pytestmark = pytest.mark.usefixtures("datasets_cache")
COUNTS = {"train": 240, "validation": 60, "test": 50}
WIDTH = 8
# The label of a sentence is that of the one word in it that is not neutral.
NEUTRAL = ["the", "film", "-LRB-", "plot", "is", "it", "a", "story", "with", "actors", "and", "music"]
WORDS = {0: ["awful", "hideous"], 1: ["dull", "weak"], 3: ["nice", "good"], 4: ["superb", "brilliant"]}
RUN: dict[str, Any] = {
    "setting": "dsa-single-snli",
    **SMALL_SIZES,
    "num_train_epochs": 6,
    "per_device_train_batch_size": 32,
    "evaluations_per_epoch": 1,
    "optimizer": "adamw",
    "schedule": "cosine",
    "learning_rate": 0.02,
    "embedding_dropout": 0,
    "hidden_dropout": 0,
    "classifier_dropout": 0,
    "report_to": "none",
    "cpu": True,
}


def tree(draw: random.Random) -> str:
    """A right-branching tree; one in five has only neutral words."""
    label = draw.choice([0, 1, 2, 3, 4])
    words = [(2, draw.choice(NEUTRAL)) for _ in range(draw.randint(2, 6))]
    if label != 2:
        words.insert(draw.randrange(len(words)), (label, draw.choice(WORDS[label])))
    *front, (last, word) = words
    text = f"({last} {word})"
    for before, word in reversed(front):
        last = before if before != 2 else last
        text = f"({last} ({before} {word}) {text})"
    return text


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Trees and vectors of their words, as options."""
    folder, draw, generator = tmp_path_factory.mktemp("data"), random.Random(0), np.random.default_rng(0)
    options: dict[str, Any] = {}
    for split, count in COUNTS.items():
        options[f"{split}_file"] = folder / f"{split}.txt"
        options[f"{split}_file"].write_text("".join(tree(draw) + "\n" for _ in range(count)))
    words = [*NEUTRAL, *(word for group in WORDS.values() for word in group)]
    lines = [" ".join([word, *(f"{number:.4f}" for number in generator.normal(size=WIDTH))]) for word in words]
    options["vectors"] = folder / "vectors.txt"
    options["vectors"].write_text("\n".join(lines) + "\n")
    return options


def run_sst(options: dict[str, Any], *flags: str) -> int:
    given = {name: value for name, value in (RUN | options).items() if value is not None}
    return run_main(main, "run_sst.py", given, *flags)


@pytest.mark.parametrize("classes", [2, 5])
def test_run_learns_from_trees_and_saves_a_model_that_loads(
    tmp_path: Path, files: dict[str, Any], classes: Any
) -> None:
    options = files | {"output_dir": tmp_path / "run"} | ({"classes": 5} if classes == 5 else {})
    assert run_sst(options) == 0
    results = read_results(tmp_path / "run")
    data = load_sst_files({split: files[f"{split}_file"] for split in COUNTS}, classes)
    assert results["task"] == f"sst{classes}"
    assert results["model"]["architectures"] == ["DSAForSequenceClassification"]  # and not those of the setting
    assert results["source"] == "train.txt, validation.txt, test.txt"
    assert results["vectors"] == "vectors.txt"
    assert results["data"] == {
        name: {"examples": len(split), "sha256": SST[classes].fingerprint(split)} for name, split in data.items()
    }
    if classes == 5:
        assert {name: len(split) for name, split in data.items()} == COUNTS
    assert results["metrics"]["test"]["accuracy"] > results["metrics"]["test"]["majority_accuracy"] + 0.3
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run").eval()
    assert type(model) is DSAForSequenceClassification
    assert model.config.id2label == dict(enumerate(CLASS_NAMES[classes]))
    assert model.config.sentences_per_example == 1
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    batch = tokenizer(data["test"]["sentence"][:], padding=True, return_tensors="pt")
    found = model(**batch).logits.argmax(-1)
    right = (found == torch.tensor(data["test"]["label"][:])).float().mean().item()
    assert right == pytest.approx(results["metrics"]["test"]["accuracy"])
    assert (tmp_path / "run" / "attention.png").exists()


def test_phrases_are_training_rows_only(tmp_path: Path, files: dict[str, Any]) -> None:
    assert run_sst(files | {"output_dir": tmp_path, "max_train_steps": 2}, "--phrases") == 0
    rows = {name: split["examples"] for name, split in read_results(tmp_path)["data"].items()}
    paths = {split: files[f"{split}_file"] for split in COUNTS}
    assert rows == {name: len(split) for name, split in load_sst_files(paths, 2, phrases=True).items()}
    sentences = {name: len(split) for name, split in load_sst_files(paths, 2).items()}
    assert rows["train"] > 2 * sentences.pop("train")
    assert sentences.items() <= rows.items()


def test_data_set_by_name(tmp_path: Path, files: dict[str, Any]) -> None:
    (tmp_path / "hub").mkdir()
    for split, rows in load_sst_files({split: files[f"{split}_file"] for split in COUNTS}, 2).items():
        rows.to_parquet(tmp_path / "hub" / f"{split}.parquet")
    options = {"dataset_name": tmp_path / "hub", "vectors": files["vectors"], "max_train_steps": 2}
    assert run_sst(options | {"output_dir": tmp_path / "a"}) == 0
    assert run_sst(files | {"max_train_steps": 2, "output_dir": tmp_path / "b"}) == 0
    by_name, by_files = (read_results(tmp_path / name) for name in "ab")
    assert by_name["source"] == str(tmp_path / "hub")
    for same in ("data", "metrics", "history"):
        assert by_name[same] == by_files[same]


@pytest.mark.parametrize(
    ("changes", "flags", "message"),
    [
        ({"train_file": None, "validation_file": None, "test_file": None}, [], "Say what the data are: both --train_f"),
        (
            {"dataset_name": "a/b", "train_file": None, "validation_file": None, "test_file": None},
            ["--phrases"],
            "--phrases needs trees: give the treebank's .txt files instead of --dataset_name",
        ),
        ({"train_file": "train.csv"}, ["--phrases"], "train.csv has no trees: phrases are read from the .txt files"),
        ({"train_file": "broken.txt"}, [], "broken.txt, line 1 is no tree of the treebank: 1 closing bracket(s) are"),
        ({"setting": "five"}, [], "The setting five has 5 classes: give --classes 5."),
    ],
)
def test_mistake_is_one_sentence(
    tmp_path: Path,
    files: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    flags: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").write_text("sentence,label\na,1\n")
    (tmp_path / "broken.txt").write_text("(3 (2 a) (3 b)\n")
    (tmp_path / "five").mkdir()
    config = json.loads((setting_folder("dsa-single-snli") / "config.json").read_text("utf-8"))
    config |= {"id2label": dict(enumerate(CLASS_NAMES[5])), "label2id": {}}
    (tmp_path / "five" / "config.json").write_text(json.dumps(config))
    assert run_sst(files | {"output_dir": "run"} | changes, *flags) == 2
    assert re.fullmatch(f"error: .*{re.escape(message)}.*", logged_error(caplog))
    assert not (tmp_path / "run").exists()


def test_number_of_classes_is_two_or_five(
    tmp_path: Path, files: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run_sst(files | {"output_dir": tmp_path, "classes": 3})
    assert caught.value.code == 2
    assert "--classes: invalid choice: '3' (choose from 2, 5)" in capsys.readouterr().err


def test_help_names_the_example_and_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_main(main, "run_sst.py", {}, "--help")
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "accelerate launch run_glue_style/run_sst.py --setting dsa-single-sst2 --train_file train.txt" in text
    for option in ("--classes {2,5}", "--phrases", "--dataset_name", "--validation_file"):
        assert option in text
