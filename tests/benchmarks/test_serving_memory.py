from pathlib import Path

import pytest
import serving_memory
from benchmark_runs import run_quick


@pytest.mark.slow
def test_every_encoder_serves_both_ways(tmp_path: Path) -> None:
    record = run_quick(serving_memory.main, tmp_path / "results" / "memory.json")
    names = [result["name"] for result in record.results]
    assert names[:2] == ["dsa-mini-en, ONNX int8", "dsa-mini-en, ONNX"]
    # A process with Python alone has some megabytes, one with torch hundreds.
    of = {result["name"]: result for result in record.results}
    assert 20 < of["dsa-mini-en, ONNX int8"]["one at a time"] < of["dsa-mini-en"]["one at a time"]
    assert 20 < of["dsa-mini-en, ONNX int8"]["in bulk"] < of["dsa-mini-en"]["in bulk"]
