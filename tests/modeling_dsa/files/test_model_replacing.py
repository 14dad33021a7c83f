"""modeling_dsa.files.model_replacing: a folder never describes one model and holds another."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from modeling_dsa.files.model_replacing import replaced_model

NEW = {"config.json", "model.safetensors", "modeling_dsa.py"}
OLD = {
    *NEW,
    *("README.md", "all_results.json", "attention.png", "onnx/model.onnx", "retired_dsa.py"),
    *("evaluation.json", "evaluation.md", "evaluation.png"),
    *("faithfulness.json", "faithfulness.png", "example_scores.npz"),
    *("model-00001-of-00002.safetensors", "model.safetensors.index.json"),
}
OWN = {"notes.txt", "checkpoints/step-1/model.safetensors"}


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, names: set[str], text: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_what_belongs_to_the_old_model_goes(tmp_path: Path) -> None:
    write(tmp_path, OLD | OWN, "old")
    (tmp_path / "config.json").write_text('{"model_type": "dsa"}')
    with replaced_model(tmp_path) as beside:
        write(beside, NEW, "new")
        assert files(tmp_path).keys() >= OLD | OWN  # until the new model is complete
    assert files(tmp_path) == dict.fromkeys(NEW, "new") | dict.fromkeys(OWN, "old")


def test_where_there_was_no_model_nothing_goes(tmp_path: Path) -> None:
    write(tmp_path, OLD - NEW, "mine")
    with replaced_model(tmp_path) as beside:
        write(beside, NEW, "new")
    assert files(tmp_path) == dict.fromkeys(NEW, "new") | dict.fromkeys(OLD - NEW, "mine")


def test_a_model_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    write(tmp_path / "model", OLD, "old")

    def fail() -> None:
        with replaced_model(tmp_path / "model") as beside:
            write(beside, NEW, "new")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert files(tmp_path) == {f"model/{name}": "old" for name in OLD}


def test_weights_that_cannot_be_written_name_their_folder(tmp_path: Path) -> None:
    def save() -> None:
        with replaced_model(tmp_path / "model") as folder:
            save_file({"weight": torch.zeros(1)}, folder / "nowhere" / "model.safetensors")  # as a full disk refuses it

    with pytest.raises(OSError, match=f"^{tmp_path / 'model'} cannot be written: .*os error"):
        save()
    assert not list(tmp_path.iterdir())
