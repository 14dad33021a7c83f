"""What was measured of another model, or is broken, does not get into a card."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from huggingface_hub import ModelCard, ModelCardData

from run_glue_style.reporting.card.measured import put_measured

SHIPPED = Path(__file__).parents[4] / "model_cards" / "dsa-snli"


NO_FILES = '{"kind": "probe", "files": [], "examples": 1, "metrics": {}}'


def card() -> ModelCard:
    return ModelCard("---\nlibrary_name: transformers\n---\nThe text.\n")


def retrain(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"retrained")


def read_one_token(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"max_sentence_tokens": 1}), encoding="utf-8")


@pytest.mark.parametrize("change", [retrain, read_one_token])
def test_figures_of_another_model_are_left_out(
    change: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = shutil.copytree(SHIPPED, tmp_path / "model")
    (folder / "evaluation.json").unlink()
    measured = card()
    put_measured(measured, folder)
    assert str(measured) != str(card())
    change(folder)
    unchanged = card()
    put_measured(unchanged, folder)
    assert str(unchanged) == str(card())
    assert "faithfulness.json is of another model than the one beside it" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        *(f'{{"files": {{}}, "results": [{result}]}}' for result in ("{}", '"x"', '{"kind": "x"}', NO_FILES)),
        "{}",
    ],
)
def test_a_broken_file_gets_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "evaluation.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"evaluation\.json is broken \(.*\): make it again, or take it out"):
        put_measured(card(), tmp_path)


def test_the_evaluation_goes_into_text_and_metadata(tmp_path: Path) -> None:
    content = json.loads((SHIPPED.parent / "dsa-mini-en" / "evaluation.json").read_text("utf-8"))
    (tmp_path / "evaluation.json").write_text(json.dumps(content | {"files": {}}), encoding="utf-8")
    written = card()
    put_measured(written, tmp_path)
    assert "## Evaluation by `dsa evaluate`" in written.text
    metrics = [result.metric_value for result in cast(ModelCardData, written.data).eval_results or []]
    assert metrics == [value for result in content["results"] for value in result["metrics"].values()]
