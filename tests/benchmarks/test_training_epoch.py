from pathlib import Path

import pytest
import training_epoch
from benchmark_runs import run_quick


@pytest.mark.slow
def test_everyone_trains_and_is_compared_with_single_dsa(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    record = run_quick(training_epoch.main, output, "--threads", "1", pictures=["speed.png"])
    ours, *others = record.results
    assert (ours["name"], ours["ratio"], len(others)) == ("single DSA", 1, 4)
    assert ours["parameters"] == others[0]["parameters"] == 2_078_703
    for result in record.results:
        assert result["ratio"] == pytest.approx(result["seconds"] / ours["seconds"])
        assert 0 < result["fastest"] <= result["seconds"] <= result["slowest"]
