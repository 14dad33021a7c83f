from pathlib import Path

import pytest
import where_time_goes
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_ENCODERS


@pytest.mark.slow
def test_a_sentence_takes_longer_than_its_session(tmp_path: Path) -> None:
    record = run_quick(where_time_goes.main, tmp_path / "results" / "time.json")
    found = {result["name"]: result for result in record.results}
    for name in SHIPPED_ENCODERS:
        of_one = found[name]
        assert min(of_one["tokeniser"], of_one["session"], of_one["tokenised_per_second"]) > 0
        assert of_one["whole"] > of_one["session"]
