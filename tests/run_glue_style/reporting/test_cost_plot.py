"""The picture of accuracy over cost."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from small_results import results, write_results

from run_glue_style.reporting.cost_plot import draw_costs, main
from run_glue_style.reporting.paper_comparison import read_epochs
from run_glue_style.reporting.published import read_published


def test_every_row_of_the_paper_and_every_run_has_its_mark(tmp_path: Path, drawn: list[Figure]) -> None:
    runs = {"dsa-single-snli": [results("dsa-single-snli", seed, share) for seed, share in enumerate((0.61, 0.63))]}
    (tmp_path / "epochs.json").write_text('{"results": [{"setting": "dsa-single-snli", "seconds": 1187.2}]}')
    draw_costs(read_published("snli"), runs, tmp_path / "costs", read_epochs(tmp_path / "epochs.json"))
    marks = [
        {line.get_label(): np.asarray(line.get_xydata()).tolist()[0] for line in panel.lines} for panel in drawn[0].axes
    ]
    assert len(marks[0]) == 9  # rows of Table 1
    assert marks[0]["600D Single DSA"] == [2.1, 86.8]
    assert marks[1]["2400D Multiple DSA"] == [198, 87.4]
    assert "600D Gumbel TreeLSTM" not in marks[1]  # no time is published
    (ours,) = drawn[0].axes[2].containers  # with whiskers, which the published figures do not have
    assert ours.get_label() == "dsa-single-snli"
    assert ours[0].get_xydata().tolist()[0] == pytest.approx([2.078703, 61])
    (timed,) = drawn[0].axes[3].containers
    assert timed[0].get_xydata().tolist()[0] == pytest.approx([1187.2, 61])
    assert not drawn[0].axes[0].containers
    (theirs,) = (line for line in drawn[0].axes[0].lines if line.get_label() == "600D Single DSA")
    assert (theirs.get_marker(), theirs.get_color()) == (ours[0].get_marker(), ours[0].get_color())
    assert b"<svg" in (tmp_path / "costs.svg").read_bytes()


def test_runs_without_a_test_split_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_results(tmp_path, "dsa-single-snli", 3, 0.6, metrics={"validation": {"accuracy": 0.6}})
    assert main([str(tmp_path)]) == 2
    assert "The run of dsa-single-snli with seed 3 has no metric 'test.accuracy'" in caplog.messages[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["dsa-single-snli"]
