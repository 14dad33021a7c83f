"""Options that a model would not read are refused."""

from pathlib import Path
from typing import Any

import pytest

from modeling_dsa import DSAConfig
from run_glue_style.run_nli import read
from run_glue_style.training.recipe import ModelArguments, TrainingRecipe
from run_glue_style.training.unread_options import refuse_unread, refuse_unread_of_recipe


def refuse(folder: Path, stored: dict[str, Any], options: dict[str, Any], **changes: bool) -> None:
    DSAConfig(**stored).save_pretrained(folder)
    refuse_unread(DSAConfig(**(stored | options)), ModelArguments(model_name_or_path=str(folder)), options, **changes)


@pytest.mark.parametrize(
    ("stored", "options", "told"),
    [
        ({"pooling": "static"}, {"routing_scale": 8.0}, "--routing_scale would change nothing: it is read by pooling "),
        ({}, {"encoder": "none", "growth_size": 9}, "'dense_cnn', and not by encoder 'none' with pooling 'dynamic'"),
        ({"normalize_tokens": False}, {"token_norm": 8.0}, "--token_norm would change nothing: it is the length of"),
        ({}, {"pair_features": ["first"]}, "--pair_features .* of pairs of texts, and these examples have one"),
        ({"sentences_per_example": 2}, {"gated_size": 5}, "--gated_size .* of the pair feature 'gated'"),
        ({"classifier_hidden_sizes": []}, {"classifier_batch_norm": False}, "of hidden layers: there is none"),
        ({}, {"unknown_init_range": 0.9}, "--unknown_init_range .* of fresh weights, and these are saved"),
        ({"classifier_batch_norm": False}, {"batch_norm_eps": 1.0}, "--batch_norm_eps .* of the classifier's batch"),
    ],
)
def test_what_changes_nothing_is_refused(
    stored: dict[str, Any], options: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=told):
        refuse(tmp_path, stored, options)


@pytest.mark.parametrize(
    ("options", "has_classifier", "told"),
    [
        ({"plateau_patience": 3}, True, "--plateau_patience would change nothing: it is of --schedule plateau"),
        ({"warmup_ratio": 0.1, "schedule": "plateau"}, True, "--warmup_ratio .* not of --schedule plateau"),
        ({"batch_norm_batches": 8}, False, "--batch_norm_batches .* the classifier's batch normalisation: there is no"),
    ],
)
def test_what_changes_nothing_in_training_is_refused(options: dict[str, Any], has_classifier: bool, told: str) -> None:
    config, recipe = DSAConfig(), TrainingRecipe(**options)
    with pytest.raises(ValueError, match=told):
        refuse_unread_of_recipe(config, recipe, options, has_classifier=has_classifier)
    refuse_unread_of_recipe(config, recipe, (), has_classifier=has_classifier)  # a recipe may say more
    refuse_unread_of_recipe(config, TrainingRecipe(batch_norm_batches=8, warmup_ratio=0.1), {"batch_norm_batches"})


def test_an_encoder_alone_has_no_classifier(tmp_path: Path) -> None:
    options: dict[str, Any] = {"classifier_dropout": 0.5}
    with pytest.raises(ValueError, match=r"--classifier_dropout .* a classifier's, and an encoder is trained alone"):
        refuse(tmp_path, {}, options, has_classifier=False)
    refuse(tmp_path, {}, options)


def test_what_is_read_or_stands_there_already_is_not_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"pooling": "static", "attention_head_size": 300, "routing_scale": 1.0}
    refuse(tmp_path, {}, options | {"kernel_sizes": [3, 5]})


def test_a_recipe_may_say_more_than_a_setting_reads() -> None:
    line = ["--setting", "static-cnn-snli", "--recipe", "modern"]  # it has a routing_scale
    read(line).check()
    with pytest.raises(ValueError, match="--routing_scale would change nothing"):
        read([*line, "--routing_scale", "8"]).check()
