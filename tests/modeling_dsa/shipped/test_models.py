"""Models that ship, by name."""

from pathlib import Path

import pytest

from modeling_dsa.shipped.files import MODEL_CARDS
from modeling_dsa.shipped.models import model_source
from run_glue_style.training.recipe import ModelArguments


def test_a_model_that_ships_is_found_by_its_name_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = ModelArguments(model_name_or_path="dsa-mini-en").model_name_or_path
    assert found is not None
    assert Path(found).samefile(MODEL_CARDS / "dsa-mini-en")
    for name in ("nothing", "org/dsa-mini-en", "cards", "..", str(tmp_path), "a" * 500):
        assert model_source(name) == name
    (tmp_path / "dsa-mini-en").mkdir()  # the user's own comes first
    assert model_source("dsa-mini-en") == "dsa-mini-en"
