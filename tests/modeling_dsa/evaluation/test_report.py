"""modeling_dsa.evaluation.report: the picture of an evaluation."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from modeling_dsa.evaluation.report import Evaluation, Result


def test_long_names_leave_the_picture_its_width_and_its_bars(tmp_path: Path) -> None:
    widths = []
    for name in ("a.tsv", "a_long_name_of_a_file_" * 6 + "$x$.tsv"):
        file = {"name": name, "sha256": ""}
        result = Result("similarity", [file], 9, {"spearman": 0.8, "pearson": 0.7})
        Evaluation("models/mine", {}, "", "", {}, [result]).draw(tmp_path / "a.png")
        picture = imread(tmp_path / "a.png")[..., :3]
        blue = np.abs(picture - [0, 0x72 / 255, 0xB2 / 255]).max(-1) < 0.01  # Spearman's bar
        widths.append((picture.shape[1], blue.any(0).sum()))
    assert widths[0] == pytest.approx(widths[1], abs=3)
    assert widths[0][1] > 0.5 * widths[0][0]
