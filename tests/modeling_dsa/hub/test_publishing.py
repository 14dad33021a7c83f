"""modeling_dsa.hub.publishing and `dsa push` against a loopback Hub."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from loopback_hub import LoopbackHub
from small_repositories import save_system

from modeling_dsa.cli.main import main
from modeling_dsa.hub import publishing
from modeling_dsa.hub.publishing import NotPushedError, check_repo_id, placeholder_id, push_folder

TOKEN = "hf_a-token-that-nobody-shall-see"
CARD = "---\nlicense: apache-2.0\n---\n# mine\n`your-org/mine`, and mine. See your-org/mine.\n"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run's folder, with what a run keeps for itself."""
    folder = save_system(tmp_path_factory.mktemp("runs"), "nli").folder
    ours = ("checkpoints/step-1/model.safetensors", "tracker/events", ".unfinished/config.json", ".hidden")
    for name in (*ours, "checkpoint-500/optimizer.pt", "training_args.bin"):  # the last two are a Trainer's
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("not for the Hub")
    (folder / "README.md").write_text(CARD)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "mine"))


@pytest.fixture
def hub(hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A Hub that this process talks to, with a user who may write to `ada` and `org`, and no time to wait for."""
    monkeypatch.setattr(publishing, "WAITS", (0, 0))
    hub.add_user("ada", TOKEN, orgs=("org",))
    with hub.connected(TOKEN):
        yield hub


def push(folder: Path, repo_id: str, *options: str) -> int:
    return main(["push", str(folder), repo_id, *options])


def git(hub: LoopbackHub, repo_id: str, *words: str) -> str:
    command = ["git", "-C", str(hub.git_folder(repo_id)), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def files(hub: LoopbackHub, repo_id: str, revision: str = "main") -> set[str]:
    return set(git(hub, repo_id, "ls-tree", "-r", "--name-only", revision).split())


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_push_sends_the_whole_folder_in_one_commit_and_names_the_repository(
    hub: LoopbackHub, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = contents(folder)
    assert push(folder, "org/dsa-snli", "--private") == 0
    assert "org/dsa-snli" in caplog.messages[-1]
    assert hub.commits("org/dsa-snli") == ["Upload the model", "initial commit"]
    pushed = files(hub, "org/dsa-snli") - {".gitattributes"}
    left_out = {".hidden", "training_args.bin"}
    assert pushed == {path.name for path in folder.iterdir() if path.is_file()} - left_out
    assert {"model.safetensors", "modeling_dsa.py", "modules.json", "handler.py", "tokenizer.json"} <= pushed
    assert git(hub, "org/dsa-snli", "show", "main:model.safetensors").startswith("version https://git-lfs")
    assert git(hub, "org/dsa-snli", "show", "main:README.md") == CARD.replace("your-org/mine", "org/dsa-snli")

    for name in ("onnx/model.onnx", "model-00001-of-00002.safetensors", "notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"old")
    assert push(folder, "org/dsa-snli") == 0
    shutil.rmtree(folder / "onnx")
    for name in ("model-00001-of-00002.safetensors", "notes.txt"):
        (folder / name).unlink()
    assert push(folder, "org/dsa-snli") == 0
    assert files(hub, "org/dsa-snli") - {".gitattributes"} == pushed | {"notes.txt"}  # which is no model's

    assert push(folder, "org/dsa-snli", "--revision", "second") == 0
    assert files(hub, "org/dsa-snli", "second") >= pushed
    assert contents(folder) == before


def test_nothing_from_outside_the_folder_is_pushed(
    hub: LoopbackHub, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = folder.parent / "secret"
    secret.mkdir()
    (secret / "key").write_text("private")
    link = folder / "notes.txt"
    for target, message in (
        (secret / "key", f"is a link to {secret / 'key'}, outside the model's folder: copy it there."),
        (secret, f"is a link to {secret}, outside the model's folder: copy it there."),
        (folder / "nothing", "is no regular file: remove it."),
    ):
        link.symlink_to(target)
        assert push(folder, "ada/mine") == 2
        assert caplog.messages[-1] == f"error: {link} {message}"
        link.unlink()
    os.mkfifo(link)
    assert push(folder, "ada/mine") == 2
    link.unlink()
    link.symlink_to("README.md")
    assert push(folder, "ada/mine") == 0
    assert git(hub, "ada/mine", "show", "main:notes.txt") == CARD


def test_the_hubs_cache_is_pushed(hub: LoopbackHub, folder: Path) -> None:
    snapshot, blobs = folder.parent / "snapshots" / "abc", folder.parent / "blobs"
    for path in (snapshot, blobs):
        path.mkdir(parents=True)
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.replace(blobs / path.name)
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert push(snapshot, "ada/mine") == 0
    assert "model.safetensors" in files(hub, "ada/mine")


def test_weights_that_are_no_file_are_none(hub: LoopbackHub, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    assert push(folder, "ada/mine") == 2


def test_a_card_never_gets_the_name_of_a_push_that_failed(hub: LoopbackHub, folder: Path) -> None:
    before = contents(folder)
    hub.fail(1000, method="POST", path_contains="/commit/", how="403")
    assert push(folder, "org/mistyped") == 1
    assert contents(folder) == before


def test_a_model_without_a_card_is_pushed_with_the_command_that_makes_one(
    hub: LoopbackHub, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "README.md").unlink()
    assert push(folder, "ada/mine") == 0
    assert "model.safetensors" in files(hub, "ada/mine")
    assert f"python -m run_glue_style.reporting.model_card {folder} --model_id ada/mine" in caplog.messages[0]


def test_a_lost_connection_is_tried_again(hub: LoopbackHub, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    hub.fail(2, method="POST", path_contains="/commit/")
    assert push(folder, "ada/mine") == 0
    assert [message for message in caplog.messages if "Trying again in 0 s" in message] == caplog.messages[:2]
    assert "model.safetensors" in files(hub, "ada/mine")


def test_a_hub_that_stays_away_leaves_the_model_and_the_command(hub: LoopbackHub, folder: Path) -> None:
    hub.fail(1000, method="POST", path_contains="/commit/", how="503")
    with pytest.raises(NotPushedError) as refused:
        push_folder(folder, "ada/mine", private=True, revision="b")
    said = str(refused.value)
    assert said.startswith("The model was not pushed to ada/mine: the Hub answers 503")
    assert said.endswith(f"push it later with: dsa push {folder} ada/mine --private --revision b")
    assert TOKEN not in said


def test_weights_that_do_not_go_up_are_a_refusal_too(
    hub: LoopbackHub, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.fail(1000, method="PUT", path_contains="/models/", how="403")
    assert push(folder, "ada/mine") == 1
    assert "Error while uploading 'model.safetensors' to the Hub: the Hub answers 403" in caplog.messages[-1]


def test_a_full_disk_is_not_blamed_on_the_hub(hub: LoopbackHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "read_bytes", full)
    with pytest.raises(NotPushedError, match=r"to ada/mine: \[Errno 28\] No space left on device"):
        push_folder(folder, "ada/mine")


@pytest.mark.parametrize(
    ("repo_id", "token", "code", "sentence"),
    [
        ("ada/mine", "", 1, "set HF_TOKEN to a token that may write there. It is complete in"),
        ("ada/mine", "hf_wrong", 1, "log in with `hf auth login`, or set HF_TOKEN"),
        ("other/mine", TOKEN, 1, "the Hub answers 403"),
        ("a/b/c", TOKEN, 2, "'a/b/c' cannot name a repository"),
    ],
)
def test_refusals_are_one_sentence(
    hub: LoopbackHub, folder: Path, repo_id: str, token: str, code: int, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with hub.connected(token):
        assert push(folder, repo_id) == code
    assert caplog.messages[-1].startswith("error: ")
    assert sentence in caplog.messages[-1]
    assert "\n" not in caplog.messages[-1]


def test_offline_and_no_model(
    hub: LoopbackHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match="holds no saved model: give a folder with"):
        push_folder(tmp_path, "ada/mine")
    with pytest.raises(ValueError, match="cannot name a repository"):
        check_repo_id("-bad-")
    bare = shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("tokenizer*"))
    with pytest.raises(ValueError, match=r"has no tokenizer\.json: save the model's tokenizer there, too"):
        push_folder(bare, "ada/mine")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert push(folder, "ada/mine") == 1
    assert "HF_HUB_OFFLINE is set. It is complete in" in caplog.messages[-1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a b.c", "a-b.c"), ("modèle", "modele"), ("a--b", "a-b"), ("-x.", "x"), ("文", "model"), ("..", "model")],
)
def test_any_folders_name_gives_an_id_for_its_card(name: str, expected: str) -> None:
    assert placeholder_id(name) == f"your-org/{expected}"
    check_repo_id(placeholder_id(name * 50))


def test_metadata_that_the_hub_refuses(hub: LoopbackHub, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "README.md").write_text("---\nlicense: [no such licence]\n---\n")
    assert push(folder, "ada/mine") == 1
    assert "nvalid metadata in README.md" in caplog.messages[-1]
    assert "dsa push" in caplog.messages[-1]
