"""run_glue_style.training.hub from end to end: a run pushes itself to a loopback Hub, strangers use it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from loopback_hub import LoopbackHub
from safetensors.torch import load_file
from small_runs import SMALL_SIZES, as_words, read_results, write_pair_files
from transformers import AutoTokenizer

from modeling_dsa import DSAForNLI

pytestmark = pytest.mark.slow  # each test starts processes

REPOSITORY = Path(__file__).parents[3]
TOKEN = "hf_a-token-that-nobody-shall-see"
PAIRS = [("A man is playing a guitar.", "A man is asleep."), ("Two dogs run.", "Animals are outside.")]
OPTIONS: dict[str, Any] = {
    "setting": "dsa-single-snli",
    **SMALL_SIZES,
    "num_train_epochs": 3,
    "per_device_train_batch_size": 32,
    "evaluations_per_epoch": 2,
    "report_to": "none",
}

# A process that has never heard of this package; what it finds goes out as JSON, numbers exactly.
STRANGER = """
import json, sys
sys.modules["modeling_dsa"] = None
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline
name, revision, pairs = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
where = {"revision": revision, "trust_remote_code": True}
tokenizer = AutoTokenizer.from_pretrained(name, **where)
batch = tokenizer([first for first, _ in pairs], [second for _, second in pairs], padding=True, return_tensors="pt")
model = AutoModelForSequenceClassification.from_pretrained(name, **where).eval()
encoder = AutoModel.from_pretrained(name, **where).eval()
firsts = [first for first, _ in pairs]
with torch.no_grad():
    found = {
        "logits": model(**batch).logits.double().tolist(),
        "vectors": encoder(**tokenizer(firsts, padding=True, return_tensors="pt")).pooler_output.double().tolist(),
    }
classify = pipeline("text-classification", name, **where)
answers = classify([{"text": first, "text_pair": second} for first, second in pairs])
found["labels"] = [answer["label"] for answer in answers]
found["one text"] = [answer["label"] for answer in classify([f"{first} [SEP] {second}" for first, second in pairs])]
found["embedded"] = pipeline("sentence-embedding", name, **where)(firsts)
found["zero-shot"] = pipeline("zero-shot-classification", name, **where)(firsts[0], ["music", "sleep"])["scores"]
found["encoded"] = SentenceTransformer(name, **where).encode(firsts).tolist()
print(json.dumps(found))
"""


def run_nli(
    hub: LoopbackHub, folder: Path, data: dict[str, Any], *flags: str, token: str | None = TOKEN, **options: Any
) -> subprocess.Popen[str]:
    words = as_words(OPTIONS | data | {"output_dir": folder / "run"} | options)
    environment = hub.environment(folder / "home", token) | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "run_glue_style/run_nli.py", "--cpu", *words, "--push_to_hub", *flags],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=240)
    assert TOKEN not in said
    return said


def ask_a_stranger(environment: dict[str, str], home: Path, name: str, revision: str) -> dict[str, Any]:
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, name, revision, json.dumps(PAIRS)],
        cwd=home,
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return write_pair_files(tmp_path_factory.mktemp("data"), {"train": 200, "validation": 60, "test": 60}, 12)


def test_a_run_pushes_itself_and_a_stranger_uses_it(hub: LoopbackHub, data: dict[str, Any], tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN, orgs=("org",))
    process = run_nli(hub, tmp_path, data, "--hub_private", hub_model_id="org/dsa-snli", hub_revision="first")
    said = finish(process)
    assert process.returncode == 0, said
    assert "The model is on the Hub: " in said
    assert hub.commits("org/dsa-snli", revision="first")[0] == "End of training"
    run = tmp_path / "run"
    assert "org/dsa-snli" in (run / "README.md").read_text("utf-8")
    assert TOKEN not in (run / "all_results.json").read_text("utf-8")

    environment = hub.environment(tmp_path / "stranger", TOKEN)
    found = ask_a_stranger(environment, tmp_path / "elsewhere", "org/dsa-snli", "first")
    model, tokenizer = DSAForNLI.from_pretrained(run).eval(), AutoTokenizer.from_pretrained(run)
    batch = tokenizer(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="pt")
    firsts = tokenizer([first for first, _ in PAIRS], padding=True, return_tensors="pt")
    with torch.no_grad():
        logits, vectors = model(**batch).logits, model.dsa(**firsts).pooler_output
    assert found["logits"] == logits.double().tolist()
    assert found["vectors"] == vectors.double().tolist()
    assert found["labels"] == found["one text"] == [model.config.id2label[index] for index in logits.argmax(1).tolist()]
    torch.testing.assert_close(torch.tensor(found["embedded"]), vectors)
    torch.testing.assert_close(torch.tensor(found["encoded"]), vectors)
    assert sum(found["zero-shot"]) == pytest.approx(1)

    again = ask_a_stranger(environment | {"HF_HUB_OFFLINE": "1"}, tmp_path / "elsewhere", "org/dsa-snli", "first")
    assert again == found


def test_every_checkpoint_is_pushed_and_the_end_too(hub: LoopbackHub, data: dict[str, Any], tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN)
    process = run_nli(hub, tmp_path, data, hub_model_id="ada/mine", hub_strategy="every_save")
    said = finish(process)
    assert process.returncode == 0, said
    titles = hub.commits("ada/mine")
    assert titles[0] == "End of training"
    progress = [title for title in titles if title.startswith("Training in progress: the best weights at step ")]
    assert progress
    assert len(progress) <= len(read_results(tmp_path / "run")["history"])
    first = subprocess.run(
        ["git", "-C", hub.git_folder("ada/mine"), "ls-tree", "--name-only", f"main~{titles.index(progress[-1])}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {"model.safetensors", "modeling_dsa.py", "tokenizer.json", "config.json"} <= set(first)


def test_a_hub_that_goes_away_costs_nothing_but_the_push(
    hub: LoopbackHub, data: dict[str, Any], tmp_path: Path
) -> None:
    hub.add_user("ada", TOKEN)
    hub.fail(1000, method="POST", path_contains="/commit/", how="503")
    process = run_nli(hub, tmp_path, data, hub_model_id="ada/mine")
    said = finish(process)
    run = tmp_path / "run"
    assert process.returncode == 1
    assert "error: The model was not pushed to ada/mine: the Hub answers 503" in said
    assert f"It is complete in {run}; push it later with: " in said
    command = said.splitlines()[-1].split("push it later with: ")[1]
    assert command == f"dsa push {run} ada/mine"
    assert load_file(run / "model.safetensors")
    assert read_results(run)["metrics"]["test"]["accuracy"] > 0
    assert not (run / "checkpoints").exists()


@pytest.mark.parametrize(
    ("token", "name", "sentence"),
    [
        (None, "ada/mine", "error: The model cannot be pushed to ada/mine: the Hub answers 401"),
        (TOKEN, "other/mine", "error: The model cannot be pushed to other/mine: the Hub answers 403"),
    ],
)
def test_a_refusal_comes_before_the_training(
    hub: LoopbackHub, data: dict[str, Any], tmp_path: Path, token: str | None, name: str, sentence: str
) -> None:
    hub.add_user("ada", TOKEN)
    process = run_nli(hub, tmp_path, data, token=token, hub_model_id=name)
    said = finish(process)
    assert process.returncode == 2
    assert sentence in said.splitlines()[-1]
    assert "HF_TOKEN" in said.splitlines()[-1]
    assert not (tmp_path / "run").exists()


def test_a_stopped_run_goes_on_and_is_pushed_once(hub: LoopbackHub, data: dict[str, Any], tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN)
    process = run_nli(hub, tmp_path, data, hub_model_id="ada/mine", num_train_epochs=60)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "run" / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert "The same command goes on from here." in finish(process)
    assert process.returncode == 130
    assert "End of training" not in hub.commits("ada/mine")
    again = run_nli(hub, tmp_path, data, hub_model_id="ada/mine", num_train_epochs=60)
    said = finish(again)
    assert again.returncode == 0, said
    assert "Going on from" in said
    assert hub.commits("ada/mine").count("End of training") == 1
