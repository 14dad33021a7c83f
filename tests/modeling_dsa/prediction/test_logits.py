"""modeling_dsa.prediction.logits: probabilities as transformers' own pipeline makes them."""

from typing import Any

import numpy as np
import pytest
import torch

from modeling_dsa import DSAConfig
from modeling_dsa.prediction.logits import logits_to_scores, score_function


@pytest.mark.parametrize(
    ("problem_type", "num_labels", "expected"),
    [
        (None, 1, "sigmoid"),
        (None, 3, "softmax"),
        ("single_label_classification", 2, "softmax"),
        ("multi_label_classification", 3, "sigmoid"),
        ("regression", 1, "none"),
    ],
)
def test_scores_are_made_as_the_pipeline_makes_them(problem_type: str | None, num_labels: int, expected: str) -> None:
    fields: dict[str, Any] = {"problem_type": problem_type, "num_labels": num_labels}
    assert score_function(DSAConfig(**fields)) == expected


def test_scores_are_those_of_torch_and_large_logits_do_not_overflow() -> None:
    logits = torch.tensor([[1000.0, -1000.0, 999.0], [0.5, -0.25, 3.0]])
    expected = {"softmax": logits.softmax(-1), "sigmoid": logits.sigmoid(), "none": logits}
    with np.errstate(invalid="raise"):
        for function, scores in expected.items():
            found = logits_to_scores(logits.numpy(), function)  # type: ignore[arg-type]
            np.testing.assert_allclose(found, scores.numpy(), rtol=1e-6)
