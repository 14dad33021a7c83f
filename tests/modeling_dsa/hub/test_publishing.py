"""modeling_dsa.hub.publishing and `dsa push` against a loopback Hub, in fresh processes."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from loopback_hub import LoopbackHub
from small_models import randomize, small_config
from small_runs import small_tokenizer

from modeling_dsa import DSAForNLI
from modeling_dsa.hub.publishing import push_folder, validate

pytestmark = pytest.mark.slow  # each test starts processes

DSA = Path(sysconfig.get_path("scripts")) / "dsa"
TOKEN = "hf_a-token-that-nobody-shall-see"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run's folder, with what a run keeps for itself."""
    folder = tmp_path / "runs" / "mine"
    labels = {"entailment": 0, "neutral": 1, "contradiction": 2}
    names = {number: name for name, number in labels.items()}
    config = small_config(vocab_size=len(small_tokenizer()), sentences_per_row=2, id2label=names, label2id=labels)
    randomize(DSAForNLI(config)).save_pretrained(folder)
    small_tokenizer().save_pretrained(folder)
    for name in ("checkpoints/step-1/model.safetensors", "tracker/events", ".unfinished/config.json", ".hidden"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("not for the Hub")
    return folder


def dsa_push(
    hub: LoopbackHub, home: Path, *words: str | Path, token: str | None = TOKEN, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = hub.environment(home, token) | {"OMP_NUM_THREADS": "1"} | variables
    done = subprocess.run([DSA, "push", *words], env=environment, capture_output=True, text=True, timeout=180)
    assert TOKEN not in done.stdout + done.stderr
    return done


def files(hub: LoopbackHub, repo_id: str, revision: str = "main") -> set[str]:
    git = ["git", "-C", str(hub.git_folder(repo_id)), "ls-tree", "-r", "--name-only", revision]
    return set(subprocess.run(git, capture_output=True, text=True, check=True).stdout.split())


def content(hub: LoopbackHub, repo_id: str, path: str, revision: str = "main") -> str:
    git = ["git", "-C", str(hub.git_folder(repo_id)), "show", f"{revision}:{path}"]
    return str(subprocess.run(git, capture_output=True, text=True, check=True).stdout)


def test_push_sends_the_whole_folder_in_one_commit_and_completes_the_card(
    hub: LoopbackHub, folder: Path, tmp_path: Path
) -> None:
    hub.add_user("ada", TOKEN, orgs=("org",))
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# mine\n`your-org/mine`, and mine.\n")
    done = dsa_push(hub, tmp_path / "home", folder, "org/dsa-snli", "--private")
    assert done.returncode == 0, done.stderr
    assert "org/dsa-snli" in done.stderr.splitlines()[-1]
    assert len(hub.commits("org/dsa-snli")) <= 2  # the Hub's own first one, and ours
    assert hub.commits("org/dsa-snli")[0] == "Upload the model"
    pushed = files(hub, "org/dsa-snli") - {".gitattributes"}
    assert pushed == {path.name for path in folder.iterdir() if path.is_file() and path.name != ".hidden"}
    assert {"model.safetensors", "modeling_dsa.py", "modules.json", "handler.py", "tokenizer.json"} <= pushed
    assert content(hub, "org/dsa-snli", "model.safetensors").startswith("version https://git-lfs")
    assert "`org/dsa-snli`, and mine." in content(hub, "org/dsa-snli", "README.md")

    branch = dsa_push(hub, tmp_path / "home", folder, "org/dsa-snli", "--revision", "second")
    assert branch.returncode == 0, branch.stderr
    assert files(hub, "org/dsa-snli", "second") >= pushed


def test_push_makes_a_card_where_there_is_none(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN)
    done = dsa_push(hub, tmp_path / "home", folder, "ada/mine")
    assert done.returncode == 0, done.stderr
    card = content(hub, "ada/mine", "README.md")
    assert card.startswith("---\n")
    assert "ada/mine" in card


def test_a_lost_connection_is_tried_again(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN)
    hub.fail(2, method="POST", path_contains="/commit/")
    done = dsa_push(hub, tmp_path / "home", folder, "ada/mine")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Trying again in") == 2
    assert "model.safetensors" in files(hub, "ada/mine")


def test_a_hub_that_stays_away_leaves_the_model_and_the_command(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN)
    code = f"""
import sys, modeling_dsa.publishing as publishing
from pathlib import Path
publishing.WAITS = (0, 0)
try:
    publishing.push_folder(Path({str(folder)!r}), "ada/mine", private=True, revision="b")
except publishing.NotPushedError as error:
    print(error)
"""
    hub.fail(1000, method="POST", path_contains="/commit/", how="503")
    done = subprocess.run(
        [sys.executable, "-c", code], env=hub.environment(tmp_path, TOKEN), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip()
    assert said.startswith("The model was not pushed to ada/mine: the Hub answers 503")
    assert said.endswith(f"push it later with: dsa push {folder} ada/mine --private --revision b")
    assert TOKEN not in done.stdout + done.stderr
    assert (folder / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("repo_id", "token", "code", "sentence"),
    [
        ("ada/mine", None, 1, "set HF_TOKEN to a token that may write there. It is complete in"),
        ("ada/mine", "hf_wrong", 1, "log in with `hf auth login`, or set HF_TOKEN"),
        ("other/mine", TOKEN, 1, "the Hub answers 403"),
        ("a/b/c", TOKEN, 2, "'a/b/c' cannot name a repository"),
    ],
)
def test_refusals_are_one_sentence(
    hub: LoopbackHub, folder: Path, tmp_path: Path, repo_id: str, token: str | None, code: int, sentence: str
) -> None:
    hub.add_user("ada", TOKEN)
    (folder / "README.md").write_text("mine")
    done = dsa_push(hub, tmp_path / "home", folder, repo_id, token=token)
    assert done.returncode == code
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert sentence in last
    assert "Traceback" not in done.stderr


def test_offline_and_no_model(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    done = dsa_push(hub, tmp_path / "home", folder, "ada/mine", HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "HF_HUB_OFFLINE is set. It is complete in" in done.stderr
    with pytest.raises(ValueError, match="holds no saved model: give a folder with"):
        push_folder(tmp_path, "ada/mine")
    with pytest.raises(ValueError, match="cannot name a repository"):
        validate("-bad-")


def test_metadata_that_the_hub_refuses(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN)
    (folder / "README.md").write_text("---\nlicense: [no such licence]\n---\n")
    done = dsa_push(hub, tmp_path / "home", folder, "ada/mine")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "nvalid metadata in README.md" in last
    assert "dsa push" in last
