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


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("name", "arguments", "entries"),
    [
        ("read_vectors.py", [], {"rows", "results"}),
        ("training_step.py", ["--threads", "1", "--embedding_size", "10"], {"step_ratio", "product_share"}),
    ],
)
def test_a_benchmark_prints_a_table_and_writes_its_results(
    name: str, arguments: list[str], entries: set[str], tmp_path: Path
) -> None:
    output = tmp_path / "results" / "speed.json"
    finished = run(name, "--quick", *arguments, "--output", str(output))
    assert finished.returncode == 0, finished.stderr
    table = [line for line in finished.stdout.splitlines() if line.startswith("|")]
    assert len(table) >= 4
    assert len({line.count("|") for line in table}) == 1
    results = json.loads(output.read_text(encoding="utf-8"))
    assert entries <= results.keys()
    assert all(math.isfinite(number) and number >= 0 for number in numbers(results))
    assert list(output.parent.iterdir()) == [output]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("read_vectors.py", ["--rows", "2"], "give at least 20 rows"),
        ("training_step.py", ["--threads", "0"], "give at least 1 thread"),
        ("training_step.py", ["--rounds", "1000"], "give fewer rounds or smaller batches"),
    ],
)
def test_a_benchmark_refuses_what_it_cannot_measure(name: str, arguments: list[str], message: str) -> None:
    finished = run(name, *arguments)
    assert finished.returncode == 2
    assert message in finished.stderr
