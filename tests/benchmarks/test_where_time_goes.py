from pathlib import Path

import pytest
import where_time_goes
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_ENCODERS


@pytest.mark.slow
def test_every_part_of_a_sentence_has_its_time(tmp_path: Path) -> None:
    record = run_quick(where_time_goes.main, tmp_path / "results" / "time.json")
    found = {result["name"]: result for result in record.results}
    for name in SHIPPED_ENCODERS:
        assert min(found[name][part] for part in ("tokenizer", "session", "whole", "tokenised_per_second")) > 0
