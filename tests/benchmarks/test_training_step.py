from pathlib import Path

import pytest
import training_step
from benchmark_runs import run_quick


@pytest.mark.slow
def test_both_phases_of_every_variant_are_measured(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    record = run_quick(training_step.main, output, "--threads", "1", "--embedding_size", "10")
    results = {result["name"]: result for result in record.results if result["name"] != "single DSA in bf16"}
    assert list(results) == ["single DSA", "single DSA, folded", "single DSA, padded Conv1d"]
    assert results["single DSA, folded"]["training"] is None
    for phase in ("encoding", "training"):
        ours, padded = (results[name][phase] for name in ("single DSA", "single DSA, padded Conv1d"))
        assert ours["ratio"] == 1
        assert padded["ratio"] == pytest.approx(padded["milliseconds"] / ours["milliseconds"])
        assert ours["product_share"] == pytest.approx(ours["gflops"] / record.setup["product_gflops"][phase])
        assert min(ours["random_us"], ours["sorted_us"]) > 0
