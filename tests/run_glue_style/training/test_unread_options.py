"""Options that a model would not read are refused, and the same run is known without them."""

from typing import Any

import pytest

from modeling_dsa import DSAConfig
from run_glue_style.training.unread_options import refuse_unread


@pytest.mark.parametrize(
    ("stored", "options", "told"),
    [
        ({"pooling": "static"}, {"routing_scale": 8.0}, "--routing_scale would change nothing: it is read by pooling "),
        ({}, {"encoder": "none", "growth_size": 9}, "'dense_cnn', and not by encoder 'none' with pooling 'dynamic'"),
        ({"normalize_tokens": False}, {"token_norm": 8.0}, "--token_norm would change nothing: it is the length of"),
        ({}, {"pair_features": ["first"]}, "--pair_features .* of pairs of texts, and these examples have one"),
        ({"sentences_per_example": 2}, {"gated_size": 5}, "--gated_size .* of the pair feature 'gated'"),
        ({"classifier_hidden_sizes": []}, {"classifier_batch_norm": False}, "of hidden layers: there is none"),
        ({"classifier_batch_norm": False}, {"batch_norm_eps": 1.0}, "--batch_norm_eps .* of the classifier's batch"),
    ],
)
def test_what_changes_nothing_is_refused(stored: dict[str, Any], options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        refuse_unread(DSAConfig(**(stored | options)), DSAConfig(**stored), options)


def test_an_encoder_alone_has_no_classifier() -> None:
    options: dict[str, Any] = {"classifier_dropout": 0.5}
    with pytest.raises(ValueError, match=r"--classifier_dropout .* a classifier's, and an encoder is trained alone"):
        refuse_unread(DSAConfig(**options), DSAConfig(), options, has_classifier=False)
    refuse_unread(DSAConfig(**options), DSAConfig(), options)


def test_what_is_read_or_stands_there_already_is_not_refused() -> None:
    options: dict[str, Any] = {
        "pooling": "static",
        "attention_head_size": 300,
        "routing_scale": 1.0,
        "kernel_sizes": [3, 5],
    }
    refuse_unread(DSAConfig(**options), DSAConfig(), options)
