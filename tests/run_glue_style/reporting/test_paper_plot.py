"""The picture of our runs beside a paper's figures."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from small_results import results

from run_glue_style.reporting.paper_comparison import Comparison
from run_glue_style.reporting.paper_plot import draw_comparison
from run_glue_style.reporting.published import read_published


def draw(path: Path, name: str, runs: dict[str, list[float]]) -> None:
    ours = {key: [results(key, seed, share) for seed, share in enumerate(shares)] for key, shares in runs.items()}
    draw_comparison(Comparison(read_published(name), ours, quick=False), path)


def test_picture_has_a_panel_for_each_column_with_both(tmp_path: Path, drawn: list[Figure]) -> None:
    draw(tmp_path / "fnc1", "fnc1", {"vsam-fnc1": [0.8, 0.82]})
    titles = [panel.get_title() for panel in drawn[0].axes]
    assert titles == ["accuracy", "agree recall", "disagree recall", "discuss recall", "unrelated recall"]
    draw(tmp_path / "sst", "sst", {"dsa-single-sst5": [0.4]})
    assert [panel.get_title() for panel in drawn[-1].axes] == ["SST-5 accuracy"]
    assert (tmp_path / "sst.png").read_bytes().startswith(b"\x89PNG")
    draw(tmp_path / "dsa-0.5", "sst", {"dsa-single-sst5": [0.4]})
    assert (tmp_path / "dsa-0.5.svg").is_file()


def test_without_a_figure_to_compare_the_paper_s_are_drawn(tmp_path: Path, drawn: list[Figure]) -> None:
    run = results("dsa-single-snli", 0, 0.6)
    del run["metrics"]["test"]
    draw_comparison(Comparison(read_published("snli"), {"dsa-single-snli": [run]}, quick=False), tmp_path / "snli")
    assert [panel.get_title() for panel in drawn[0].axes] == ["test accuracy", "train accuracy"]
    assert (tmp_path / "snli.svg").is_file()


def test_marks_stand_at_their_figures(tmp_path: Path, drawn: list[Figure]) -> None:
    draw(tmp_path / "snli", "snli", {"static-cnn-snli": [0.6, 0.62, 0.64], "bilstm-structured-5-snli": [0.5]})
    systems = read_published("snli").systems
    (panel,) = drawn[0].axes
    assert [label.get_text() for label in panel.get_yticklabels()] == list(systems)
    (bars,) = panel.containers
    ours = bars[0]
    assert list(ours.get_xdata()) == pytest.approx([49, 61])
    at = list(systems).index
    assert [round(height) for height in ours.get_ydata()] == [at("bilstm-structured-5"), at("static-cnn")]
    (segments,) = bars[2]
    assert segments.get_segments()[1][:, 0].tolist() == pytest.approx([59, 63])
    published = next(line for line in panel.lines if line.get_label() == "published")
    given = [system.published["test accuracy"] for system in systems.values() if system.published]
    assert list(published.get_xdata()) == given  # type: ignore[arg-type]


def test_whiskers_say_what_they_are_and_no_share_is_below_0(tmp_path: Path, drawn: list[Figure]) -> None:
    draw(tmp_path / "snli", "snli", {"static-cnn-snli": [0.01, 0.91, 0.01]})
    (segments,) = drawn[0].axes[0].containers[0][2]
    assert segments.get_segments()[0][:, 0].tolist() == pytest.approx([0, 30 + 100 * np.std([0, 0.9, 0], ddof=1)])
    (legend,) = drawn[0].legends
    assert "ours: mean ± standard deviation over seeds; without a bar one seed" in [
        text.get_text() for text in legend.get_texts()
    ]


def test_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        draw(tmp_path / name, "snli", {"dsa-single-snli": [0.8, 0.82]})
    for ending in ("png", "svg"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
