"""The benchmarks run: their quick modes print a table and write what they measured."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def numbers(value: object) -> Iterator[float]:
    """All numbers of a JSON value."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float):
        yield value


@pytest.mark.parametrize(
    ("name", "arguments", "entries"),
    [
        ("read_vectors.py", ["--dimension", "5"], {"rows", "results"}),
        ("training_step.py", ["--threads", "1", "--embedding_size", "10"], {"step_ratio", "product_share"}),
    ],
)
def test_a_benchmark_prints_a_table_and_writes_its_results(
    name: str, arguments: list[str], entries: set[str], tmp_path: Path
) -> None:
    output = tmp_path / "results" / "speed.json"
    command = [sys.executable, str(BENCHMARKS / name), "--quick", *arguments, "--output", str(output)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    table = [line for line in finished.stdout.splitlines() if line.startswith("|")]
    assert len(table) >= 4
    assert len({line.count("|") for line in table}) == 1
    results = json.loads(output.read_text(encoding="utf-8"))
    assert entries <= results.keys()
    assert all(math.isfinite(number) and number >= 0 for number in numbers(results))
    assert list(output.parent.iterdir()) == [output]
