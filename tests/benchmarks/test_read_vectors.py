from pathlib import Path

import pytest
import read_vectors
from benchmark_runs import run_quick


@pytest.mark.slow
def test_both_readers_are_measured_for_some_rows_and_for_all(tmp_path: Path) -> None:
    record = run_quick(read_vectors.main, tmp_path / "results" / "speed.json", "--dimension", "2")
    kept = {(result["reader"], result["wanted"]): result["rows"] for result in record.results}
    for reader in ("read_vectors", "line loop"):
        assert (kept[reader, "5 %"], kept[reader, "all"]) == (1000, 20_000)
    for result in record.results:
        assert 0 < result["slowest"] <= result["megabytes_per_second"] <= result["fastest"]
        assert result["peak_megabytes"] > result["kept_megabytes"] > 0
