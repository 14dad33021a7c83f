from pathlib import Path

import growth
import pytest
from benchmark_runs import run_quick


def test_batches_of_a_sweep_have_its_size() -> None:
    shapes = {sweep.name: [growth.shape(sweep, size, 65_536) for size in sweep.sizes[:2]] for sweep in growth.SWEEPS}
    assert shapes == {
        "tokens": [(1, 8), (1, 32)],
        "tokens, full batch": [(8192, 8), (512, 128)],
        "sentences": [(1, 11), (4, 11)],
        "heads": [(256, 11)] * 2,
        "vocabulary": [(256, 11)] * 2,
    }


@pytest.mark.slow
def test_every_sweep_is_measured_in_both_forms(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    record = run_quick(growth.main, output, "--threads", "1", pictures=["speed.png"])
    found = {(result["sweep"], result["form"]): result for result in record.results}
    assert found.keys() == {(sweep.name, form) for sweep in growth.SWEEPS for form in ("plain", "folded")}
    for form in ("plain", "folded"):
        first, *_, last = (point["microseconds_per_token"] for point in found["tokens", form]["points"])
        assert first > last > 0  # a call costs something, whatever its size
        assert {point["tokens"] for point in found["tokens, full batch", form]["points"]} == {2048}
