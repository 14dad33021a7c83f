from pathlib import Path

import bulk_memory
import pytest
from benchmark_runs import run_quick


def test_lines_are_as_long_as_the_sample_s(tmp_path: Path) -> None:
    words = bulk_memory.write_lines(tmp_path / "lines.txt", 100)
    lines = (tmp_path / "lines.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 100
    assert sum(len(line.split()) for line in lines) == words
    assert 5 < words / 100 < 12


@pytest.mark.slow
def test_memory_is_that_of_the_command(tmp_path: Path) -> None:
    record = run_quick(bulk_memory.main, tmp_path / "results" / "speed.json", "--threads", "1")
    first, second = record.results
    assert (first["lines"], second["lines"]) == (100, 200)
    for result in (first, second):
        assert 200 < result["peak_megabytes"] < 2000  # Python, torch and the model
    grown = second["peak_megabytes"] - first["peak_megabytes"]
    assert second["bytes_per_further_line"] == pytest.approx(1e6 * grown / 100)
