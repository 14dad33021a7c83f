"""The papers' tables."""

import importlib.util

import pytest

from modeling_dsa.shipped.files import CONFIGURATION
from modeling_dsa.shipped.settings import setting_names
from run_glue_style.reporting.published import read_published

NAMES = sorted(path.stem for path in (CONFIGURATION / "tables").glob("*.yaml"))


def test_there_is_a_table_for_each_task() -> None:
    assert NAMES == ["fnc1", "snli", "sst"]


@pytest.mark.parametrize("name", NAMES)
def test_every_system_is_a_setting_and_the_script_exists(name: str) -> None:
    table = read_published(name)
    assert set(table.parts_of_settings()) <= set(setting_names())
    assert importlib.util.find_spec(f"run_glue_style.{table.script}")


@pytest.mark.parametrize("name", NAMES)
def test_published_figures_stand_in_columns_of_parts(name: str) -> None:
    table = read_published(name)
    assert {column.part for column in table.columns.values()} == set(table.parts)
    for system in table.systems.values():
        assert set(system.published) <= set(table.columns)
        assert all(0 < figure < 100 for figure in system.published.values())
        assert bool(system.published) == bool(system.called)


def test_settings_of_a_table_with_two_parts() -> None:
    parts = read_published("sst").parts_of_settings()
    assert list(parts)[:4] == ["bilstm-sst2", "bilstm-sst5", "kim-cnn-sst2", "kim-cnn-sst5"]
    assert parts["kim-cnn-sst5"] == "sst5"


def test_figures_of_the_papers() -> None:
    assert read_published("snli").systems["dsa-single"].published == {"test accuracy": 86.8, "train accuracy": 87.3}
    assert read_published("sst").systems["kim-cnn"].published == {"SST-2 accuracy": 87.2, "SST-5 accuracy": 48.0}
    assert read_published("fnc1").systems["vsam"].published == {
        "accuracy": 83.54,
        "agree recall": 28.53,
        "disagree recall": 10.43,
        "discuss recall": 65.43,
        "unrelated recall": 82.43,
    }
