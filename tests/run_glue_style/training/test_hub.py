"""run_glue_style.training.hub: a run pushes itself to a loopback Hub, which may fail, and strangers use it."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from loopback_hub import LoopbackHub
from safetensors.torch import load_file
from small_runs import SMALL_SIZES, as_arguments, logged_error, read_results, run_main, small_trainer, write_pair_files
from transformers import AutoTokenizer

from modeling_dsa import DSAForNLI
from modeling_dsa.hub import publishing
from run_glue_style import run_nli as run_nli_script
from run_glue_style.training.hub import HubRun
from run_glue_style.training.recipe import RunArguments

pytestmark = pytest.mark.usefixtures("datasets_cache")
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
    words = as_arguments(OPTIONS | data | {"output_dir": folder / "run"} | options)
    environment = hub.environment(folder / "home", token)
    return subprocess.Popen(
        [sys.executable, "run_glue_style/run_nli.py", "--cpu", *words, "--push_to_hub", *flags],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def assert_token_is_nowhere(folder: Path, *said: str) -> None:
    """Neither in what a run said nor in any file that it left: logs, results, card, checkpoints, the tracker's."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert files
    assert [path for path, content in files.items() if TOKEN.encode() in content] == []
    assert TOKEN not in "".join(said)


def finish(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=240)
    assert TOKEN not in said
    return said


def ask_a_stranger(environment: dict[str, str], home: Path, name: str, revision: str) -> dict[str, Any]:
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, name, revision, json.dumps(PAIRS)],
        cwd=home,
        env=environment,
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


@pytest.mark.slow
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


@pytest.fixture
def waitless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "WAITS", (0, 0))


def run_here(
    hub: LoopbackHub, folder: Path, data: dict[str, Any], token: str = TOKEN, **options: Any
) -> tuple[int, Path]:
    """A run in this process: its exit code and its folder."""
    hub.add_user("ada", TOKEN)
    words = OPTIONS | data | {"output_dir": folder / "run"} | options
    with hub.connected(token):
        return run_main(run_nli_script.main, "run_nli.py", words, "--cpu", "--push_to_hub"), folder / "run"


@pytest.fixture
def one_push_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of a fraction of a second may end before its first push has: the training waits for each."""
    push_checkpoint = HubRun.push_checkpoint

    def push_and_wait(run: HubRun, trainer: Any) -> None:
        push_checkpoint(run, trainer)
        assert run._running is not None
        wait([run._running])

    monkeypatch.setattr(HubRun, "push_checkpoint", push_and_wait)


@pytest.mark.usefixtures("waitless", "one_push_at_a_time")
def test_every_checkpoint_is_pushed_but_for_one_that_fails_and_the_end_too(
    hub: LoopbackHub, data: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.fail(1, method="PUT", path_contains="/models/", how="403")  # huggingface_hub makes a RuntimeError of it
    code, run = run_here(hub, tmp_path, data, hub_model_id="ada/mine", hub_strategy="every_save")
    assert code == 0
    (failed,) = [message for message in caplog.messages if message.startswith("A checkpoint was not pushed: ")]
    assert "Error while uploading 'model.safetensors' to the Hub: the Hub answers 403" in failed
    titles = hub.commits("ada/mine")
    assert titles[0] == "End of training"
    progress = [title for title in titles if title.startswith("Training in progress: the best weights at step ")]
    assert progress
    assert len(progress) < len(read_results(run)["history"])
    first = subprocess.run(
        ["git", "-C", hub.git_folder("ada/mine"), "ls-tree", "--name-only", f"main~{titles.index(progress[-1])}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {"model.safetensors", "modeling_dsa.py", "tokenizer.json", "config.json"} <= set(first)


def test_a_full_disk_under_a_push_in_the_background_is_logged(
    hub: LoopbackHub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.add_user("ada", TOKEN)
    trainer = small_trainer(tmp_path)
    trainer.checkpoints.save_best(trainer.unwrapped_model().state_dict())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with hub.connected(TOKEN):
        hub_run = HubRun(RunArguments(push_to_hub=True, hub_model_id="ada/mine"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))  # room for config.json, and not for the weights
        try:
            hub_run.push_checkpoint(trainer)
            hub_run.wait()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caplog.messages[-1].startswith("A checkpoint was not pushed: SafetensorError: ")


def test_a_hub_that_goes_away_costs_nothing_but_the_push(
    hub: LoopbackHub,
    data: dict[str, Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    waitless: None,
) -> None:
    hub.fail(1000, method="POST", path_contains="/commit/", how="503")
    code, run = run_here(hub, tmp_path, data, hub_model_id="ada/mine", max_train_steps=4, report_to="tensorboard")
    assert code == 1
    assert_token_is_nowhere(run, caplog.text, *capfd.readouterr())
    said = logged_error(caplog)
    assert said.startswith("error: The model was not pushed to ada/mine: the Hub answers 503")
    assert said.endswith(f"It is complete in {run}; push it later with: dsa push {run} ada/mine")
    assert load_file(run / "model.safetensors")
    assert read_results(run)["metrics"]["test"]["accuracy"] > 0
    assert not (run / "checkpoints").exists()


@pytest.mark.parametrize(
    ("token", "name", "sentence"),
    [
        ("", "ada/mine", "error: The model cannot be pushed to ada/mine: the Hub answers 401"),
        (TOKEN, "other/mine", "error: The model cannot be pushed to other/mine: the Hub answers 403"),
    ],
)
def test_a_refusal_comes_before_the_training(
    hub: LoopbackHub,
    data: dict[str, Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    token: str,
    name: str,
    sentence: str,
) -> None:
    code, run = run_here(hub, tmp_path, data, token, hub_model_id=name)
    assert code == 2
    assert sentence in logged_error(caplog)
    assert "HF_TOKEN" in logged_error(caplog)
    assert not run.exists()


@pytest.mark.slow
def test_who_works_offline_is_told_before_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"cannot be pushed to ada/mine: HF_HUB_OFFLINE is set. Unset it, or leave"):
        HubRun(RunArguments(push_to_hub=True, hub_model_id="ada/mine"))


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_is_pushed_once(hub: LoopbackHub, data: dict[str, Any], tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN)
    process = run_nli(hub, tmp_path, data, hub_model_id="ada/mine", num_train_epochs=60)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "run" / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert "The same command resumes here." in finish(process)
    assert process.returncode == 130
    assert_token_is_nowhere(tmp_path / "run")
    assert "End of training" not in hub.commits("ada/mine")
    again = run_nli(hub, tmp_path, data, hub_model_id="ada/mine", num_train_epochs=60)
    said = finish(again)
    assert again.returncode == 0, said
    assert "Resuming from" in said
    assert hub.commits("ada/mine").count("End of training") == 1
