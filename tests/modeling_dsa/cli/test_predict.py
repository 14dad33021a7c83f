"""`dsa predict` from outside: every source and format, the model's own numbers, and every mistake it refuses."""

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import torch
from small_models import randomize, small_config
from small_repositories import NLI, save_system
from small_runs import pairs, small_tokenizer
from transformers import AutoTokenizer, pipeline

from modeling_dsa import DSAForNLI, DSAForSequenceClassification, DSAModel, ZeroShotSimilarityPipeline
from modeling_dsa.cli.main import main
from modeling_dsa.encoding import windows

PAIRS = [(row["premise"], row["hypothesis"]) for row in pairs("train")[:20]]
TEXTS = [premise for premise, _ in PAIRS]
LABELS = list(NLI["id2label"].values())

Predict = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of a model of pairs (`nli`), of single texts (`vsam`), of a regression and of an encoder."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("nli", "vsam", "encoder"):
        save_system(folder, name)
    config = small_config(vocab_size=len(small_tokenizer()), num_labels=1, problem_type="regression")
    randomize(DSAForSequenceClassification(config)).save_pretrained(folder / "regression")
    small_tokenizer().save_pretrained(folder / "regression")
    return folder


@pytest.fixture
def predict(models: Path, capsys: pytest.CaptureFixture[str]) -> Predict:
    """Run the command and parse the JSON lines that it prints."""

    def run(model: str, *arguments: object) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert main(["predict", str(models / model), *map(str, arguments)]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def as_standard_input(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return as_standard_input


def write(path: Path, columns: tuple[str, ...], rows: list[Any]) -> Path:
    table = [dict(zip(columns, row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table))
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, "excel-tab" if path.suffix == ".tsv" else "excel", quoting=csv.QUOTE_MINIMAL)
            writer.writerows([columns, *rows])
    return path


def test_answers_are_the_models_own_in_the_order_of_the_texts(models: Path, predict: Predict, tmp_path: Path) -> None:
    model, tokenizer = DSAForNLI.from_pretrained(models / "nli"), AutoTokenizer.from_pretrained(models / "nli")
    texts = [*PAIRS, PAIRS[0], ("é 🐕 \ud83d", 'with "quotes", and commas')]
    found = predict("nli", write(tmp_path / "a.jsonl", ("premise", "hypothesis"), texts))
    assert [(answer["text"], answer["text_pair"]) for answer in found] == texts
    for (first, second), answer in zip(texts[:-1], found, strict=False):
        with torch.no_grad():
            scores = model(**tokenizer(first, second, return_tensors="pt")).logits[0].softmax(-1).tolist()
        assert answer["probabilities"] == pytest.approx(dict(zip(LABELS, scores, strict=True)), abs=1e-5)
        assert answer["label"] == max(answer["probabilities"], key=answer["probabilities"].get)


@pytest.mark.parametrize(
    ("name", "columns", "options"),
    [
        ("a.csv", ("sentence1", "sentence2"), ()),
        ("a.tsv", ("text", "text_pair"), ()),
        ("a.parquet", ("left", "right"), ("--text_column", "left", "right")),
    ],
)
def test_every_table_gives_the_same(
    predict: Predict, tmp_path: Path, name: str, columns: tuple[str, ...], options: tuple[str, ...]
) -> None:
    wanted = predict("nli", write(tmp_path / "b.jsonl", ("premise", "hypothesis"), PAIRS))
    assert predict("nli", write(tmp_path / name, columns, PAIRS), *options) == wanted


def test_lines_of_a_file_and_of_standard_input(
    predict: Predict, tmp_path: Path, give: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_TEXTS", 7)  # so that there are several
    path = tmp_path / "a.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    wanted = predict("vsam", path)
    assert [answer["text"] for answer in wanted] == TEXTS
    give(path.read_bytes())
    assert predict("vsam", "-") == wanted
    assert predict("vsam", TEXTS[3]) == [wanted[3] | {"probabilities": pytest.approx(wanted[3]["probabilities"])}]
    give("".join(f"{first}\t{second}\r\n" for first, second in PAIRS).encode())
    found = predict("nli", "-")
    assert [(answer["text"], answer["text_pair"]) for answer in found] == PAIRS
    (alone,) = predict("nli", *PAIRS[2])
    assert alone["probabilities"] == pytest.approx(found[2]["probabilities"], rel=1e-4)


def test_labels_are_chosen_by_similarity(models: Path, predict: Predict, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    labels, template = ["a man", "dogs", "music"], "A text of {} ."
    found = predict("encoder", path, "--template", template, "--labels", *labels)
    choose: Any = pipeline(
        "zero-shot-similarity",  # type: ignore[call-overload]
        model=str(models / "encoder"),
        pipeline_class=ZeroShotSimilarityPipeline,
    )
    for answer, wanted in zip(found, choose(TEXTS, candidate_labels=labels, template=template), strict=True):
        assert answer["label"] == wanted["labels"][0]
        assert answer["probabilities"] == pytest.approx(
            dict(zip(wanted["labels"], wanted["scores"], strict=True)), abs=1e-5
        )
    (alone,) = predict("encoder", "--labels", *labels, "--", TEXTS[0])
    assert list(alone["probabilities"]) == labels


def test_vectors_that_are_not_finite_choose_no_label(
    models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = DSAModel.from_pretrained(shutil.copytree(models / "encoder", tmp_path / "broken"))
    broken.projection.weight.data.fill_(3e38)
    broken.save_pretrained(tmp_path / "broken")
    assert main(["predict", str(tmp_path / "broken"), "A man sleeps.", "--labels", "a man", "dogs"]) == 2
    assert "The vector of the sentence 'a man' is not finite as float32: give another model." in caplog.messages[-1]


def test_a_regression_gives_numbers(models: Path, predict: Predict, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ("sentence",), [[text] for text in TEXTS])
    model = DSAForSequenceClassification.from_pretrained(models / "regression")
    with torch.no_grad():
        wanted = model(**small_tokenizer()(TEXTS, padding=True, return_tensors="pt")).logits[:, 0].tolist()
    found = predict("regression", path)
    assert [answer["prediction"] for answer in found] == pytest.approx(wanted, rel=1e-4)
    assert found[0].keys() == {"text", "prediction"}


def test_a_table_is_written_whole(
    models: Path, predict: Predict, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = write(tmp_path / "a.jsonl", ("premise", "hypothesis"), PAIRS)
    output = tmp_path / "new" / "b.csv"
    assert main(["predict", str(models / "nli"), str(source), "--output", str(output)]) == 0
    assert caplog.messages == [
        f"{source}: the texts are in 'premise' and 'hypothesis'.",
        f"{output} holds the predictions for 20 texts.",
    ]
    with output.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0].keys() == {"text", "text_pair", "label", *(f"probabilities.{label}" for label in LABELS)}
    for row, answer in zip(rows, predict("nli", source), strict=True):
        assert (row["text"], row["text_pair"], row["label"]) == (answer["text"], answer["text_pair"], answer["label"])
        assert {label: float(row[f"probabilities.{label}"]) for label in LABELS} == answer["probabilities"]


def test_texts_of_unknown_words_are_told(models: Path, predict: Predict, caplog: pytest.LogCaptureFixture) -> None:
    for text in ("一二", "[SEP]"):  # no model reads a separator
        assert len(predict("nli", "a man", text)) == 1
        told = f"nli knows no word of 1 of 1 texts, such as ('a man', '{text}'): its answers to them say nothing"
        assert told in caplog.messages[-1]


def test_mistakes_are_one_sentence_and_leave_nothing(
    models: Path,
    tmp_path: Path,
    give: Callable[[bytes], None],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair_file = write(tmp_path / "pairs.csv", ("premise", "hypothesis", "text"), [("a", "b", "c")])
    null = tmp_path / "null.jsonl"
    null.write_text('{"text": "a"}\n{"text": null}\n')
    blank = tmp_path / "blank.txt"
    blank.write_text("a\n\nb\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("text\n")
    headless = tmp_path / "headless.csv"
    headless.write_text("a man sleeps,1\nthe dog,0\n")
    (tmp_path / "other.md").write_text("a")
    before = sorted(tmp_path.iterdir())
    mistakes: list[tuple[str, list[object], str]] = [
        ("vsam", ["a", "b"], "The model reads single texts, but two were given: leave out the second."),
        ("nli", ["a"], "The model reads pairs of texts, but one was given: give the second too."),
        ("vsam", [" "], "' ' is an empty text"),
        ("nli", [pair_file, "b"], "gives the texts itself: leave out 'b'"),
        ("vsam", [pair_file], "pairs.csv: it is not clear which of 'premise and hypothesis', 'text' holds the"),
        ("nli", [null], "null.jsonl: a pair has two texts, and only 'text' holds any: add the other ones."),
        ("nli", [pair_file, "--text_column", "text"], "reads pairs of texts: name two columns with --text_column"),
        (
            "vsam",
            [pair_file, "--text_column", "txt"],
            "pairs.csv has no column 'txt': it has premise, hypothesis",
        ),
        ("vsam", ["a", "--text_column", "text"], "--text_column names columns of a file"),
        ("vsam", [null], "null.jsonl, line 2, column 'text': None is no text: fix or remove it."),
        ("vsam", [blank], "blank.txt, line 2: '' is no text"),
        ("nli", [blank], "blank.txt, line 1: 'a' is no pair of texts, which the model reads: write the first text, a"),
        ("vsam", [empty], "empty.csv holds no text."),
        (
            "vsam",
            [headless],
            "headless.csv: its first line is taken for the names of the columns and holds the number '1'",
        ),
        ("vsam", ["a", "--output=~/a.jsonl"], "'--output=~/a.jsonl' would be in a folder called ~, as a shell leaves"),
        ("vsam", ["a", "--output=s3://b/a.jsonl"], "s3:/b/a.jsonl is a URL, and this is written on this machine alone"),
        ("vsam", [tmp_path / "none.csv"], f"There is no file {tmp_path / 'none.csv'}: check its name, or add a blank"),
        (
            "vsam",
            ["reviews.cvs"],
            "There is no file reviews.cvs: check its name, or add a blank where it is a text.",
        ),
        ("vsam", [tmp_path / "reviews"], f"There is no file {tmp_path / 'reviews'}: check its name"),
        ("vsam", ["s3://bucket/reviews"], "There is no file s3://bucket/reviews: check its name"),
        ("vsam", [tmp_path / "other.md"], "other.md has an unsupported extension: give .txt, "),
        ("vsam", [tmp_path], f"{tmp_path} is a folder: give one file of it."),
        ("encoder", ["a"], "encoder holds an encoder without a classifier: train one, give --labels"),
        ("encoder", ["a", "--labels", "b", "b "], "The labels must be two or more different texts, not 'b', 'b '."),
        ("encoder", ["a", "--labels", "\u4e2d", "b"], "encoder knows no word of the label '\u4e2d': give other words"),
        (
            "encoder",
            ["a", "--labels", "\u4e2d", "b", "--template", "a {}"],
            "no word of the label '\u4e2d': give other",
        ),
        ("encoder", ["a", "--labels", "b"], "The labels must be two or more different texts, not 'b'."),
        ("encoder", ["a", "--labels", "b", "c", "--template", "d"], "The template 'd' has no {}"),
        ("nli", ["a", "b", "--template", "{}"], "--template describes labels: give --labels too."),
        ("nowhere", ["a"], "nowhere is no folder here"),
    ]
    for model, arguments, message in mistakes:
        words = ["predict", str(models / model), *map(str, arguments)]
        words += [] if "--output=" in words[-1] else ["--output", str(tmp_path / "out.jsonl")]
        assert main(words) == 2, arguments
        assert message in caplog.messages[-1]
        assert "\n" not in caplog.messages[-1]
    give(b"good\nbad \xff\n")
    assert main(["predict", str(models / "vsam"), "-"]) == 2
    assert "standard input, line 2 is not UTF-8" in caplog.messages[-1]
    assert main(["predict", str(models / "vsam"), str(null), "--output", str(null)]) == 2
    assert "null.jsonl is an input, and would be replaced" in caplog.messages[-1]
    assert main(["predict", "long " * 100, str(models / "vsam"), "--output", str(null)]) == 2  # in the wrong order
    assert "is no folder here" in caplog.messages[-1]
    assert main(["predict", str(models / "vsam"), "a", "--output", "a.csv", "--format", "jsonl"]) == 2
    assert "a.csv would hold jsonl, which its extension denies" in caplog.messages[-1]
    assert main(["predict", str(models / "vsam"), "m\udce4n"]) == 2  # a byte that is not UTF-8
    assert "'m\\udce4n' is no text in utf-8" in caplog.messages[-1]
    inside = str(models / "vsam" / "answers.jsonl")
    assert main(["predict", str(models / "vsam"), "a", "--output", inside]) == 2
    assert caplog.messages[-1] == f"error: {inside} is in the folder of a model: give another --output."
    for name in ("a.csv.gz", "a.parquet", str(models / "vsam" / "model.safetensors")):
        assert main(["predict", str(models / "vsam"), "a", "--output", name]) == 2
    assert sorted(tmp_path.iterdir()) == before
    assert capsys.readouterr().out == ""


def test_a_full_disk_and_a_closed_stream_get_a_sentence(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    argv = ["predict", str(models / "vsam"), TEXTS[0]]
    with monkeypatch.context() as patch, Path("/dev/full").open("w") as full:
        patch.setattr(sys, "stdout", full)
        assert main(argv) == 2
        assert "No space left on device" in caplog.messages[-1]
    for name, argument, message in (("stdout", TEXTS[0], "Standard output is"), ("stdin", "-", "Standard input is")):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, None)
            assert main([*argv[:2], argument]) == 2
        assert caplog.messages[-1].startswith(f"error: {message} closed: ")
