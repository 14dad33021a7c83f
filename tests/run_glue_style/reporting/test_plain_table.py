"""The table of a folder of runs."""

from pathlib import Path

import pytest
from small_results import write_results

from run_glue_style.reporting.plain_table import plain_table
from run_glue_style.reporting.rows import read_rows


def test_rows_are_sorted_by_validation_accuracy_with_their_spread(tmp_path: Path) -> None:
    write_results(tmp_path, "static", 0, 0.60)
    for seed, accuracy in enumerate((0.61, 0.62, 0.63)):
        write_results(tmp_path, "dynamic", seed, accuracy)
    header, _, first, second = plain_table(read_rows(tmp_path)).splitlines()
    assert header == "| row | seeds | validation accuracy | test accuracy | parameters | updates | minutes |"
    assert first == "| dynamic | 3 | 62.00 ± 1.00 | 61.00 ± 1.00 | 2,078,703 | 1,200 | 1.5 |"
    assert second == "| static | 1 | 60.00 | 59.00 | 2,078,703 | 1,200 | 1.5 |"


def test_runs_that_have_no_accuracy_are_told_what_makes_their_table(tmp_path: Path) -> None:
    write_results(tmp_path, "student", 0, 0.6, metrics={"validation": {"cosine": 0.8}})
    with pytest.raises(ValueError, match=r"No run has an accuracy, .* have their table made by run_grid"):
        plain_table(read_rows(tmp_path))
    write_results(tmp_path, "classifier", 0, 0.6)
    with pytest.raises(ValueError, match=r"A run of the row '.*' has no accuracy on '.*', and others have one"):
        plain_table(read_rows(tmp_path))
