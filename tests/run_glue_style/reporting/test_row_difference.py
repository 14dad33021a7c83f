"""Two rows of a folder of runs, compared over their seeds."""

from pathlib import Path

import pytest
from scipy import stats
from small_results import write_results

from run_glue_style.reporting.row_difference import main


def test_only_common_seeds_are_paired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (0.61, 0.65, 0.63), (0.60, 0.61, 0.61, 0.9)
    for row, accuracies in (("a", first), ("b", second)):
        for seed, accuracy in enumerate(accuracies):
            write_results(tmp_path, row, seed, accuracy)
    write_results(tmp_path, "d", 0, 0.6, data={"test": {"examples": 9, "sha256": "c"}})
    (tmp_path / "hops").mkdir()
    (tmp_path / "hops" / "overlap.json").write_text("{}", encoding="utf-8")  # of a study
    assert main([str(tmp_path), "a", "b", "--metric", "test.accuracy"]) == 0
    expected = stats.ttest_rel(first, second[:3])
    low, high = (100 * end for end in expected.confidence_interval())
    cells = f"+2.33 [{low:+.2f}, {high:+.2f}] | {expected.pvalue:.4f} | 3 |"
    assert f"| test.accuracy | {cells}" in capsys.readouterr().out
    for words, message in (
        (("a", "c"), "has no row 'c'"),
        (("a", "b", "--metric", "accuracy"), "no metric 'accuracy'"),
        (("a", "d"), "a and d were measured on other examples"),
    ):
        assert main([str(tmp_path), *words]) == 2
        assert message in caplog.messages[-1]
