"""The trained classifiers in model_cards: complete, up to date, and as good as their cards say."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch
from sklearn.metrics import accuracy_score
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

import modeling_dsa
from modeling_dsa.explanation.explain import explain
from modeling_dsa.files.model_hashes import model_file_hashes
from modeling_dsa.repository_dsa import write_repository_files
from modeling_dsa.shipped.settings import setting_folder
from run_glue_style.reporting.model_card import write_card
from run_glue_style.sample import SAMPLE_FILES

CARDS = Path(__file__).parents[2] / "model_cards"
FOLDER = CARDS / "dsa-snli"
SHIPPED = sorted(path.parent for path in CARDS.glob("*/config.json"))
MOST_BYTES = {"dsa-base-en": 45e6, "dsa-mini-en": 12e6, "dsa-nli-en": 55e6, "dsa-snli": 16e6}
PACKAGE = Path(modeling_dsa.__file__).parent


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "all_results.json").read_text("utf-8"))
    return found


def test_all_are_small_and_complete() -> None:
    assert {folder.name for folder in SHIPPED} == MOST_BYTES.keys()
    for folder in SHIPPED:
        files = {path.name: path.stat().st_size for path in folder.iterdir()}
        assert sum(files.values()) <= MOST_BYTES[folder.name], folder
        assert {"README.md", "all_results.json", "attention.png", "config.json", "model.safetensors"} <= files.keys()
        assert {"tokenizer.json", "tokenizer_config.json", "modules.json", "handler.py"} <= files.keys()


@pytest.mark.parametrize("folder", SHIPPED, ids=[folder.name for folder in SHIPPED])
def test_its_code_is_that_of_the_package(folder: Path, tmp_path: Path) -> None:
    write_repository_files(tmp_path)
    for path in tmp_path.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes(), f"See model_cards/README.md: {path.name} is old."
    of_package = {path.name for path in PACKAGE.glob("*.py")}
    assert {path.name for path in folder.glob("*.py")} == of_package & {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("folder", SHIPPED, ids=[folder.name for folder in SHIPPED])
def test_its_tokenizer_has_a_name_that_transformers_4_knows(folder: Path) -> None:
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_its_config_is_that_of_its_setting(results: dict[str, Any]) -> None:
    config = json.loads((FOLDER / "config.json").read_text("utf-8"))
    setting = json.loads((setting_folder(results["setting"]) / "config.json").read_text("utf-8"))
    assert {name: config[name] for name in setting.keys() & config.keys()} == {
        name: value for name, value in setting.items() if name in config
    }
    assert setting.keys() - config.keys() == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dsa-nli-en", "dsa-snli"])
def test_it_is_as_good_as_its_results_say(name: str) -> None:
    folder = CARDS / name
    results = json.loads((folder / "all_results.json").read_text("utf-8"))
    rows = pyarrow.parquet.read_table(SAMPLE_FILES["validation"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    predictions: list[int] = []
    for part in rows.to_batches(max_chunksize=1024):
        texts = [part.column(name).to_pylist() for name in ("premise", "hypothesis")]
        with torch.no_grad():
            predictions += model(**tokenizer(*texts, padding=True, return_tensors="pt")).logits.argmax(1).tolist()
    # dsa-snli was measured in bfloat16, dsa-nli-en before its word table was in float16.
    measured = accuracy_score(rows.column("label").to_pylist(), predictions)
    assert measured == pytest.approx(results["metrics"]["validation"]["accuracy"], abs=0.003)


@pytest.mark.parametrize("folder", SHIPPED, ids=[folder.name for folder in SHIPPED])
def test_its_card_is_what_the_command_writes_with_what_was_measured_since(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    write_card(copy, f"your-org/{folder.name}")
    assert (copy / "README.md").read_text("utf-8") == (folder / "README.md").read_text("utf-8")
    found = [path for path in folder.glob("*.json") if path.stem in ("evaluation", "faithfulness")]
    assert found
    for measured in found:
        assert json.loads(measured.read_text("utf-8"))["files"] == model_file_hashes(str(folder))
        assert measured.with_suffix(".png").is_file()


def test_it_knows_a_contradiction_and_shows_four_heads() -> None:
    classify = pipeline("text-classification", str(FOLDER))
    assert classify("A man is playing a guitar on stage. [SEP] A man is asleep.")[0]["label"] == "contradiction"
    explanation = explain(FOLDER, "A man is asleep.", "Nobody sings.")
    assert [text.weights.shape for text in explanation.texts.values()] == [(2, 4, 5), (2, 4, 3)]
