"""The metrics of the training and evaluation scripts: `evaluate.Metric`s that need no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import datasets
import evaluate
import numpy as np
from numpy.typing import NDArray

from modeling_dsa.evaluation.classification import classification_scores
from modeling_dsa.evaluation.similarity import correlate


class ClassificationMetric(evaluate.Metric):  # type: ignore[misc]
    """Accuracy, per-class precision, recall and F1, and the confusion matrix of a single-label classifier.

    `evaluate.load("accuracy")` downloads its code; this class is that code, so it works offline. Rows are kept in
    memory: no cache or lock file is written, and any number of instances and processes can work at once. With
    several processes gather the rows first (`accelerator.gather_for_metrics`).

    Args:
        label_names: the classes in the order of their integer labels.

    Raises:
        ValueError: if `label_names` has fewer than two names or one twice.
    """

    def __init__(self, label_names: Sequence[str]) -> None:
        if len(label_names) < 2 or len(set(label_names)) != len(label_names):
            raise ValueError(f"label_names must be two or more different names, not {list(label_names)}")
        self.label_names = list(label_names)
        super().__init__(keep_in_memory=True)

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="Accuracy, macro F1, per-class scores and confusion matrix.",
            citation="",
            inputs_description="predictions, references: integer labels, 0 to the number of classes - 1.",
            features=datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}),
        )

    def compute(
        self, *, predictions: Sequence[int] | None = None, references: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Score these rows and those added before by `add` or `add_batch`, and forget them.

        Args:
            predictions: (rows,) integer labels.
            references: (rows,) integer labels.

        Returns:
            Plain Python values, ready for JSON: `accuracy`; `macro_f1`, the mean over all classes, also those that
            never occur; `per_class`, `{name: {precision, recall, f1, support}}`, 0 where a score is 0 / 0;
            `confusion_matrix`, counts, one list for each reference class; `majority_accuracy`, the share of the most
            frequent reference class.

        Raises:
            ValueError: if there are no rows, a label is out of range or the lengths differ.
        """
        if self.writer is None and predictions is None and references is None:
            predictions = references = []  # evaluate 0.4.6 would fail with an AttributeError
        scores: dict[str, Any] = super().compute(predictions=predictions, references=references)
        return scores

    def _compute(self, *, predictions: Sequence[int], references: Sequence[int]) -> dict[str, Any]:
        predicted, gold = np.asarray(predictions), np.asarray(references)  # (rows,)
        if not len(gold):
            raise ValueError("there is nothing to score: no predictions and references were added")
        for what, labels in (("predictions", predicted), ("references", gold)):
            outside = np.flatnonzero((labels < 0) | (labels >= len(self.label_names)))
            if len(outside):
                raise ValueError(
                    f"{what}[{outside[0]}] is {labels[outside[0]]}, but the {len(self.label_names)} classes "
                    f"{self.label_names} have the labels 0 to {len(self.label_names) - 1}"
                )
        return classification_scores(gold, predicted, self.label_names)


@runtime_checkable
class MeanOfExamples(Protocol):
    """A metric that is the mean of a score of each example, so that two runs can be compared example by example."""

    def example_scores(self, predictions: NDArray[Any], references: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """From (rows,) integer labels both to the scores of rows by the name of their mean. (rows,)"""


class Score(evaluate.Metric):  # type: ignore[misc]
    """One number that scikit-learn computes from the labels of a classifier, to be combined with other metrics.

    Args:
        name: The number's name.
        function: From references and predictions to the number, such as `sklearn.metrics.matthews_corrcoef`.
    """

    def __init__(self, name: str, function: Callable[..., float]) -> None:
        self.score, self.function = name, function
        super().__init__(keep_in_memory=True)

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=f"The {self.score} of a classifier.",
            citation="",
            inputs_description="predictions, references: integer labels.",
            features=datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}),
        )

    def _compute(self, *, predictions: Sequence[int], references: Sequence[int]) -> dict[str, float]:
        return {self.score: float(self.function(references, predictions))}


class RegressionMetric(evaluate.Metric):  # type: ignore[misc]
    """How well predicted numbers follow the true ones: correlations, and the mean absolute error."""

    def __init__(self) -> None:
        super().__init__(keep_in_memory=True)

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="Pearson's and Spearman's correlation and the mean absolute error.",
            citation="",
            inputs_description="predictions, references: numbers.",
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("float64")}
            ),
        )

    def _compute(self, *, predictions: Sequence[float], references: Sequence[float]) -> dict[str, float]:
        """Score examples.

        Returns:
            `pearson` and `spearman`, 0 where one side is constant and there is no correlation;
            `mean_absolute_error`, in the labels' unit; `constant_absolute_error`, that of always giving the median of
            the references, which no other constant undercuts.
        """
        predicted, gold = np.asarray(predictions, float), np.asarray(references, float)  # (examples,)
        correlations = correlate(predicted, gold)
        return {
            "pearson": correlations.pearson,
            "spearman": correlations.spearman,
            "mean_absolute_error": float(np.abs(predicted - gold).mean()),
            "constant_absolute_error": float(np.abs(np.median(gold) - gold).mean()),
        }
