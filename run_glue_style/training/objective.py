"""What a run minimises, and how its evaluations are scored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from .training_batches import Batch, model_inputs

Metrics: TypeAlias = dict[str, Any]
ExampleScores: TypeAlias = dict[str, NDArray[Any]]
ComputeMetrics: TypeAlias = Callable[[np.ndarray, np.ndarray], Metrics]
ComputeExampleScores: TypeAlias = Callable[[np.ndarray, np.ndarray], ExampleScores]

PREDICTION = "prediction"  # the class of each example, among its scores


class Objective(Protocol):
    """All that the trainer knows of its task."""

    @property
    def metric_for_best_model(self) -> str:
        """The metric that chooses the best weights; more is better."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over the examples of a training batch, `labels` among its tensors. ()"""

    def predictions(self, model: nn.Module, inputs: Batch) -> Tensor:
        """What the model says of examples without their labels; it is gathered from all processes. (batch, ...)"""

    def metrics(self, predictions: Tensor, labels: Tensor) -> Metrics:
        """Scores of a whole split from (examples, ...) both: plain Python values, a float `loss` among them."""

    def example_scores(self, predictions: Tensor, labels: Tensor) -> ExampleScores:
        """What the metrics of a split say of each example. (examples,)

        Returns:
            By the name of a metric whose mean over the examples it is; of classes also what was predicted, as
            `prediction`.
        """

    def finish(self, model: nn.Module) -> None:
        """Let a trained model give the predictions by itself: called once, on what is saved."""


# Figures of the data alone, and the loss, of which less is better.
_OF_NO_MODEL = ("loss", "majority_accuracy", "fnc_max")


@dataclass(frozen=True)
class Classification:
    """Cross-entropy, and what else a classifier adds to its loss.

    Where a batch has `log_class_shares` (batch, classes), they are added to the logits of the cross-entropy, and the
    model learns as if all classes were as frequent.

    Attributes:
        compute: From predicted classes and references, (examples,) both, to metrics.
        metric_for_best_model: As in `Objective`.
        label_smoothing: Share of the target that is spread over all classes.
        class_points: What an example of each class is worth, where they differ: the model learns as if the classes were
            as much more frequent. Its first choice is the class whose probability times points is the highest, which is
            the one with the most points to be expected where no answer but the right one has any.
        compute_examples: From the same as `compute` to scores of examples whose means are metrics, beside accuracy.
    """

    compute: ComputeMetrics
    metric_for_best_model: str
    label_smoothing: float = 0.0
    class_points: tuple[float, ...] | None = None
    compute_examples: ComputeExampleScores | None = None

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """As in `Objective`. ()"""
        outputs = model(**model_inputs(batch), labels=batch["labels"])
        loss: Tensor = outputs.loss
        log_shares = batch.get("log_class_shares")  # (batch, classes)
        if self.label_smoothing or log_shares is not None or self.class_points is not None:
            # A loss of several terms, such as a KL divergence beside it, holds its cross-entropy under another name.
            cross_entropy = outputs.get("reconstruction_loss", loss)
            # Menon et al. 2021, equation 10: what the classes' shares explain, the logits need not.
            logits = outputs.logits if log_shares is None else outputs.logits + log_shares
            if self.class_points is not None:  # the same in the other direction
                logits = logits - logits.new_tensor(self.class_points).log()
            own = F.cross_entropy(logits, batch["labels"], label_smoothing=self.label_smoothing)
            loss = loss - cross_entropy + own
        return loss

    def predictions(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Logits. (batch, classes)"""
        logits: Tensor = model(**inputs).logits
        return logits.float()

    def metrics(self, predictions: Tensor, labels: Tensor) -> Metrics:
        """As in `Objective`; from (examples, classes) and (examples,)."""
        loss = F.cross_entropy(predictions, labels).item()
        return {"loss": loss, **self.compute(predictions.argmax(-1).numpy(), labels.numpy())}

    def example_scores(self, predictions: Tensor, labels: Tensor) -> ExampleScores:
        """As in `Objective`: whether the predicted class is the label, other metrics' shares, and which class it is."""
        predicted = predictions.argmax(-1)
        both = predicted.numpy(), labels.numpy()
        others = {} if self.compute_examples is None else self.compute_examples(*both)
        return {"accuracy": (predicted == labels).numpy(), **others, PREDICTION: predicted.to(torch.int16).numpy()}

    def finish(self, model: nn.Module) -> None:
        """Logits are what is saved."""


@dataclass(frozen=True)
class Regression:
    """The squared error of one number an example.

    Attributes:
        compute: From predicted numbers and references, (examples,) both, to metrics.
        metric_for_best_model: As in `Objective`.
        center: What the head's output of 0 stands for while it is trained; the mean label, so that labels of any size
            can be learnt.
        scale: What its output of 1 is more than that; the labels' standard deviation.
    """

    compute: ComputeMetrics
    metric_for_best_model: str
    center: float = 0.0
    scale: float = 1.0

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """As in `Objective`. ()"""
        loss: Tensor = model(**{**batch, "labels": (batch["labels"] - self.center) / self.scale}).loss
        return loss

    def predictions(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Predicted numbers. (batch,)"""
        logits: Tensor = model(**inputs).logits  # (batch, 1)
        return logits.squeeze(-1).float() * self.scale + self.center

    def metrics(self, predictions: Tensor, labels: Tensor) -> Metrics:
        """As in `Objective`; from (examples,) both."""
        loss = F.mse_loss(predictions, labels).item()
        return {"loss": loss, **self.compute(predictions.numpy(), labels.numpy())}

    def example_scores(self, predictions: Tensor, labels: Tensor) -> ExampleScores:
        """As in `Objective`: the absolute error."""
        return {"mean_absolute_error": (predictions - labels).abs().numpy()}

    @torch.no_grad()
    def start(self, model: nn.Module, is_fresh: bool) -> None:
        """Take center and scale out of the last layer; a fresh one first says the mean label of every example."""
        last = last_layer(model)
        if is_fresh:  # the outputs of a drawn one vary as much as the labels, and a short run does not unlearn them
            last.weight.zero_()
            last.bias.zero_()
        else:
            last.weight.div_(self.scale)
            last.bias.sub_(self.center).div_(self.scale)

    @torch.no_grad()
    def finish(self, model: nn.Module) -> None:
        """Put center and scale into the last layer."""
        last = last_layer(model)
        last.weight.mul_(self.scale)
        last.bias.mul_(self.scale).add_(self.center)


def last_layer(model: nn.Module) -> nn.Linear:
    """What gives a classifier's logits, or a regression's number."""
    return cast(nn.Linear, cast(nn.Sequential, model.get_submodule("classifier"))[-1])


def metric_value(metrics: Metrics, name: str) -> float:
    """The metric of this name, as one that can choose the best weights.

    Raises:
        ValueError: There is none, or it is no single number of which more is better.
    """
    names = [
        key
        for key, value in metrics.items()
        if isinstance(value, float) and key not in _OF_NO_MODEL and not key.endswith("error")
    ]
    if name not in names:
        raise ValueError(f"There is no metric '{name}' to choose the best weights by: give one of {', '.join(names)}.")
    return float(metrics[name])
