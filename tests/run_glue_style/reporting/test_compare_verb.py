"""`dsa compare`: what other code says of the same runs."""

import csv
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from small_models import small_config
from small_repositories import NLI_LABELS, save_system
from small_results import results, write_results
from small_runs import pairs, small_tokenizer
from transformers import pipeline

from modeling_dsa import DSAForSequenceClassification
from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.cli.main import main

ACCURACIES = {"a": (0.61, 0.65, 0.63), "b": (0.60, 0.61, 0.61)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds of two settings, whose results only are real files, and a model in the folders of the first seeds."""
    folder = tmp_path_factory.mktemp("runs")
    for setting, accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            run = folder / setting / f"seed-{seed}"
            if seed == 0:
                shutil.copytree(save_system(folder, "nli", hidden_size=5 + len(setting) * (setting == "b")).folder, run)
            run.mkdir(parents=True, exist_ok=True)
            history = [{"step": step, "train_loss": 1 / step, "validation_accuracy": accuracy} for step in (1, 2)]
            model = {"embedding_size": 100, "sentences_per_example": 2}
            content = results(setting, seed, accuracy, history=history, tokens_per_second=1000 + seed, model=model)
            if seed == 1:
                del content["recipe"]["max_train_steps"]  # a record from before there was this option
            (run / "all_results.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_seeds_are_a_row_with_a_paired_test(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(runs / setting / f"seed-{seed}") for setting in ACCURACIES for seed in range(3)]
    assert main(["compare", *folders, "--output_dir", str(tmp_path / "out")]) == 0
    table = capsys.readouterr().out
    assert table == (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    first, second = ACCURACIES.values()
    assert f"| a | {100 * np.mean(first):.2f} ± {100 * np.std(first, ddof=1):.2f} | " in table
    assert " | 3 | 2,078,703 | 1,001 | 1.5 |" in table
    assert "Differences are over the seeds that both rows have." in table
    expected = stats.ttest_rel(second, first)
    low, high = (100 * end for end in expected.confidence_interval())
    assert f"| b | validation.accuracy | -2.33 [{low:+.2f}, {high:+.2f}] | – | {expected.pvalue:.4f} |" in table
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {"table.md", "table.json", "plot.png", "plot.svg"}
    told = json.loads((tmp_path / "out" / "table.json").read_text("utf-8"))
    assert told["rows"]["b"]["seeds"] == [0, 1, 2]
    assert told["rows"]["b"]["metrics"]["validation.accuracy"]["values"] == list(second)
    (difference, *_) = told["differences"]
    assert (difference["row"], difference["against"]) == ("b", "a")
    assert difference["p_seeds"] == pytest.approx(expected.pvalue)
    assert difference["interval"] == pytest.approx([low / 100, high / 100])


def test_models_are_compared_on_the_same_examples(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    examples = pairs("validation")[:30]
    dev = tmp_path / "test.jsonl"  # and not the test split, which the two runs have of their own
    rows = [
        {
            "sentence1": f"{pair['premise']} \ud800",
            "sentence2": pair["hypothesis"],
            "gold_label": NLI_LABELS[pair["label"]],
        }
        for pair in examples
    ]
    dev.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    folders = [shutil.copytree(runs / setting / "seed-0", tmp_path / setting) for setting in ACCURACIES]
    record = folders[1] / "all_results.json"
    results = json.loads(record.read_text("utf-8"))
    results["data"]["test"] = {"examples": 9, "sha256": "other"}
    record.write_text(json.dumps(results), encoding="utf-8")
    assert main(["compare", *map(str, folders), "--labelled", str(dev), "--output_dir", str(tmp_path / "out")]) == 0
    texts = [replace_surrogates(row["sentence1"]) for row in rows]
    inputs = [{"text": text, "text_pair": row["sentence2"]} for text, row in zip(texts, rows, strict=True)]
    predicted = [
        [answer["label"] for answer in pipeline("text-classification", str(folder))(inputs)] for folder in folders
    ]
    right = np.array([[row["gold_label"] == one for row, one in zip(rows, of, strict=True)] for of in predicted])
    table = capsys.readouterr().out
    difference = 100 * (right[1].mean() - right[0].mean())
    assert f"| b | test.jsonl.accuracy | {difference:+.2f} [" in table
    told = json.loads((tmp_path / "out" / "table.json").read_text("utf-8"))
    assert told["files"] == [{"name": "test.jsonl", "sha256": hashlib.sha256(dev.read_bytes()).hexdigest()}]
    assert told["rows"]["a"]["metrics"]["test.jsonl.accuracy"]["mean"] == right[0].mean()
    with (tmp_path / "out" / "differing.csv").open(encoding="utf-8", newline="") as file:
        header, *differing = csv.reader(file)
    assert header == ["text", "text_pair", "label", "a", "b"]
    assert differing == [
        [text, row["sentence2"], row["gold_label"], first, second]
        for text, row, first, second in zip(texts, rows, *predicted, strict=True)
        if first != second
    ]
    assert differing
    assert main(["compare", *map(str, folders), "--output_dir", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out" / "differing.csv").exists()
    (own := tmp_path / "differing.csv").write_text("my own\n", encoding="utf-8")
    assert main(["compare", *map(str, folders), "--output_dir", str(tmp_path)]) == 2
    assert caplog.messages[-1].startswith(f"error: {own} is there, and no file of this command")
    assert own.read_text(encoding="utf-8") == "my own\n"


def test_other_examples_have_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, digest in (("a", "1"), ("b", "2")):
        data = {"validation": {"examples": 4, "sha256": digest}, "test": {"examples": 4, "sha256": "same"}}
        history = [{"step": 1, "train_loss": 1.0}]
        write_results(tmp_path, name, 0, 0.5 + 0.1 * (name == "b"), data=data, history=history)
        (tmp_path / name / "seed-0.json").rename(tmp_path / name / "all_results.json")
        scores: dict[str, Any] = {"validation.accuracy": np.array([1, 0, 1, 0])}
        np.savez(tmp_path / name / "example_scores.npz", **scores)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--output_dir", str(tmp_path / "out")]) == 0
    table = capsys.readouterr().out
    assert "| b | validation.accuracy | other examples | – | – |" in table
    assert "| b | test.accuracy | +10.00 | – | – |" in table


def test_what_cannot_be_compared_is_one_sentence(runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    a, b = (runs / setting / "seed-0" for setting in ACCURACIES)
    broken: dict[str, Path] = {}
    for name in ("half", "other", "scores", "single"):
        broken[name] = tmp_path / name
        shutil.copytree(b, broken[name])
    (broken["half"] / "all_results.json").write_text("{")
    (broken["other"] / "all_results.json").write_text('{"setting": "a"}')
    (broken["scores"] / "example_scores.npz").write_bytes(b"PK\x03\x04")
    single = small_config(vocab_size=len(small_tokenizer()), id2label=NLI_LABELS)
    DSAForSequenceClassification(single).save_pretrained(broken["single"])
    (tmp_path / "pairs.tsv").write_text("premise\thypothesis\tlabel\na man\ta dog\tneutral\n")
    without = [tmp_path / name for name in ("c", "d")]
    for folder in without:
        folder.mkdir()
        content = results(folder.name, 0, 0.5, metrics={"validation_matched": {"accuracy": 0.5}})
        (folder / "all_results.json").write_text(json.dumps(content), encoding="utf-8")
    mistakes: list[tuple[list[object], str]] = [
        ([a, broken["half"]], "half/all_results.json is no JSON"),
        ([a, broken["other"]], "other/all_results.json holds no results of a run, which have a 'seed'"),
        ([a, broken["scores"]], "scores/example_scores.npz holds no scores of examples"),
        ([a, runs], "has no all_results.json: give folders of finished runs."),
        ([a, a], "are one run twice, with seed 0: leave one out."),
        ([a, runs / "a" / "seed-1"], "All these runs differ in their seed alone"),
        (
            [*without],
            "No run has validation.accuracy or test.accuracy: name others with --metric, such as validation_m",
        ),
        ([a, b, "--metric", "accuracy"], "No run has a metric 'accuracy': name its split too"),
        ([a, b, "--labelled", "no.csv"], "There is no file no.csv"),
        (
            [a, broken["single"], "--labelled", tmp_path / "pairs.tsv"],
            f"{broken['single']} reads single texts, and {a} pairs: compare models that read the same.",
        ),
    ]
    for words, message in mistakes:
        assert main(["compare", *map(str, words), "--output_dir", str(tmp_path / "out")]) == 2
        assert message in caplog.messages[-1]
    assert not (tmp_path / "out").exists()
    assert main(["compare", str(a), str(b), "--output_dir", str(tmp_path / "pairs.tsv" / "out")]) == 2
    assert caplog.messages[-1] == f"error: {tmp_path / 'pairs.tsv'} is a file: give --output_dir a folder."
