"""Stands in for three modules that transformers' tests import and that its source distribution lacks."""

from typing import Any

# utils/test_configuration_utils.py: what every config takes; no value is the default.
config_common_kwargs: dict[str, Any] = {
    "architectures": ["DSAModel"],
    "chunk_size_feed_forward": 5,
    "dtype": "float16",
    "id2label": {0: "no", 1: "yes"},
    "is_encoder_decoder": True,
    "label2id": {"no": 0, "yes": 1},
    "output_attentions": True,
    "output_hidden_states": True,
    "problem_type": "regression",
    "return_dict": False,
}


class ExportTesterMixin:
    """exporters/test_export.py: tests of transformers' exporters. `ModelTesterMixin` is made from it."""


class GenerationTesterMixin:
    """generation/test_utils.py: tests of `generate`. A tester of models that generate must be made from it."""
