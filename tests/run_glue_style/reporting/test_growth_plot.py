"""The picture of metrics over what runs saw."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from small_results import results

from run_glue_style.reporting import growth_plot

ROWS = {"base": (100, 1, "bilstm"), "more": (400, 1, "bilstm"), "again": (100, 3, "bilstm"), "words": (100, 1, "none")}


def test_a_line_joins_those_with_more_and_a_dashed_one_those_that_saw_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(growth_plot, "save_png_and_svg", lambda figure, path: figures.append(figure))
    for row, (examples, epochs, encoder) in ROWS.items():
        for seed, accuracy in enumerate((0.5, 0.6)):
            changes: dict[str, Any] = {
                "data": {"train": {"examples": examples}},
                "steps": epochs * examples // 20,
                "recipe": {
                    "num_train_epochs": 9,  # as planned: all were stopped before
                    "per_device_train_batch_size": 10,
                    "gradient_accumulation_steps": 2,
                },
                "model": {"encoder": encoder, "pooling": "mean"},
            }
            path = tmp_path / row / f"seed-{seed}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(results("a", seed, accuracy, **changes)))
    assert growth_plot.main([str(tmp_path), "--metrics", "validation.accuracy", "test.macro_f1"]) == 0
    panel, other = figures[0].axes
    lines = {container.get_label(): container[0].get_xydata().tolist() for container in panel.containers}
    assert lines == {
        "bilstm, mean: one epoch over more": [[100, pytest.approx(55)], [400, pytest.approx(55)]],
        "bilstm, mean: more epochs over the same": [[100, pytest.approx(55)], [300, pytest.approx(55)]],
        "none, mean: one epoch over more": [[100, pytest.approx(55)]],
    }
    assert other.containers[0][0].get_ydata().tolist() == [25, 25]
    for metric in ("validation.f1", "validation"):
        assert growth_plot.main([str(tmp_path), "--metrics", metric]) == 2
        assert f"The run of a with seed 0 has no metric '{metric}'. " in caplog.messages[-1]
