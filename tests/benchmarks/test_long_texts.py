from pathlib import Path

import pytest
from benchmark_runs import run_script


@pytest.mark.slow
def test_time_and_memory_of_each_pass_are_measured(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    record = run_script("long_texts.py", output, "--threads", "1", pictures=["speed.png"])
    found = {(result["setting"], result["pass"]): result for result in record.results}
    assert found.keys() == {("self-attention-fnc1", "forward"), ("self-attention-fnc1", "forward and backward")}
    for result in found.values():
        assert [point["tokens"] for point in result["points"]] == [1000, 1200]
        assert all(point["seconds"] > 0 and point["peak_megabytes"] >= 0 for point in result["points"])
