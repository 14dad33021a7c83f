from pathlib import Path

import pytest
import where_time_goes
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_ENCODERS


@pytest.mark.slow
def test_the_parts_of_a_sentence_add_up(tmp_path: Path) -> None:
    record = run_quick(where_time_goes.main, tmp_path / "results" / "time.json")
    found = {result["name"]: result for result in record.results}
    for name in SHIPPED_ENCODERS:
        of_one = found[name]
        assert of_one["whole"] == pytest.approx(of_one["tokeniser"] + of_one["session"] + of_one["rest"])
        assert min(of_one["tokeniser"], of_one["session"], of_one["tokenised_per_second"]) > 0
