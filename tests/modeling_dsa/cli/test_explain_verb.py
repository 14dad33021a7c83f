"""`dsa explain` from outside: text here, files on demand, and every mistake it refuses."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from small_repositories import save_system

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
    assert re.search(r"Second sentence, routing iteration 2 of 2\nhead 1 The:\d+% zqxv:\d+%\s", capsys.readouterr().out)
    svg, html = tmp_path / "new" / "a.svg", tmp_path / "a.html"
    assert main([*call, "--output", str(svg), str(html)]) == 0
    assert capsys.readouterr().out == ""
    assert caplog.messages == [f"The explanation is in {path}." for path in (svg, html)]
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg.read_text(encoding="utf-8"))
    assert {"A", "man", "sleeps", "The", "zqxv", "First sentence, iteration 2 of 2"} <= set(texts)
    assert re.match(r"(entailment|neutral|contradiction) [\d.]+% · ", texts[0])
    assert "zqxv" in html.read_text(encoding="utf-8")


def test_it_reads_an_encoder_too(models: Path, tmp_path: Path) -> None:
    assert main(["explain", str(models / "encoder"), "A man", "--output", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


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
        ([models / "nli", "A man"], "This model classifies pairs of sentences, but one was given"),
        ([broken["tokenizer.json"], "A", "b"], ": the tokenizer cannot be loaded ("),
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
    assert "a.gif: explanations are written as .html, .png, .svg, .pdf, not .gif" in caplog.messages[-1]
    assert not picture.exists()
