"""A classifier's logits as scores, without torch."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from modeling_dsa.batching_dsa import softmax

if TYPE_CHECKING:
    from modeling_dsa.configuration_dsa import DSAConfig

ScoreFunction: TypeAlias = Literal["softmax", "sigmoid", "none"]


def score_function(config: "DSAConfig") -> ScoreFunction:
    """How a classifier's logits become scores, as in transformers' text-classification pipeline."""
    if config.problem_type == "regression":
        return "none"
    several = config.problem_type == "multi_label_classification"
    return "sigmoid" if several or len(config.class_names) == 1 else "softmax"


def logits_to_scores(logits: npt.NDArray[Any], function: ScoreFunction) -> npt.NDArray[Any]:
    """Probabilities, or with "none" the numbers of a regression. (..., num_labels) -> the same"""
    if function == "softmax":
        return softmax(logits)
    if function == "sigmoid":
        with np.errstate(over="ignore"):  # exp(100) is as good as infinity here
            probabilities: npt.NDArray[Any] = 1 / (1 + np.exp(-logits))
        return probabilities
    return logits
