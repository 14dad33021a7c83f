"""The curves of compared runs; tests/run_glue_style/reporting/test_compare_verb.py has their table."""

from pathlib import Path

import numpy as np

from run_glue_style.reporting.run_comparison import ComparedRow, draw_curves


def test_a_run_with_one_evaluation_has_its_mark() -> None:
    history = [{"step": 10, "validation_loss": 0.5}]
    rows = [ComparedRow(name, {0: Path()}, {0: {"history": history}}) for name in ("a", "b" * 100)]
    figure = draw_curves(rows)
    (panel,) = figure.axes
    assert [np.asarray(line.get_xydata()).tolist() for line in panel.lines] == [[[10, 0.5]]] * 2
    marks = [line.get_marker() for line in panel.lines]
    assert len({*marks, "None", "", None}) == 5
    (legend,) = figure.legends
    assert "".join(legend.get_texts()[1].get_text().split()) == "b" * 100
