from pathlib import Path

import cold_start
import pytest
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_ENCODERS


@pytest.mark.slow
def test_everything_is_started(tmp_path: Path) -> None:
    record = run_quick(cold_start.main, tmp_path / "results" / "start.json")
    started = [result["what"] for result in record.results]
    assert started[1] == "import modeling_dsa"
    assert started[-1] == "the demo's page"
    assert f"{SHIPPED_ENCODERS[0]}, first vector, OnnxModel" in started
    assert all(result["fastest"] > 0 for result in record.results)
