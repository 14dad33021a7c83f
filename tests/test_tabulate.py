"""The table of several runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from run_glue_style.tabulate import as_markdown, mean_and_spread, read_rows


def write_run(folder: Path, row: str, seed: int, accuracy: float) -> None:
    path = folder / row / f"seed-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    run = {
        "metrics": {"validation": {"accuracy": accuracy}, "test": {"accuracy": accuracy - 0.01}},
        "trained_parameters": 2078703,
        "recipe": {"num_train_epochs": 6.0},
        "train_seconds": 90.0,
    }
    path.write_text(json.dumps(run), encoding="utf-8")


def test_rows_are_sorted_by_validation_accuracy_with_their_spread(tmp_path: Path) -> None:
    write_run(tmp_path, "static", 0, 0.60)
    for seed, accuracy in enumerate((0.61, 0.62, 0.63)):
        write_run(tmp_path, "dynamic", seed, accuracy)
    header, _, first, second = as_markdown(read_rows(tmp_path)).splitlines()
    assert header == "| row | runs | validation accuracy | test accuracy | parameters | epochs | minutes |"
    assert first == "| dynamic | 3 | 62.00 ± 1.00 | 61.00 ± 1.00 | 2,078,703 | 6 | 1.5 |"
    assert second == "| static | 1 | 60.00 | 59.00 | 2,078,703 | 6 | 1.5 |"


def test_one_run_has_no_spread() -> None:
    assert mean_and_spread([0.5]) == "50.00"


def test_the_command_writes_the_table(tmp_path: Path) -> None:
    write_run(tmp_path, "static", 0, 0.60)
    subprocess.run([sys.executable, "-m", "run_glue_style.tabulate", str(tmp_path)], check=True)
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == as_markdown(read_rows(tmp_path))


def test_an_empty_folder_is_a_mistake_with_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no runs"):
        read_rows(tmp_path)
    command = [sys.executable, "-m", "run_glue_style.tabulate", str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "has no runs" in answer.stderr
