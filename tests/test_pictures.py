"""docs/pictures.py: one command draws every picture, from the files that ship."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from matplotlib.image import imread

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def command() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_draws_every_picture_of_the_repository(command: ModuleType) -> None:
    folders = ("docs/pages", "results", "benchmarks", "model_cards")
    shipped = {path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix in (".png", ".svg")}
    assert set(command.pictures()) == shipped


@pytest.mark.parametrize("name", ["dsa-mini-en/evaluation", "dsa-snli/faithfulness"])
def test_a_shipped_picture_is_that_of_its_figures(command: ModuleType, name: str, tmp_path: Path) -> None:
    shipped = ROOT / "model_cards" / f"{name}.json"
    shutil.copyfile(shipped, tmp_path / shipped.name)
    command.draw_measured(tmp_path)
    drawn, expected = imread(tmp_path / f"{shipped.stem}.png"), imread(shipped.with_suffix(".png"))
    assert drawn.shape == expected.shape
    assert np.abs(drawn - expected).mean() < 0.005  # shares of white; other versions may smooth edges otherwise
