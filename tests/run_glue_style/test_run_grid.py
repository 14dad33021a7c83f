"""A grid, from the command line to table.md."""

import json
import logging
from pathlib import Path

import pytest
from small_grids import write_grid
from small_runs import SMALL_SIZES, as_arguments, logged_error, write_pair_files

from run_glue_style.run_grid import main


@pytest.mark.slow
@pytest.mark.usefixtures("datasets_cache")
def test_a_grid_is_trained_resumed_and_compared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_pair_files(tmp_path, {"train": 100, "validation": 60}, width=8)
    sizes = SMALL_SIZES | {"max_train_steps": 3, "per_device_train_batch_size": 16, "report_to": "none"}
    words = [str(write_grid(tmp_path, ("test.macro_f1", "validation.macro_f1"))), "--row", "base", "static"]
    words += ["--seeds", "0", "--output_dir", str(tmp_path / "runs"), *as_arguments(data | sizes), "--cpu"]
    assert main(words) == 0
    table = capsys.readouterr().out.removesuffix("\n")
    assert table == (tmp_path / "runs" / "table.md").read_text("utf-8")
    found = json.loads((tmp_path / "runs" / "table.json").read_text("utf-8"))["differences"]
    assert [(one["row"], one["metric"]) for one in found] == [
        ("static", "validation.accuracy"),
        ("static", "validation.macro_f1"),
    ]
    assert 0 < found[0]["p_examples"] <= 1
    record = tmp_path / "runs" / "static" / "seed-0.json"
    assert json.loads(record.read_text("utf-8"))["command"][0] == "run_nli.py"

    before = record.stat().st_mtime_ns
    caplog.set_level(logging.INFO)
    assert main(words) == 0  # nothing trains again
    assert record.stat().st_mtime_ns == before
    assert main([*words, "--learning_rate", "0.1"]) == 2
    assert "is a run with other options" in logged_error(caplog)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("snli-dynamics", "There is no grid 'snli-dynamics'. Did you mean 'snli-dynamic'?"),
        ("snli-dynamic --row statik", "has no row 'statik'. Did you mean 'static'?"),
        ("snli-dynamic --output-dir x", "Write --output_dir in place of --output-dir."),
        ("snli-dynamic --seed 3", "Leave out --seed: give --seeds."),
        ("snli-dynamic --rows static", "there is no option '--rows'. Did you mean '--row'?"),
        ("snli-dynamic --hub_model_id org/x", "Leave out --hub_model_id: push a finished run by `dsa push OUTPUT_DIR/"),
        ("snli-dynamic --output_dir=~/runs", "'--output_dir=~/runs' would be in a folder called ~, as a shell"),
        (f"snli-dynamic --output_dir {__file__}", f"{__file__} is a file: give --output_dir a folder."),
        ("snli-dynamic --seeds 1 1", "--seeds must be different numbers, got 1 1."),
    ],
)
def test_mistakes_get_one_sentence(words: str, message: str, caplog: pytest.LogCaptureFixture) -> None:
    assert main(words.split()) == 2
    assert message in logged_error(caplog)


def test_an_option_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["snli-dynamic", "--row", "static", "--row", "r-1"])
    assert "--row" in capsys.readouterr().err


def test_a_split_that_nobody_evaluates_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        "title: A\nscript: run_nli\noptions: {setting: dsa-small-snli}\nbase: {routing_scale: 8}\n"
        "changes:\n  a: {routing_scale: 1}\nmetrics: [valdation.accuracy]\nseeds: [0]\n"
    )
    assert main([str(grid), "--output_dir", str(tmp_path / "runs")]) == 2
    assert "grid.yaml, line 7: 'valdation' is no split that is evaluated" in logged_error(caplog)
