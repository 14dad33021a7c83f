from pathlib import Path

import pytest
import table_epoch
from benchmark_runs import run_quick

from run_glue_style.reporting.published import read_published


@pytest.mark.slow
def test_systems_train_in_turns_and_are_compared_with_single_dsa(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    record = run_quick(table_epoch.main, output, "--threads", "1", pictures=["speed.png"])
    ours, disan, resan = record.results
    assert [result["setting"] for result in record.results] == ["dsa-single-snli", "disan-snli", "resan-snli"]
    assert (ours["parameters"], disan["parameters"], resan["parameters"]) == (2_078_703, 2_344_203, 3_066_005)
    assert (ours["ratio"], ours["published_ratio"]) == (1, 1)
    assert disan["published_ratio"] == pytest.approx(587 / 135)
    for result in record.results:
        assert result["ratio"] == pytest.approx(result["seconds"] / ours["seconds"])
        assert 0 < result["fastest"] <= result["seconds"] <= result["slowest"]


def test_every_row_is_timed_and_no_other() -> None:
    table = read_published("snli")
    assert set(table_epoch.choose_systems(table, None)) == set(table.systems)
    assert {table.systems[name].called for name in table.systems} >= set(table.costs)
    with pytest.raises(ValueError, match=r"has no system 'dissan'\. Did you mean"):
        table_epoch.choose_systems(table, ["dissan"])
