"""modeling_dsa.configuration_dsa: defaults, checks, messages, files."""

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, PreTrainedConfig

from modeling_dsa import DSAConfig
from modeling_dsa.config_fields_dsa import DSAConfigFields
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.options_dsa import option_help
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.systems_dsa import Encoder, Pooling

# Fields of every config of transformers, of which some have another default here.
INHERITED = {field.name for field in dataclasses.fields(PreTrainedConfig)} | {
    "pad_token_id",
    "sep_token_id",
    "tie_word_embeddings",
}


def test_the_defaults_are_single_dsa_on_snli() -> None:
    config = DSAConfig()
    assert (config.embedding_size, config.embedding_dropout, config.unknown_init_range) == (300, 0.3, 0.005)
    assert (list(config.kernel_sizes), config.num_hidden_layers, config.hidden_dropout) == ([3, 5], 4, 0.2)
    assert (config.first_layer_size, config.growth_size, config.hidden_size) == (150, 75, 300)
    assert (config.pooling, config.num_attention_heads, config.attention_head_size) == ("dynamic", 1, 600)
    assert (config.routing_iterations, config.routing_scale, config.token_norm) == (2, 1.0, 1.0)
    assert config.attention_hidden_size == 600  # of pooling "static"
    assert (list(config.classifier_hidden_sizes), config.classifier_dropout) == ([300, 300], 0.3)
    assert config.freeze_embeddings
    assert config.normalize_tokens


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({name: 0}, f"{name} must be at least 1, got 0.")
            for name in (
                "vocab_size",
                "embedding_size",
                "hidden_size",
                "num_hidden_layers",
                "first_layer_size",
                "growth_size",
                "num_attention_heads",
                "attention_head_size",
                "routing_iterations",
                "attention_hidden_size",
                "latent_size",
                "num_training_samples",
            )
        ),
        *(
            ({name: rate}, f"{name} must lie in [0, 1), got {rate}.")
            for name in ("embedding_dropout", "hidden_dropout", "classifier_dropout")
            for rate in (1.0, -0.1)
        ),
        ({"unknown_init_range": -0.5}, "unknown_init_range must be a finite number of at least 0, got -0.5."),
        ({"attention_penalty": -0.1}, "attention_penalty must be a finite number of at least 0, got -0.1."),
        ({"kl_weight": -1.0}, "kl_weight must be a finite number of at least 0, got -1.0."),
        ({"kl_weight": float("inf")}, "kl_weight must be a finite number of at least 0, got inf."),
        ({"kl_warmup_steps": -1}, "kl_warmup_steps must be a finite number of at least 0, got -1."),
        ({"num_prediction_samples": -1}, "num_prediction_samples must be a finite number of at least 0, got -1."),
        *(
            ({name: value}, f"{name} must be a number greater than 0, got {value}.")
            for name, value in (("token_norm", 0.0), ("token_norm", -1.0), ("batch_norm_eps", -1.0))
        ),
        ({"routing_scale": float("nan")}, "routing_scale must be a finite number, got nan."),
        ({"max_sentence_tokens": 0}, "max_sentence_tokens must be at least 1, or none, got 0."),
        ({"projection_size": 0}, "projection_size must be at least 1, or none, got 0."),
        (
            {"word_shortcut": True},
            "word_shortcut adds to the projected sentence vector: set projection_size, its width.",
        ),
        ({"classifier_hidden_sizes": [300, 0]}, "classifier_hidden_sizes must be positive, got [300, 0]."),
        ({"kernel_sizes": [3, 4]}, "kernel_sizes must be one or more odd numbers, got [3, 4]."),
        ({"kernel_sizes": []}, "kernel_sizes must be one or more odd numbers, got []."),
        ({"kernel_sizes": [-1]}, "kernel_sizes must be one or more odd numbers, got [-1]."),
        (
            {"pair_features": ["first", "cosinus"]},
            "pair_features must be some of first, second, difference, signed_difference, product, cosine, gated, "
            "overlap, idf_overlap, got 'cosinus'.",
        ),
        (
            {"pair_features": []},
            "pair_features must be some of first, second, difference, signed_difference, product, cosine, gated, "
            "overlap, idf_overlap, got none.",
        ),
        (
            {"pair_features": ["overlap", "idf_overlap"]},
            "pair_features overlap and idf_overlap compare the same tokens: name one of them.",
        ),
        (
            {"pair_features": ["gated"], "projection_size": 5},
            "pair_features 'gated' reads each head's part of a vector, which a projection mixes.",
        ),
        ({"encoder": "kim_cnn", "kernel_sizes": []}, "kernel_sizes must be one or more numbers from 1, got []."),
        (
            {"encoder": "kim_cnn", "kernel_sizes": [3, 0]},
            "kernel_sizes must be one or more numbers from 1, got [3, 0].",
        ),
        (
            {"encoder": "kim_cnn", "kernel_sizes": [3, 4, 5], "hidden_size": 100},
            "hidden_size is shared out over the 3 kernel_sizes of encoder 'kim_cnn', and 100 cannot be.",
        ),
        (
            {"encoder": "bilstm", "hidden_size": 301},
            "hidden_size is both directions of encoder 'bilstm' and even, got 301.",
        ),
        (
            {"encoder": "distance", "encoder_attention_heads": 7},
            "hidden_size is shared out over 7 encoder_attention_heads in each of two directions of encoder 'distance', "
            "and 300 cannot be.",
        ),
        (
            {"pooling": "last"},
            "pooling 'last' takes the last states of a recurrent encoder, such as 'bilstm'; encoder 'dense_cnn' has no "
            "states.",
        ),
        *(
            (
                {"pooling": pooling, "encoder": "bilstm", "num_attention_heads": 2},
                f"pooling '{pooling}' has no attention heads: leave num_attention_heads at 1, got 2.",
            )
            for pooling in ("mean", "max", "last", "multi_dimensional_max")
        ),
        *(
            (
                {"pooling": pooling, "latent": "sentence"},
                "latent 'sentence' has one weight a position: set max_sentence_tokens, the longest length.",
            )
            for pooling in ("pairwise", "variational")
        ),
        *(
            (
                {"pooling": "variational", "problem_type": problem},
                "pooling 'variational' has a posterior that reads one class an example; "
                f"problem_type '{problem}' has none.",
            )
            for problem in ("regression", "multi_label_classification")
        ),
        (
            {"pooling": "variational", "num_labels": 1},
            "pooling 'variational' has a posterior that reads one class an example: num_labels must be at least 2, "
            "got 1.",
        ),
        (
            {"encoder": "bilstm", "fold_embeddings": True},
            "fold_embeddings: encoder 'bilstm' cannot be folded; leave it at false.",
        ),
        ({"latent": "words"}, "'latent' expected one of ('token', 'sentence'), got words"),
        (
            {"pooling": "median"},
            f"'pooling' expected one of {tuple(POOLINGS)}, got median",
        ),
        (
            {"encoder": "lstm"},
            f"'encoder' expected one of {tuple(ENCODERS)}, got lstm",
        ),
        ({"sentences_per_example": 3}, "'sentences_per_example' expected one of (1, 2), got 3"),
        ({"initializer_scaling": "he"}, "'initializer_scaling' expected one of"),
        ({"hidden_size": "300"}, "'hidden_size' expected int, got str (value: '300')"),
        ({"num_labels": 0}, "id2label must have the keys 0, 1, 2 and so on."),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_and_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StrictDataclassError) as error:
        DSAConfig(**changes)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder": "kim_cnn", "kernel_sizes": [2, 4]},  # even kernels have their place there
        {"encoder": "bilstm", "kernel_sizes": [2]},  # not read
        {"encoder": "none", "hidden_size": 301},
        {"latent": "sentence"},  # no pooling reads it
        {"pooling": "variational", "latent": "sentence", "max_sentence_tokens": 50, "num_attention_heads": 2},
        {"pooling": "variational", "problem_type": "single_label_classification"},
        {"pooling": "structured", "problem_type": "regression", "num_attention_heads": 30},
        {"pooling": "last", "encoder": "bilstm"},
    ],
    ids=str,
)
def test_what_fits_together_is_taken(changes: dict[str, Any]) -> None:
    config = DSAConfig(**changes)
    assert {name: getattr(config, name) for name in changes} == changes


@pytest.mark.parametrize(
    ("changes", "encoded", "sentence"),
    [
        ({"pooling": "mean", "encoder": "none", "embedding_size": 50}, 50, 50),
        ({"pooling": "max", "encoder": "kim_cnn", "hidden_size": 40}, 40, 40),
        ({"pooling": "last", "encoder": "bilstm", "hidden_size": 40}, 40, 40),
        ({"pooling": "structured", "num_attention_heads": 30}, 300, 9000),
        ({"pooling": "variational", "num_attention_heads": 2}, 300, 600),
        ({"pooling": "static", "encoder": "none", "embedding_size": 50}, 50, 600),
        ({"pooling": "static", "num_attention_heads": 8, "attention_head_size": 300}, 300, 2400),
        ({}, 300, 600),
        ({"num_attention_heads": 8, "attention_head_size": 300}, 300, 2400),
        ({"num_attention_heads": 8, "projection_size": 384}, 300, 384),
    ],
    ids=str,
)
def test_the_width_of_a_sentence_vector_is_the_poolings_or_the_projections(
    changes: dict[str, Any], encoded: int, sentence: int
) -> None:
    config = DSAConfig(**changes)
    assert (config.encoded_size, config.sentence_embedding_size) == (encoded, sentence)
    assert config.projection_dim == sentence


@pytest.mark.parametrize("kind", [*ENCODERS.values(), *POOLINGS.values()])
def test_every_system_says_what_it_is_for_the_card(kind: type[Encoder] | type[Pooling]) -> None:
    assert kind.description


def test_every_field_has_its_help_in_the_docstring() -> None:
    texts = option_help(DSAConfig)
    assert texts["embedding_size"] == "Width of a word vector [d_0]."
    assert set(texts) == {field.name for field in dataclasses.fields(DSAConfigFields)} - INHERITED
    assert all(f"        {name}: {text}\n" in (DSAConfig.__doc__ or "") for name, text in texts.items())


@pytest.mark.parametrize("name", ["embedding_dropout", "hidden_dropout", "classifier_dropout", "routing_scale"])
def test_a_whole_number_is_a_rate_or_a_scale_too(name: str) -> None:
    """`hidden_dropout: 0` in a JSON or YAML file, as in the configs of transformers' own models."""
    changes: dict[str, Any] = {name: 0}
    assert getattr(DSAConfig(**changes), name) == 0


def test_a_wrong_value_is_refused_when_saving(tmp_path: Path) -> None:
    config = DSAConfig()
    config.hidden_size = 0
    with pytest.raises(StrictDataclassError, match="hidden_size must be at least 1, got 0"):
        config.save_pretrained(tmp_path)
    assert not (tmp_path / "config.json").exists()


@pytest.mark.parametrize(
    ("wrong", "right"), [("num_hidden_layer", "num_hidden_layers"), ("kernel_size", "kernel_sizes")]
)
def test_a_misspelt_key_is_kept_with_a_warning(wrong: str, right: str, caplog: pytest.LogCaptureFixture) -> None:
    changes: dict[str, Any] = {wrong: 7}
    config = DSAConfig(**changes)
    assert getattr(config, wrong) == 7
    assert getattr(config, right) == getattr(DSAConfig(), right)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"DSAConfig has no field '{wrong}'; did you mean '{right}'? It is kept but not used.")
    ]


def test_a_saved_config_comes_back_equal_and_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes: dict[str, Any] = {"vocab_size": 77, "kernel_sizes": (1, 3), "routing_scale": 2.5, "num_labels": 5}
    DSAConfig(**changes).save_pretrained(tmp_path)
    for loaded in (DSAConfig.from_pretrained(tmp_path), AutoConfig.from_pretrained(tmp_path)):
        assert type(loaded) is DSAConfig
        assert {name: getattr(loaded, name) for name in changes} == changes | {"kernel_sizes": [1, 3]}
        loaded.save_pretrained(tmp_path / "again")
        assert (tmp_path / "again/config.json").read_text() == (tmp_path / "config.json").read_text()
    assert not caplog.records


@pytest.mark.parametrize("given", [{"id2label": {0: "no", 1: "yes"}}, {"label2id": {"no": 0, "yes": 1}}], ids=str)
def test_either_map_of_classes_is_enough(given: dict[str, Any], tmp_path: Path) -> None:
    saved = DSAConfig(id2label={0: "a", 1: "b", 2: "c"}, problem_type="single_label_classification")
    saved.save_pretrained(tmp_path)
    for config in (DSAConfig(**given), DSAConfig.from_pretrained(tmp_path, **given)):
        assert (config.id2label, config.label2id) == ({0: "no", 1: "yes"}, {"no": 0, "yes": 1})


@pytest.mark.parametrize("given", [{"num_labels": 2}, {"label2id": {"no": 0, "yes": 1}}], ids=str)
def test_the_problem_of_other_labels_is_not_kept(given: dict[str, Any], tmp_path: Path) -> None:
    DSAConfig(id2label={0: "stars"}, problem_type="regression").save_pretrained(tmp_path)
    assert DSAConfig.from_pretrained(tmp_path, **given).problem_type is None
    assert DSAConfig.from_pretrained(tmp_path, num_labels=1).problem_type == "regression"
    saved = {"label2id": {"a": 0, "b": 1, "c": 2}, "problem_type": "multi_label_classification"}
    assert DSAConfig.from_dict(saved, num_labels=3).problem_type == "multi_label_classification"


@pytest.mark.parametrize("given", [{"num_labels": 1}, {"id2label": {0: "stars"}}], ids=str)
def test_a_saved_classifier_becomes_a_regression(given: dict[str, Any], tmp_path: Path) -> None:
    DSAConfig(problem_type="single_label_classification").save_pretrained(tmp_path)
    config = DSAConfig.from_pretrained(tmp_path, problem_type="regression", **given)
    assert (config.num_labels, config.problem_type) == (1, "regression")
