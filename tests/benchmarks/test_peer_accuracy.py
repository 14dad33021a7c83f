from pathlib import Path

import peer_accuracy
import pytest
from benchmark_runs import run_quick


@pytest.mark.slow
def test_vectors_trained_on_the_pairs_are_worth_more_than_bare_ones(tmp_path: Path) -> None:
    record = run_quick(peer_accuracy.main, tmp_path / "results" / "speed.json")
    assert record.options["pairs"] == record.setup["dev_pairs"] == 200
    assert [result["name"] for result in record.results] == ["mean of GloVe", "dsa-small-snli"]
    bare, trained = (result["accuracy"] for result in record.results)
    assert 0.3 < bare < trained < 0.8
