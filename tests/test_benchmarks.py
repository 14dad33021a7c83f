"""The benchmarks' quick modes keep working; their figures are not looked at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["read_vectors", "training_step"])
def test_the_quick_mode_prints_a_table_and_writes_its_figures(name: str, tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--quick", "--output", str(output)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "|---" in answer.stdout
    assert json.loads(output.read_text(encoding="utf-8"))
