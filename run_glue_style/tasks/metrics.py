"""The metrics of the training and evaluation scripts: `evaluate.Metric`s that need no network."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import datasets
import evaluate
import numpy as np
from numpy.typing import NDArray

from modeling_dsa.evaluation.classification import classification_metrics
from modeling_dsa.evaluation.similarity import correlate


class OfflineMetric(evaluate.Metric):  # type: ignore[misc]
    """A metric of predictions and references, one of each for an example, that needs no network and writes no file.

    `evaluate.load("accuracy")` downloads its code. Rows are kept in memory: no cache or lock file is written, and any
    number of instances and processes can work at once. With several processes gather the rows first
    (`accelerator.gather_for_metrics`).

    Attributes:
        dtype: Type of predictions and references. `int64` is that of labels, 0 to the number of classes - 1.
    """

    dtype = "int64"

    def __init__(self) -> None:
        super().__init__(keep_in_memory=True)

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=type(self).__doc__,
            citation="",
            inputs_description="predictions, references: one of each for an example.",
            features=datasets.Features({name: datasets.Value(self.dtype) for name in ("predictions", "references")}),
        )


class ClassificationMetric(OfflineMetric):
    """Accuracy, per-class precision, recall and F1, and the confusion matrix of a single-label classifier.

    What it computes is what `classification_metrics` returns.

    Args:
        class_names: The classes in the order of their integer labels.

    Raises:
        ValueError: `class_names` has fewer than two names or one twice.
    """

    def __init__(self, class_names: Sequence[str]) -> None:
        if len(class_names) < 2 or len(set(class_names)) != len(class_names):
            raise ValueError(f"class_names must be two or more different names, not {list(class_names)}")
        self.class_names = list(class_names)
        super().__init__()

    def _compute(self, *, predictions: Sequence[int], references: Sequence[int]) -> dict[str, Any]:
        predicted, gold = np.asarray(predictions), np.asarray(references)  # (rows,)
        if not len(gold):
            raise ValueError("there is nothing to score: no predictions and references were added")
        for what, labels in (("predictions", predicted), ("references", gold)):
            outside = np.flatnonzero((labels < 0) | (labels >= len(self.class_names)))
            if len(outside):
                raise ValueError(
                    f"{what}[{outside[0]}] is {labels[outside[0]]}, but the {len(self.class_names)} classes "
                    f"{self.class_names} have the labels 0 to {len(self.class_names) - 1}"
                )
        return classification_metrics(gold, predicted, self.class_names)


@runtime_checkable
class MeanOfExamples(Protocol):
    """A metric that is the mean of a score of each example, so that two runs can be compared example by example."""

    def example_scores(self, predictions: NDArray[Any], references: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """From (rows,) integer labels both to the scores of rows by the name of their mean. (rows,)"""


class SklearnMetric(OfflineMetric):
    """One number that scikit-learn computes from the labels of a classifier, to be combined with other metrics.

    Args:
        name: The number's name.
        function: From references and predictions to the number, such as `sklearn.metrics.matthews_corrcoef`.
    """

    def __init__(self, name: str, function: Callable[..., float]) -> None:
        self.key, self.function = name, function
        super().__init__()

    def _compute(self, *, predictions: Sequence[int], references: Sequence[int]) -> dict[str, float]:
        return {self.key: float(self.function(references, predictions))}


class RegressionMetric(OfflineMetric):
    """How well predicted numbers follow the true ones: correlations, and the mean absolute error."""

    dtype = "float64"

    def _compute(self, *, predictions: Sequence[float], references: Sequence[float]) -> dict[str, float]:
        """Measure examples.

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
