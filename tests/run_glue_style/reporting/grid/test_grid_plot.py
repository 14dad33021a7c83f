"""The picture of a grid."""

from pathlib import Path

from matplotlib.image import imread

from run_glue_style.reporting.grid.plot import draw_grid


def test_long_names_leave_the_picture_its_width_and_are_not_cut(tmp_path: Path) -> None:
    widths = []
    for row in ("a row", "a row of eighty characters, which are a great many for the name of a row " * 2, "r" * 80):
        draw_grid(row, ["test.accuracy"], {"base": [[0.8, 0.82]], row: [[0.7, 0.75]]}, tmp_path / "plot")
        picture = imread(tmp_path / "plot.png")[..., :3]
        widths.append(picture.shape[1])
        assert min(picture[[0, -1]].min(), picture[:, [0, -1]].min()) == 1  # nothing reaches the edges
    assert len(set(widths)) == 1
