"""The runs of a folder, row by row."""

from pathlib import Path

import pytest
from small_results import write_results

from run_glue_style.reporting.rows import read_rows
from run_glue_style.training.results import read_metric


def test_an_option_that_an_older_record_does_not_know_has_its_default(tmp_path: Path) -> None:
    recipe = {"num_train_epochs": 6.0, "max_train_steps": None}
    write_results(tmp_path, "static", 0, 0.60, recipe=recipe)
    write_results(tmp_path, "static", 1, 0.62, recipe=recipe | {"soft_attention_ratio": 0.0})
    assert [run["seed"] for run in read_rows(tmp_path)["static"]] == [0, 1]
    write_results(tmp_path, "static", 1, 0.62, recipe=recipe | {"soft_attention_ratio": 0.5})
    with pytest.raises(ValueError, match="differ in their recipe"):
        read_rows(tmp_path)
    write_results(tmp_path, "static", 0, 0.60, recipe=recipe, vectors_sha256="a")
    write_results(tmp_path, "static", 1, 0.62, recipe=recipe, vectors_sha256="b")
    with pytest.raises(ValueError, match="differ in their vectors_sha256"):
        read_rows(tmp_path)


def test_the_folder_of_a_run_is_no_row(tmp_path: Path) -> None:
    write_results(tmp_path, "static", 0, 0.60)
    (tmp_path / "static" / "seed-0.json").rename(tmp_path / "static" / "all_results.json")
    with pytest.raises(ValueError, match=r"static is the folder of a run, and not of a row's: `dsa compare` sets such"):
        read_rows(tmp_path)


def test_a_metric_of_a_class_with_a_dot_in_its_name_is_found() -> None:
    assert (
        read_metric({"metrics": {"test": {"per_class": {"sci.med": {"f1": 0.5}}}}}, "test.per_class.sci.med.f1") == 0.5
    )
