"""Probabilities of a finished classifier that are as high as it is right, fitted on examples that it has not learnt."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from .objective import last_layer

_ITERATIONS = 200


def require_all_classes(labels: NDArray[np.int64], class_names: Sequence[str], split: str) -> None:
    """Refuse a split on which no bias of each class can be fitted.

    Args:
        labels: Of its examples. (examples,)
        class_names: Of all classes.
        split: What the split is called.

    Raises:
        ValueError: It has no example of a class.
    """
    missing = sorted(set(range(len(class_names))) - set(labels.tolist()))
    if missing:
        raise ValueError(
            f"--calibrate true fits each class on the {split} split, which has no {class_names[missing[0]]!r}: leave "
            "it out, or validate on examples of all classes."
        )


def calibrate(model: nn.Module, logits: Tensor, labels: Tensor) -> dict[str, float | list[float]]:
    """Multiply a classifier's logits by a number and add one for each class: bias-corrected temperature scaling.

    Alexandari et al., "Maximum Likelihood with Bias-Corrected Calibration is Hard-To-Beat at Label Shift
    Adaptation" (2020): softmax(logits / T + b), by maximum likelihood, with standard normal priors of log T and b,
    which say nothing beside many examples and keep both finite where all examples are right. The last layer takes them
    in, so the model stays one.

    Args:
        model: A classifier; changed in place.
        logits: What it says of the examples. (examples, classes)
        labels: Theirs. (examples,)

    Returns:
        `temperature`, T, and `biases`, b, whose mean is 0.
    """
    # Copies: no gradient goes through tensors of torch.inference_mode.
    scores, classes = logits.to(torch.float64, copy=True), labels.to(torch.int64, copy=True)
    log_scale = torch.zeros((), dtype=torch.float64, requires_grad=True)  # -log T
    biases = torch.zeros(scores.shape[1], dtype=torch.float64, requires_grad=True)  # (classes,)
    optimizer = torch.optim.LBFGS([log_scale, biases], max_iter=_ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        prior = (log_scale.square() + biases.square().sum()) / (2 * len(scores))
        loss = F.cross_entropy(scores * log_scale.exp() + biases, classes) + prior
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        scale, shift = log_scale.exp(), biases - biases.mean()
        last = last_layer(model)
        last.weight.mul_(scale.to(last.weight))
        last.bias.mul_(scale.to(last.bias)).add_(shift.to(last.bias))
    return {"temperature": float(1 / scale), "biases": shift.tolist()}
