"""The README tells the truth: its tables are the files', its snippets run, its commands name what exists."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from loopback_hub import LoopbackHub
from small_runs import SMALL_SIZES, pairs, small_tokenizer
from small_stances import write_stances

from modeling_dsa import DSAConfig, DSAForNLI
from run_glue_style.reporting.tabulate import table_of
from run_glue_style.sample import SAMPLE_VECTORS
from run_glue_style.tasks.nli import LABEL_NAMES

ROOT = Path(__file__).parents[1]
SENTIMENT = ("awful", "dull", "plain", "good", "superb")
README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLES = [
    found
    for page in (ROOT / "README.md", *ROOT.glob("results/*/README.md"))
    for found in re.findall(
        r"<!-- table: (\S+) -->\n(.*?)<!-- end of table -->", page.read_text(encoding="utf-8"), flags=re.S
    )
]


def block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", README, flags=re.S)
    assert found, f"README.md has no block '{name}'"
    return found.group(1)


@pytest.mark.parametrize(("path", "table"), TABLES)
def test_tables_are_those_of_the_results(path: str, table: str) -> None:
    assert table == (ROOT / path).read_text(encoding="utf-8")
    assert table == table_of((ROOT / path).parent)


def test_there_is_a_table() -> None:
    assert TABLES


def test_the_baseline_that_a_run_shows_is_a_result() -> None:
    baseline = json.loads((SAMPLE_VECTORS.parent / "baseline.json").read_text(encoding="utf-8"))
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / baseline["results"]).glob("*.json")]
    accuracies = [run["metrics"]["validation"]["accuracy"] for run in runs]
    assert baseline["validation_accuracy"] == pytest.approx(sum(accuracies) / len(accuracies))
    assert {run["setting"] for run in runs} == {baseline["setting"]}


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert links
    missing = [link for link in links if not (ROOT / link).exists()]
    assert not missing


@pytest.mark.parametrize("name", ["command: main", "command: tests"])
def test_commands_name_what_exists(name: str) -> None:
    command = block(name)
    files = re.findall(r"\S+\.(?:py|yaml|txt)\b", command)
    assert files
    assert all((ROOT / file).is_file() for file in files)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with what the snippets name: a trained model, data, vectors, and the scripts."""
    labels = dict(enumerate(LABEL_NAMES))
    config = DSAConfig(
        vocab_size=len(small_tokenizer()),
        sentences_per_row=2,
        id2label=labels,
        **{**SMALL_SIZES, "attention_head_size": 600},
    )
    DSAForNLI(config).save_pretrained(tmp_path / "runs" / "dsa-single-snli")
    small_tokenizer().save_pretrained(tmp_path / "runs" / "dsa-single-snli")
    for name, split in (("train", "train"), ("dev", "validation"), ("test", "test")):
        rows = [
            {"sentence1": row["premise"], "sentence2": row["hypothesis"], "gold_label": LABEL_NAMES[row["label"]]}
            for row in pairs(split)[:40]
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    with zipfile.ZipFile(SAMPLE_VECTORS) as sample, zipfile.ZipFile(tmp_path / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", "word" + " 0" * 50 + "\n")  # the real archive holds four files
        archive.writestr("glove.6B.100d.txt", sample.read(sample.namelist()[0]))
    (tmp_path / "run_glue_style").symlink_to(ROOT / "run_glue_style")
    shutil.copytree(ROOT / "model_cards", tmp_path / "model_cards")  # no link: a push completes a model's card
    return tmp_path


def run_in(folder: Path, command: list[str], environment: Mapping[str, str] | None = None) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**(environment or os.environ | {"HF_HUB_OFFLINE": "1"}), "PATH": path, "ACCELERATE_USE_CPU": "true"}
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_the_minute_of_use_prints_what_its_comments_say(home: Path) -> None:
    lines = run_in(home, [sys.executable, "-c", block("snippet: use")]).splitlines()
    assert any(name in lines[0] for name in LABEL_NAMES)
    assert lines[1:] == ["torch.Size([2, 600])", "torch.Size([2, 4, 7])"]


def test_dsa_commands_run(home: Path) -> None:
    run_in(home, ["bash", "-euc", block("snippet: dsa")])
    assert (home / "my-model" / "model.safetensors").is_file()
    assert (home / "attention.png").is_file()
    run_in(home, ["bash", "-euc", block("snippet: onnx")])
    assert {path.suffix for path in (home / "my-model" / "onnx").iterdir()} == {".onnx"}
    assert run_in(home, [sys.executable, "-c", block("snippet: session")]) == "(2, 600)\n"


def test_a_lot_of_text_is_encoded(home: Path) -> None:
    (home / "sentences.txt").write_text("A man is asleep.\n\nNobody sings.\n", encoding="utf-8")
    run_in(home, ["bash", "-euc", block("snippet: encode")])
    assert np.load(home / "vectors.npy").shape == (3, 600)
    assert [path.name for path in (home / "vectors").glob("*.parquet")] == ["vectors-000000.parquet"]
    assert run_in(home, [sys.executable, "-c", block("snippet: encoder")]) == "(2, 600)\n"


@pytest.fixture
def other_tasks(home: Path) -> Path:
    """Also trees and the files of the Fake News Challenge."""
    (home / "configuration").symlink_to(ROOT / "configuration")
    (home / "trees").mkdir()
    for name in ("train", "dev", "test"):
        trees = [f"({label} (2 A) ({label} ({label} {word}) (2 film)))" for label, word in enumerate(SENTIMENT)]
        (home / "trees" / f"{name}.txt").write_text("\n".join(trees * 4) + "\n", encoding="utf-8")
    (home / "fnc-1").mkdir()
    write_stances(home / "fnc-1")
    return home


@pytest.mark.slow
def test_the_other_tasks_run(other_tasks: Path) -> None:
    sst, stance = block("snippet: tasks").replace("\\\n", " ").splitlines()
    few = "--max_train_steps 2 --per_device_train_batch_size 8 --report_to none"
    run_in(other_tasks, ["bash", "-euc", f"{sst} {few}\n{stance} {few} --validation_share 0.3"])
    for name, task in (("dsa-single-sst5", "sst5"), ("vsam-fnc1", "stance")):
        results = json.loads((other_tasks / "runs" / name / "all_results.json").read_text(encoding="utf-8"))
        assert results["task"] == task


@pytest.mark.slow
def test_a_table_is_made_again(other_tasks: Path) -> None:
    command = block("snippet: reproduce").replace("--seeds 3", "--seeds 1").replace("\\\n", " ").strip()
    run_in(other_tasks, ["bash", "-euc", f"{command} --row kim-cnn-sst2 --quick"])
    assert (other_tasks / "runs" / "reproduce-sst-quick" / "table.md").is_file()


@pytest.mark.slow
def test_training_on_your_own_data_runs(home: Path) -> None:
    run_in(home, ["bash", "-euc", block("snippet: own")])
    assert json.loads((home / "runs" / "mine" / "all_results.json").read_text(encoding="utf-8"))["seed"] == 1


@pytest.mark.slow
def test_the_way_to_the_hub_and_back(home: Path, hub: LoopbackHub) -> None:
    hub.add_user("ada", "hf_token", orgs=("org",))
    environment = hub.environment(home / "hf", "hf_token")
    few = "--max_train_steps 2 --max_train_samples 512 --report_to none"
    run, push = block("snippet: hub").replace("\\\n", " ").strip().splitlines()
    run_in(home, ["bash", "-euc", f"{run} {few} --output_dir runs/pushed\n{push}"], environment)
    assert hub.commits("org/dsa-snli")[0] == "End of training"
    assert hub.commits("org/dsa-small", revision="v1")[0] == "Upload the model"
    stranger = f"import sys; sys.modules['modeling_dsa'] = None\n{block('snippet: stranger')}"
    labels, vectors = run_in(home, [sys.executable, "-c", stranger], environment).splitlines()[-2:]
    assert sorted(json.loads(labels.replace("'", '"'))) == ["cooking", "sports"]
    assert vectors == "600 (1, 600)"
