"""modeling_dsa.files.model_folder: models of this family are told from all else by their config alone."""

import json
from pathlib import Path

import pytest
from small_encoders import save_encoder, small_encoder
from small_models import small_config

from modeling_dsa import DSAForSequenceClassification, DSAModel
from modeling_dsa.files.loading import load_model
from modeling_dsa.files.model_folder import read_config


def test_the_config_is_read_from_a_folder_or_its_file(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model", num_attention_heads=2)
    assert read_config(folder) == read_config(str(folder / "config.json"))
    assert read_config(folder)["num_attention_heads"] == 2


def test_a_model_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    for model in (small_encoder().model, DSAForSequenceClassification(small_config())):
        model.save_pretrained(tmp_path)
        assert type(load_model(tmp_path)) is type(model)
        assert model.config.is_classifier == (type(model) is not DSAModel)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (json.dumps({"model_type": "bert"}), "is a model of type 'bert': give one of type 'dsa'"),
        ("[]", "is a model of type None"),
        ("{", "config.json is not JSON .*: give the folder or Hub id of a saved model"),
    ],
)
def test_other_models_are_refused(content: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=error):
        read_config(tmp_path)


def test_what_holds_no_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match=r"has no config\.json: give the folder of a saved model"):
        read_config(tmp_path)
    with pytest.raises(FileNotFoundError, match="nobody is no folder here and no id of the Hub, such as org/nobody"):
        read_config("nobody")
    for name in ("nobody/nothing", "no name/at all/"):
        with pytest.raises(FileNotFoundError, match=f"{name} is no folder here, and on the Hub its config.json cannot"):
            read_config(name)
