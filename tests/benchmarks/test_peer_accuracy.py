from pathlib import Path

import peer_accuracy
import pytest
from benchmark_runs import run_quick


@pytest.mark.slow
def test_vectors_trained_on_the_pairs_are_worth_more_than_bare_ones(tmp_path: Path) -> None:
    record = run_quick(peer_accuracy.main, tmp_path / "results" / "speed.json")
    assert record.options["pairs"] == record.setup["dev_pairs"] == 200
    found = {result["name"]: result["accuracy"] for result in record.results}
    assert found.keys() == {"mean of GloVe", "dsa-small-snli", "dsa-mini-en", "dsa-base-en"}
    assert 0.3 < found["mean of GloVe"] < found["dsa-small-snli"] < 0.8
