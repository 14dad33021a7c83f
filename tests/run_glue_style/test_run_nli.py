"""The NLI script from outside: command line in, folder out."""

import csv
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import load_file
from small_runs import (
    SMALL_SIZES,
    Example,
    logged_error,
    pairs,
    read_results,
    run_main,
    write_pair_files,
)
from transformers import BertConfig

from modeling_dsa import DSAForNLI
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from run_glue_style.reporting import reporters
from run_glue_style.run_nli import DataArguments, main, make_task
from run_glue_style.sample import SAMPLE_FILES
from run_glue_style.tasks.labelled_examples import load_files
from run_glue_style.tasks.metrics import ClassificationMetric
from run_glue_style.tasks.nli import NLI
from run_glue_style.training.data import load_data
from run_glue_style.training.folder_lock import locked_folder

pytestmark = pytest.mark.usefixtures("datasets_cache")
REPOSITORY = Path(__file__).parents[2]
COUNTS = {"train": 300, "validation": 90, "test": 80}
WIDTH = 12
QUICK: dict[str, Any] = {
    "setting": "dsa-single-snli",
    **SMALL_SIZES,
    "num_train_epochs": 2,
    "per_device_train_batch_size": 32,
    "evaluations_per_epoch": 2,
    "optimizer": "adamw",
    "schedule": "cosine",
    "learning_rate": 0.01,
    "report_to": "none",
}
LEARNING = QUICK | {"num_train_epochs": 10, "embedding_dropout": 0, "hidden_dropout": 0, "classifier_dropout": 0}

Run = Callable[..., int]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Pairs cut from the sample and vectors of their words, as options."""
    return write_pair_files(tmp_path_factory.mktemp("data"), COUNTS, WIDTH)


def run_nli(options: dict[str, Any]) -> int:
    return run_main(main, "run_nli.py", {"cpu": True} | options)


@pytest.fixture(scope="module")
def finished(files: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run that learned something."""
    folder: Path = tmp_path_factory.mktemp("runs") / "finished"
    assert run_nli(LEARNING | files | {"output_dir": folder, "report_to": "auto", "seed": 3}) == 0
    return folder


def test_run_learns(finished: Path) -> None:
    history = read_results(finished)["history"]
    assert len(history) == 20
    assert history[-1]["train_loss"] < 0.6 * history[0]["train_loss"]


def test_results_have_all_that_a_repetition_needs(finished: Path, files: dict[str, Any]) -> None:
    results = read_results(finished)
    assert results["task"] == "nli"
    assert results["setting"] == results["recipe_name"] == "dsa-single-snli"
    assert results["vectors"] == "vectors.txt"
    assert results["start"] == "fresh weights"
    assert results["seed"] == 3
    assert results["processes"] == 1
    assert results["mixed_precision"] == "no"
    assert results["recipe"]["learning_rate"] == 0.01
    assert results["recipe"]["plateau_patience"] == 5
    assert results["model"]["hidden_size"] == 16
    assert results["model"]["routing_iterations"] == 2
    assert results["model"]["embedding_size"] == WIDTH
    loaded = load_files({split: files[f"{split}_file"] for split in COUNTS}, NLI)
    assert results["data"] == {
        split: {"examples": COUNTS[split], "sha256": NLI.fingerprint(rows)} for split, rows in loaded.items()
    }
    assert results["environment"]["torch"] == torch.__version__
    assert results["train_seconds"] > 0
    assert results["tokens_per_second"] > 0
    assert results["steps"] == 10 * 10
    assert results["best_step"] in [record["step"] for record in results["history"]]
    best = max(record["validation_accuracy"] for record in results["history"])
    assert results["metrics"]["validation"]["accuracy"] == best
    assert results["trained_parameters"] == sum(
        parameter.numel() for parameter in DSAForNLI.from_pretrained(finished).parameters() if parameter.requires_grad
    )


def test_folder_has_the_model_and_its_drawing_and_nothing_unfinished(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "attention.png"} <= names
    assert (finished / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert not {name for name in names if name.startswith(".")}
    assert "checkpoints" not in names


def test_tracker_is_tensorboard_where_it_is_installed(finished: Path) -> None:
    events = list((finished / "tracker").rglob("events.out.tfevents*"))
    assert events
    from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
        EventAccumulator,
    )

    written = EventAccumulator(str(events[0].parent)).Reload()
    record = read_results(finished)["history"][-1]
    logged = written.Scalars("validation_accuracy")[-1]
    assert (logged.step, logged.value) == (record["step"], pytest.approx(record["validation_accuracy"]))


USE = """
import json, sys
import modeling_dsa
from transformers import BertConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline
folder, rows = sys.argv[1], json.load(open(sys.argv[2]))
classify = pipeline("text-classification", folder)
found = classify([{"text": row["premise"], "text_pair": row["hypothesis"]} for row in rows])
one = classify({"text": rows[0]["premise"], "text_pair": rows[0]["hypothesis"]})
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
texts = [[row[column] for row in rows] for column in ("premise", "hypothesis")]
batch = tokenizer(*texts, padding=True, return_tensors="pt")
base = AutoModel.from_pretrained(folder).eval()
print(json.dumps({
    "found": found, "one": one, "classes": model(**batch).logits.argmax(-1).tolist(), "names": model.config.id2label,
    "widths": [list(base(**batch).pooler_output.shape), list(base(**batch).second_pooler_output.shape)],
    "frozen": not base.get_input_embeddings().weight.requires_grad,
}))
"""


@pytest.mark.slow
def test_saved_model_gives_the_same_metrics_in_another_process(finished: Path, tmp_path: Path) -> None:
    rows = pairs("validation")[: COUNTS["validation"]]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    command = [sys.executable, "-c", USE, str(finished), str(tmp_path / "rows.json")]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    names = [answer["names"][str(label)] for label in answer["classes"]]
    assert answer["names"] == {str(number): name for number, name in enumerate(NLI_CLASS_NAMES)}
    assert [found["label"] for found in answer["found"]] == names
    assert (answer["one"] if isinstance(answer["one"], dict) else answer["one"][0])["label"] == names[0]
    assert answer["widths"] == [[90, 16], [90, 16]]
    assert answer["frozen"]
    metric = ClassificationMetric(NLI_CLASS_NAMES)
    expected = metric.compute(predictions=answer["classes"], references=[row["label"] for row in rows])
    written = read_results(finished)["metrics"]["validation"]
    written.pop("loss")
    assert written == expected


def test_word_table_of_the_saved_model_is_that_of_the_vectors(finished: Path, files: dict[str, Any]) -> None:
    table = load_file(finished / "model.safetensors")["dsa.embed_tokens.weight"]
    vocabulary = json.loads((finished / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    known = 0
    for line in files["vectors"].read_text().splitlines():
        word, *numbers = line.split()
        if word in vocabulary:
            known += 1
            assert table[vocabulary[word]].tolist() == torch.tensor([float(number) for number in numbers]).tolist()
    assert known > 500


def test_finished_run_is_not_overwritten_without_a_word(
    finished: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in finished.iterdir()}
    assert run_nli(LEARNING | files | {"output_dir": finished}) == 2
    assert re.search(f"{finished} holds a finished run: give --overwrite_output_dir", logged_error(caplog))
    assert {path.name: path.stat().st_mtime_ns for path in finished.iterdir()} == before


def test_overwriting_deletes_nothing_before_the_training_can_begin(
    tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "all_results.json").write_text("{}")
    (tmp_path / "config.json").write_text('{"model_type": "dsa"}')
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "onnx").mkdir()
    options = one_update(files, output_dir=tmp_path, overwrite_output_dir=True)
    reinforced = {"pooling": "reinforced", "num_attention_heads": 1, "soft_attention_steps": 100}
    for mistake, told in (({"train_file": tmp_path / "none.jsonl"}, "none.jsonl"), (reinforced, "Hard attention")):
        caplog.clear()
        assert run_nli(options | mistake) == 2
        assert told in logged_error(caplog)
    assert {path.name for path in tmp_path.iterdir()} == {"all_results.json", "checkpoints", "config.json", "onnx"}
    assert run_nli(options) == 0
    assert read_results(tmp_path)["steps"] == 1
    assert not (tmp_path / "onnx").exists()  # it was the old model's


def test_files_that_are_no_runs_are_not_deleted(
    tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "checkpoints" / "step-9.ckpt"
    own.parent.mkdir()
    own.write_text("mine")
    assert run_nli(one_update(files, output_dir=tmp_path, overwrite_output_dir="true")) == 2
    assert "checkpoints holds step-9.ckpt, which is no run's" in logged_error(caplog)
    own.rename(tmp_path / "model_dsa.py")
    assert run_nli(one_update(files, output_dir=tmp_path)) == 0
    assert (tmp_path / "model_dsa.py").read_text() == "mine"


def test_going_on_from_a_model(finished: Path, files: dict[str, Any], tmp_path: Path) -> None:
    options = QUICK | files | {"model_name_or_path": finished, "output_dir": tmp_path, "max_train_samples": 64}
    for name in ("setting", "vectors", *SMALL_SIZES):
        del options[name]
    assert run_nli(options | {"num_train_epochs": 1, "learning_rate": 1e-12, "warmup_ratio": 0}) == 0
    results = read_results(tmp_path)
    assert results["start"] == str(finished)
    assert '"PreTrainedTokenizerFast"' in (tmp_path / "tokenizer_config.json").read_text()  # transformers 4 knows it
    assert results["vectors"] is None
    assert results["data"]["train"]["examples"] == 64
    assert results["model"]["hidden_size"] == 16
    before, after = (load_file(folder / "model.safetensors") for folder in (finished, tmp_path))
    assert torch.equal(before["dsa.embed_tokens.weight"], after["dsa.embed_tokens.weight"])
    torch.testing.assert_close(before["classifier.1.weight"], after["classifier.1.weight"])


def write_split(path: Path, rows: list[Example]) -> None:
    named = [{**row, "label": NLI_CLASS_NAMES[row["label"]]} for row in rows]
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in named))
    else:
        with path.open("w", newline="") as file:
            style = {"delimiter": ","} if path.suffix == ".csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
            writer = csv.DictWriter(file, ["premise", "hypothesis", "label"], quotechar='"', **style)
            writer.writeheader()
            writer.writerows(named)


def one_update(files: dict[str, Any], **changes: Any) -> dict[str, Any]:
    options = QUICK | files | {"max_train_steps": 1} | changes
    return {name: value for name, value in options.items() if value is not None}


def test_data_set_by_name_with_its_own_order_of_classes_and_a_hidden_test_split(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    folder = tmp_path / "pairs"
    folder.mkdir()
    for split, number in (("train", 40), ("validation", 30), ("test", 20)):
        write_split(folder / f"{split}.jsonl", pairs("validation" if split == "test" else split)[:number])
    hidden = [{**row, "label": "-"} for row in pairs("test")[:20]]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in hidden))
    options = one_update(files, dataset_name=folder, train_file=None, validation_file=None, test_file=None)
    assert run_nli(options | {"output_dir": tmp_path / "run"}) == 0
    results = read_results(tmp_path / "run")
    assert {name: split["examples"] for name, split in results["data"].items()} == {"train": 40, "validation": 30}
    assert results["source"] == str(folder)
    assert not list((tmp_path / "run").rglob("*tfevents*"))  # --report_to none


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_file": "none.jsonl"}, r"none\.jsonl.*there is no such file"),
        ({"validation_file": None}, "Give both --train_file and --validation_file"),
        ({"vectors": None}, "need word vectors: give --vectors"),
        ({"vectors": "none.txt"}, r"none\.txt"),
        ({"setting": None}, "Say what to train: --setting NAME"),
        ({"dataset_name": "snli"}, "either --dataset_name or files"),
        ({"dataset_config_name": "plain"}, "--dataset_config_name belongs to a --dataset_name"),
        ({"embedding_size": 13}, r"vectors\.txt has vectors of 12 numbers, not 13"),
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"kernel_sizes": [2]}, "kernel_sizes must be one or more odd numbers"),
        ({"pooling": "mean", "num_attention_heads": 2}, "'mean' has no attention heads: leave num_attention_heads"),
        ({"setting": None, "vectors": None, "model_name_or_path": "./nowhere"}, r"\./nowhere is no folder here"),
        (
            {"pooling": "variational", "num_training_samples": 2, "label_smoothing": 0.1, "attention_head_size": None},
            "--num_training_samples above 1 takes the mean of the samples' losses",
        ),
        ({"mixed_precision": "fp16"}, "fp16 needs a GPU"),
        ({"extra_train_files": [SAMPLE_FILES["test"]] * 2}, "holds the same pairs as .*: leave one out"),
        ({"metric_for_best_model": "majority_accuracy"}, "There is no metric 'majority_accuracy'"),
    ],
)  # fmt: skip
def test_mistake_is_one_sentence(
    tmp_path: Path,
    files: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_nli(one_update(files, output_dir="run", **changes)) == 2
    assert re.search(message, logged_error(caplog))
    assert not list(tmp_path.iterdir())


def test_data_without_validation_are_refused(
    tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    write_split(tmp_path / "train.jsonl", pairs("train")[:20])
    options = one_update(files, dataset_name=tmp_path, train_file=None, validation_file=None, test_file=None)
    assert run_nli(options | {"output_dir": tmp_path / "run"}) == 2
    assert "a train and a validation split with labels; the data have: train." in logged_error(caplog)


def test_output_folder_that_is_a_file_is_refused(
    tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").write_text("")
    assert run_nli(one_update(files, output_dir=tmp_path / "run")) == 2
    assert str(tmp_path / "run") in logged_error(caplog)


def test_folder_of_a_run_that_is_under_way_is_refused(
    tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with locked_folder(tmp_path):
        before = {path.name for path in tmp_path.iterdir()}
        assert run_nli(one_update(files, output_dir=tmp_path, overwrite_output_dir=True)) == 2
        assert {path.name for path in tmp_path.iterdir()} == before
    assert f"in use by another run (process {os.getpid()} on {socket.gethostname()})" in logged_error(caplog)


def test_training_that_blows_up_stops_and_names_step_and_examples(
    tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    options = QUICK | files | {"output_dir": tmp_path, "learning_rate": 1e30, "max_grad_norm": 0, "warmup_ratio": 0}
    assert run_nli(options | {"checkpointing_steps": 1}) == 2
    path = tmp_path / "checkpoints" / "nonfinite-step-2.json"
    assert re.search(f"Step 2: the loss is nan .* its 32 examples are in {path}", logged_error(caplog))
    examples = json.loads(path.read_text())
    assert len(examples) == 32
    assert not any(example["prediction_is_finite"] for example in examples)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoints"}


def test_nothing_is_half_written_when_saving_fails_and_the_same_command_ends_the_run(
    tmp_path: Path, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    options = one_update(files, output_dir=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(reporters, "draw_attention", fail)
        assert run_nli(options) == 2
    assert "No space left on device" in logged_error(caplog)
    caplog.clear()
    assert run_nli(options | {"seed": 1, "report_to": "tensorboard"}) == 2
    assert "is a checkpoint of another run: its seed is 0, not 1" in logged_error(caplog)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]
    assert run_nli(options) == 0
    assert read_results(tmp_path)["steps"] == 1
    assert {"model.safetensors", "attention.png"} <= {path.name for path in tmp_path.iterdir()}


def test_a_model_of_another_family_is_refused(
    tmp_path: Path, files: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    BertConfig().save_pretrained(tmp_path / "bert")
    options = {name: value for name, value in one_update(files).items() if name.endswith("_file")}
    assert run_nli(options | {"model_name_or_path": tmp_path / "bert", "output_dir": tmp_path / "out"}) == 2
    assert "is a model of type 'bert': give one of type 'dsa'" in logged_error(caplog)


def test_extra_files_add_pairs_to_the_training_split_alone(tmp_path: Path) -> None:
    files = write_pair_files(tmp_path, {"train": 30, "validation": 20}, WIDTH)
    extra = tmp_path / "extra.tsv"
    extra.write_text("premise\thypothesis\tlabel\nIt rains.\tThe sun shines.\tcontradiction\n")
    task = make_task(
        DataArguments(
            train_file=files["train_file"], validation_file=files["validation_file"], extra_train_files=[extra]
        )
    )
    data = task.load()
    assert (len(data["train"]), len(data["validation"])) == (31, 20)
    assert data["train"][-1] == {"premise": "It rains.", "hypothesis": "The sun shines.", "label": 2, "file": 1}
    assert load_data(task, 3).splits["train"].to_list() == data["train"].select([0, 1, 30]).to_list()


def test_balanced_classes_are_those_of_each_file(tmp_path: Path, files: dict[str, Any]) -> None:
    extra = tmp_path / "extra.jsonl"
    write_split(extra, [row for row in pairs("train") if row["label"] == 1])
    losses = []
    for balanced in (False, True):
        changes = {"balance_classes": balanced, "extra_train_files": extra, "learning_rate": 1e-9}
        changes["evaluate_train"] = balanced
        assert run_nli(one_update(files, output_dir=tmp_path / str(balanced), **changes)) == 0
        losses.append(read_results(tmp_path / str(balanced))["history"][-1]["train_loss"])
    # A batch holds many examples of the second file, whose class tells itself.
    assert losses[1] < losses[0] - 0.05
    measured = [set(read_results(tmp_path / str(balanced))["metrics"]) for balanced in (False, True)]
    assert measured[1] - measured[0] == {"train"}
    assert "split: train" not in (tmp_path / "True" / "README.md").read_text("utf-8")  # no evaluation, for the Hub
