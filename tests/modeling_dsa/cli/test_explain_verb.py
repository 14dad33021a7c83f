"""`dsa explain` from outside: text here, files on demand, and every mistake it refuses."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from small_repositories import save_system
from transformers import AutoModel, AutoModelForSequenceClassification

from modeling_dsa.cli.main import main


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("nli", "encoder"):
        save_system(folder, name)
    return folder


def test_it_is_shown_here_or_written_to_files(
    models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["explain", str(models / "nli"), "A man sleeps.", "The zqxv"]
    assert main(call) == 0
    assert re.search(
        r"Second sentence, routing iteration 2 of 2\nhead 1 The:\d+% zqxv:\d+%\*\s", capsys.readouterr().out
    )
    svg, html = tmp_path / "new" / "a.svg", tmp_path / "a.html"
    assert main([*call, "--output", str(svg), str(html)]) == 0
    assert capsys.readouterr().out == ""
    assert caplog.messages == [f"The explanation is in {path}." for path in (svg, html)]
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg.read_text(encoding="utf-8"))
    assert {"A", "man", "sleeps", "The", "zqxv", "First sentence, iteration 2 of 2"} <= set(texts)
    assert re.match(r"(entailment|neutral|contradiction) [\d.]+% · ", texts[0])
    page = html.read_text(encoding="utf-8")
    assert "zqxv" in page
    assert str(models) not in page  # it is handed on


def test_it_reads_an_encoder_too(models: Path, tmp_path: Path) -> None:
    assert main(["explain", str(models / "encoder"), "A man", "--output", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_faithfulness_is_measured_and_goes_into_the_card(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = shutil.copytree(models / "nli", tmp_path / "model")
    shutil.copyfile("model_cards/dsa-mini-en/README.md", model / "README.md")
    before = ModelCard.load(model / "README.md")
    texts = tmp_path / "pairs.tsv"
    texts.write_text("premise\thypothesis\nA man sleeps\tThe man\nA dog runs\tA man\nThe dog\tA\n", encoding="utf-8")
    call = ["explain", str(model), "--faithfulness", str(texts), "--examples", "2"]
    for _ in range(2):  # the second replaces what the first wrote
        assert main([*call, "--card"]) == 0
    content = json.loads((model / "faithfulness.json").read_text(encoding="utf-8"))
    assert content["examples"] == 2
    assert (model / "faithfulness.png").read_bytes().startswith(b"\x89PNG")
    after = ModelCard.load(model / "README.md")
    assert after.text.startswith(before.text.rstrip())
    assert after.text.count(content["verdict"]) == 1
    assert after.data.to_dict() == before.data.to_dict()
    table, _, verdict = capsys.readouterr().out.rstrip().rpartition("\n\n")
    assert verdict == content["verdict"]
    mean = content["metrics"]["random"]["sufficiency"]["mean"]
    assert f"| {100 * mean:.1f} [" in table.splitlines()[-1]


def test_faithfulness_replaces_neither_its_input_nor_other_files(
    models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = shutil.copytree(models / "nli", tmp_path / "model")
    shutil.copyfile("model_cards/dsa-mini-en/README.md", model / "README.md")
    rows = model / "faithfulness.json"
    rows.write_text('[{"premise": "A man sleeps", "hypothesis": "The man"}]', encoding="utf-8")
    before = rows.read_bytes()
    call = ["explain", str(model), "--card", "--faithfulness"]
    assert main([*call, str(rows)]) == 2
    assert caplog.messages[-1].endswith("is an input, and would be replaced: give another --faithfulness.")
    assert main([*call, "pairs.tsv"]) == 2
    assert caplog.messages[-1].startswith(f"error: {rows} is there, and no file of this command")
    assert rows.read_bytes() == before


def test_a_model_in_half_precision_is_explained(models: Path, tmp_path: Path) -> None:
    for name, kind in {"nli": AutoModelForSequenceClassification, "encoder": AutoModel}.items():
        folder = shutil.copytree(models / name, tmp_path / name)
        kind.from_pretrained(folder).bfloat16().save_pretrained(folder)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("premise\thypothesis\nA man sleeps\tThe man\nA dog runs\tA man\n", encoding="utf-8")
    assert main(["explain", str(tmp_path / "nli"), "--faithfulness", str(pairs)]) == 0
    call = ["explain", str(tmp_path / "encoder"), "--vectors", str(pairs), "--output", str(tmp_path / "a.html")]
    assert main(call) == 0


def test_weight_vectors_are_projected(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = tmp_path / "a.txt"
    texts.write_text("A man\nA dog sleeps\nThe cat\n", encoding="utf-8")
    output = tmp_path / "new" / "a.html"
    assert main(["explain", str(models / "nli"), "--vectors", str(texts), "--output", str(output)]) == 0
    assert re.match(r"component 1: [\d.]+% of variance; component 2: ", capsys.readouterr().out)
    assert "A dog sleeps" in output.read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--heads", "--vectors", "--faithfulness"])
def test_texts_of_which_the_model_knows_no_word_are_told(
    option: str, models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = tmp_path / "a.tsv"
    texts.write_text("premise\thypothesis\nA man sleeps\tA man\n一二 三四\tA man sleeps\n", encoding="utf-8")
    output = tmp_path / ("a.json" if option != "--vectors" else "a.html")
    assert main(["explain", str(models / "nli"), option, str(texts), "--output", str(output)]) == 0
    assert re.search(r"knows no word of 1 of \d texts, such as .*一二 三四.*: figures of them say nothing", caplog.text)


def test_profiles_of_heads_are_shown(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, output = tmp_path / "a.tsv", [str(tmp_path / name) for name in ("a.json", "a.png", "a.svg")]
    rows = ["sentence\tscore\tlabel", "A man sleeps\t1\tx", "The man sleeps\t2\tx", "A cat sees the man\t3\tx"]
    texts.write_text("\n".join(rows), encoding="utf-8")  # which column holds labels is not clear, and none is wanted
    assert (
        main(["explain", str(models / "encoder"), "--heads", str(texts), "--word_classes", "en", "--output", *output])
        == 0
    )
    table = capsys.readouterr().out
    assert "| 2 | " in table
    assert "NOUN " in table
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["sentences"] == 3
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "There is nothing to explain: give a text, or a file with --faithfulness, --heads or --vectors."),
        (["A", "b", "--card"], "--card goes with --faithfulness."),
        (["A", "--faithfulness", "pairs.tsv"], "Give one of these: a text, or a file with"),
        (["--faithfulness", "no.tsv"], "There is no file no.tsv."),
        (
            ["--faithfulness", "no.tsv", "--output", "a.html"],
            "a.html: this is written as .json, .png: ",
        ),
        (["--faithfulness", "no.tsv", "--card"], "has no README.md"),
        (["A", "b", "--text_column", "c"], "--text_column names columns of a file: leave it out for a text."),
        (["A", "b", "--examples", "3"], "--examples counts rows of a file: leave it out for a text."),
        (["A", "b", "--word_classes", "en"], "--word_classes goes with --heads."),
        (["A", "b", "--label_column", "c"], "--label_column goes with --vectors."),
        (["A", "b", "--method", "t-sne"], "--method goes with --vectors."),
        (["--vectors", "no.tsv"], "Say with --output where the vectors go"),
        (
            ["--vectors", "no.tsv", "--output", "a.json"],
            "a.json: this is written as .html, .png, .svg, ",
        ),
        (["--vectors", "no.tsv", "--output", "a.html"], "There is no file no.tsv."),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    models: Path, options: list[str], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["explain", str(models / "nli"), *options]) == 2
    assert message in caplog.messages[-1]


def test_mistakes_are_clear(models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = {}
    for missing in ("tokenizer.json", "model.safetensors", "config.json"):
        broken[missing] = tmp_path / missing.partition(".")[0]
        shutil.copytree(models / "nli", broken[missing])
        (broken[missing] / missing).unlink()
    (broken["tokenizer.json"] / "tokenizer_config.json").unlink()
    cut = tmp_path / "cut"
    cut.mkdir()
    for path in (models / "nli").iterdir():
        content = path.read_bytes()
        (cut / path.name).write_bytes(content[: len(content) // 2] if path.name == "model.safetensors" else content)
    picture = tmp_path / "a.png"
    mistakes: list[tuple[Sequence[object], str]] = [
        ([models / "nli", ""], "There is no token in the sentence ''"),
        (
            [models / "nli", models / "nli" / "config.json", "b"],
            "config.json is a file, and one text is explained: --he",
        ),
        ([models / "nli", "a.csv", "b"], "There is no file a.csv: check its name, or add a blank where it is a text."),
        ([models / "nli", "A man"], "This model classifies pairs of sentences, but one was given"),
        (
            [broken["tokenizer.json"], "A", "b"],
            "has no tokenizer.json that can be read: save the model's tokenizer there, too.",
        ),
        ([broken["model.safetensors"], "A", "b"], ": the model cannot be loaded ("),
        ([broken["config.json"], "A", "b"], "config has no config.json: give the folder of a saved model."),
        ([cut, "A", "b"], ": the model cannot be loaded ("),
        (
            [tmp_path / "nowhere", "A", "b"],
            "nowhere is no folder here, and on the Hub its config.json cannot be",
        ),
    ]
    for words, message in mistakes:
        assert main(["explain", *map(str, words), "--output", str(picture)]) == 2
        assert message in caplog.messages[-1]
        assert "\n" not in caplog.messages[-1]
    assert main(["explain", str(models / "nli"), "A", "b", "--output", str(picture), str(tmp_path / "a.gif")]) == 2
    assert "a.gif: this is written as .html, .png, .svg, .pdf: give another name." in caplog.messages[-1]
    assert not picture.exists()
    texts = tmp_path / "texts.json"
    texts.write_text("[]")
    for option in ("--heads", "--faithfulness"):
        assert main(["explain", str(models / "nli"), option, str(texts), "--output", str(texts)]) == 2
        assert "texts.json is an input, and would be replaced: give another --output." in caplog.messages[-1]
    assert texts.read_text() == "[]"
    for output, told in (
        (cut / "modules.json", "modules.json is in the folder of a model: give another --output."),
        (cut / "a.json", "a.json is a folder: give"),
    ):
        (cut / "a.json").mkdir(exist_ok=True)
        assert main(["explain", str(cut), "--heads", str(texts), "--output", str(output)]) == 2
        assert told in caplog.messages[-1]
