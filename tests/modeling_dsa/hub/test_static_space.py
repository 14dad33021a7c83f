"""modeling_dsa.hub.static_space, `dsa widget` and `dsa push --widget`. The page itself is in test_widget.py."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, SpaceCard
from loopback_hub import LoopbackHub
from small_repositories import Saved

from modeling_dsa.cli.main import main
from modeling_dsa.hub import publishing
from modeling_dsa.hub.static_space import write_static_space
from modeling_dsa.onnx.session import OnnxModel

TOKEN = "hf_ada"
CARD = "---\nlicense: mit\nwidget:\n- text: One. [SEP] Two.\n- text: alone\n---\n# mine\n\nIt is `your-org/mine`.\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Files as a build leaves them."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name in ("index.html", "app-1.js", "program-1.wasm.gz", "service-worker.js"):
        (folder / name).write_text(f"this is {name}")
    files = ["index.html", "app-1.js", "program-1.wasm.gz"]
    built = {"files": files, "wasm": files[-1], "worker": "service-worker.js"}
    (folder / "bundle.json").write_text(json.dumps(built))
    return folder


@pytest.fixture
def model(exported: Saved, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(exported.folder, tmp_path / "mine"))
    (folder / "README.md").write_text(CARD)
    return folder


@pytest.fixture
def hub(hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    monkeypatch.setattr(publishing, "WAITS", (0,))
    hub.add_user("ada", TOKEN, orgs=("org",))
    with hub.connected(TOKEN):
        yield hub


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_is_a_static_space_with_the_models_own_files(model: Path, bundle: Path, tmp_path: Path) -> None:
    output = tmp_path / "page"
    content = write_static_space(model, output, model_id="org/mine", bundle=bundle)
    found = contents(output)
    assert json.loads(found["widget.json"]) == content
    assert found[content["model"]] == (model / "onnx" / "model_quantized.onnx").read_bytes()
    assert found[content["tokenizer"]] == (model / "tokenizer.json").read_bytes()
    assert found["service-worker.js"] == b"this is service-worker.js"
    assert {name: len(found[name]) for name in content["sizes"]} == content["sizes"]
    # What a browser keeps for visits without a connection is everything but the worker, which it keeps by itself.
    assert set(content["files"]) == {"./", *found} - {"service-worker.js", "README.md"}
    about = OnnxModel.from_pretrained(model, quantized=True).about
    assert (content["labels"], content["scores"], content["pairs"]) == (about["labels"], "softmax", True)
    assert (content["texts"], content["examples"]) == (["Premise", "Hypothesis"], [["One.", "Two."]])
    card = SpaceCard.load(output / "README.md")
    assert (card.data.sdk, card.data.license, card.data.models) == ("static", "mit", ["org/mine"])
    assert len(card.data["short_description"]) <= 60


def test_a_page_takes_the_place_of_an_earlier_one_and_has_a_version_of_its_own(
    model: Path, bundle: Path, tmp_path: Path
) -> None:
    output = tmp_path / "page"
    first = write_static_space(model, output, bundle=bundle)
    again = write_static_space(model, output, bundle=bundle)
    assert first == again
    shutil.move(bundle / "app-1.js", bundle / "app-2.js")
    (bundle / "bundle.json").write_text((bundle / "bundle.json").read_text().replace("app-1", "app-2"))
    second = write_static_space(model, output, bundle=bundle)
    assert second["version"] != first["version"]
    assert {"app-1.js", "app-2.js"}.intersection(contents(output)) == {"app-2.js"}


def break_tokenizer(model: Path) -> None:
    saved = json.loads((model / "tokenizer.json").read_text())
    saved["pre_tokenizer"] = {"type": "Whitespace"}
    (model / "tokenizer.json").write_text(json.dumps(saved))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda model, bundle, page: shutil.rmtree(model / "onnx"),
            "model_quantized.onnx: write it by `dsa onnx ",
        ),
        (
            lambda model, bundle, page: (model / "onnx" / "model_quantized.onnx_data").touch(),
            "and the page needs one file: write it by `dsa onnx ",
        ),
        (
            lambda model, bundle, page: shutil.rmtree(bundle),
            "build it in model_cards/widget of a clone",
        ),
        (
            lambda model, bundle, page: (bundle / "app-1.js").unlink(),
            "by `npm ci && npm run build`, and name its",
        ),
        (lambda model, bundle, page: (model / "README.md").write_text("---\na: [\n---\n"), "metadata between the ---"),
        (lambda model, bundle, page: break_tokenizer(model), "is no tokenizer that this package made"),
        (lambda model, bundle, page: page.touch(), "is a file: give OUTPUT a folder"),
        (lambda model, bundle, page: page.mkdir() or (page / "mine").touch(), "is there already and holds no widget"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(
    model: Path, bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Any, message: str
) -> None:
    page = tmp_path / "page"
    spoil(model, bundle, page)
    before = sorted(tmp_path.rglob("*"))
    assert main(["widget", str(model), str(page), "--bundle", str(bundle)]) == 2
    assert caplog.messages[-1].startswith("error: ")
    assert message in caplog.messages[-1]
    assert "\n" not in caplog.messages[-1]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_push_takes_the_widget_along(
    hub: LoopbackHub, model: Path, bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["push", str(model), "org/mine", "--widget", "org/mine-widget", "--bundle", str(bundle), "--private"]
    assert main(words) == 0
    assert caplog.messages[-1] == f"Its widget is on the Hub: {hub.endpoint}/spaces/org/mine-widget"
    space = HfApi().space_info("org/mine-widget")
    assert (space.sdk, space.private) == ("static", True)
    assert HfApi().model_info("org/mine").private
    files = set(HfApi().list_repo_files("org/mine-widget", repo_type="space"))
    assert {"README.md", "index.html", "widget.json", "service-worker.js", "program-1.wasm.gz"} <= files
    command = ["git", "-C", str(hub.git_folder("org/mine")), "show", "main:README.md"]
    pushed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    link = f"**[Try it in your browser]({hub.endpoint}/spaces/org/mine-widget)**"
    assert pushed.partition("# mine\n\n")[2].startswith(link)
    assert pushed.endswith("It is `org/mine`.\n")
    assert (model / "README.md").read_text() == CARD
    for start in ("---\n# a comment\nlicense: mit\n---\n", ""):
        (model / "README.md").write_text(f"{start}Mine\n====\n```\n# load it\n```\n")
        assert main(words) == 0
        pushed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert pushed.startswith(f"{start.rstrip()}\n\n{link}" if start else f"\n\n{link}")
        assert pushed.endswith("\n\nMine\n====\n```\n# load it\n```\n")

    shutil.move(bundle / "app-1.js", bundle / "app-2.js")
    (bundle / "bundle.json").write_text((bundle / "bundle.json").read_text().replace("app-1", "app-2"))
    assert main(words) == 0
    assert set(HfApi().list_repo_files("org/mine-widget", repo_type="space")) == files - {"app-1.js"} | {"app-2.js"}


def test_a_widget_that_cannot_be_made_or_pushed(
    hub: LoopbackHub, model: Path, bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["push", str(model), "org/mine", "--bundle", str(bundle), "--widget"]
    assert main(words[:-1]) == 2
    assert caplog.messages[-1] == "error: --bundle is the page of a widget: give --widget too."
    assert main([*words, "widget"]) == 2
    assert "'widget' does not say whose repository it is" in caplog.messages[-1]
    assert hub.requests == []
    hub.fail(1000, method="POST", path_contains="/spaces/", how="403")
    assert main([*words, "org/mine-widget"]) == 1
    said = caplog.messages[-1]
    assert said.startswith("error: The widget was not pushed to org/mine-widget: the Hub answers 403")
    assert said.endswith(f"push both again with: {shlex.join(['dsa', *words, 'org/mine-widget'])}")
    assert hub.commits("org/mine") == ["Upload the model", "initial commit"]
    shutil.rmtree(model / "onnx")
    assert main([*words, "org/mine-widget"]) == 2
    assert hub.commits("org/mine") == ["Upload the model", "initial commit"]
