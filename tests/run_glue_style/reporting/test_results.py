"""Files that a run leaves."""

import json
import re
from pathlib import Path

import pytest
import torch

from run_glue_style.reporting import results
from run_glue_style.reporting.results import environment, filled_folder, write_json


def test_json_is_read_back_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    write_json({"text": "Männer 🐕", "list": [1, 0.5, None]}, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"text": "Männer 🐕", "list": [1, 0.5, None]}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_old_json_stays_when_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    write_json({"old": 1}, tmp_path / "a.json")
    with pytest.raises(TypeError):
        write_json({"new": object()}, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"old": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_filled_folder_moves_its_files_over_old_ones_and_clears_what_a_killed_run_left(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("old")
    (tmp_path / "other").write_text("kept")
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / ".unfinished" / "stale").write_text("half")
    with filled_folder(tmp_path) as folder:
        (folder / "model").write_text("new")
        assert (tmp_path / "model").read_text() == "old"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"model": "new", "other": "kept"}


def test_filled_folder_changes_nothing_where_its_block_fails(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("old")

    def fail() -> None:
        with filled_folder(tmp_path) as folder:
            (folder / "model").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"model": "old"}


def test_environment_is_json_with_versions_and_hardware() -> None:
    content = json.loads(json.dumps(environment()))
    assert content["torch"] == torch.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", content["python"])
    assert content["cpu_threads"] == torch.get_num_threads()
    assert all(content[package] for package in results.PACKAGES if package != "dsa-transformers")


def test_environment_of_a_checkout_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "PACKAGES", ("no-such-package", "torch"))
    content = environment()
    assert content["no-such-package"] is None
    assert content["torch"]
