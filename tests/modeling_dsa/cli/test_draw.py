"""`dsa draw` from outside: pictures, and every mistake it refuses."""

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


def test_draw_writes_a_picture(models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "new" / "a.svg"
    assert main(["draw", str(models / "nli"), "A man sleeps.", "The zqxv", "--output", str(path)]) == 0
    assert caplog.messages == [f"The picture is in {path}."]
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", path.read_text())
    assert {"A", "man", "sleeps", "The", "zqxv", "first sentence"} <= set(texts)
    assert any(re.fullmatch(r"second sentence: (entailment|neutral|contradiction) \d+%", text) for text in texts)


def test_draw_reads_an_encoder_too(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["draw", str(models / "encoder"), "A man"]) == 0
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")


def test_mistakes_of_draw_are_clear(models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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
        assert main(["draw", *map(str, words), "--output", str(picture)]) == 2
        assert message in caplog.messages[-1]
        assert "\n" not in caplog.messages[-1]
        assert not picture.exists()
    assert main(["draw", str(models / "nli"), "A", "b", "--output", str(tmp_path / "a.gif")]) == 2
    assert "a.gif: pictures are written as .png, .svg, .pdf, not .gif" in caplog.messages[-1]
