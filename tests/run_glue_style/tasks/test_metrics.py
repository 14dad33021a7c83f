import json
import warnings
from collections.abc import Iterator

import evaluate
import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn_metrics

from run_glue_style.tasks.metrics import ClassificationMetric, RegressionMetric, SklearnMetric

NAMES = ["entailment", "neutral", "contradiction"]


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_hand_computed_scores() -> None:
    scores = ClassificationMetric(NAMES).compute(predictions=[0, 0, 1, 1, 2, 0], references=[0, 1, 1, 1, 2, 2])
    assert scores == {
        "accuracy": pytest.approx(4 / 6),
        "macro_f1": pytest.approx((1 / 2 + 4 / 5 + 2 / 3) / 3),
        "per_class": {
            "entailment": {"precision": pytest.approx(1 / 3), "recall": 1.0, "f1": pytest.approx(1 / 2), "support": 1},
            "neutral": {"precision": 1.0, "recall": pytest.approx(2 / 3), "f1": pytest.approx(4 / 5), "support": 3},
            "contradiction": {"precision": 1.0, "recall": 1 / 2, "f1": pytest.approx(2 / 3), "support": 2},
        },
        "confusion_matrix": [[1, 0, 0], [1, 2, 0], [1, 0, 1]],
        "majority_accuracy": 1 / 2,
    }


def test_class_that_never_occurs_or_is_never_predicted_scores_zero_without_a_warning() -> None:
    scores = ClassificationMetric(NAMES).compute(predictions=[0, 0], references=[0, 1])
    assert scores["per_class"]["neutral"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}
    assert scores["per_class"]["contradiction"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}
    assert scores["macro_f1"] == pytest.approx(2 / 3 / 3)
    assert scores["confusion_matrix"] == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_batches_of_tensors_and_arrays_are_scored_as_one_and_then_forgotten() -> None:
    metric = ClassificationMetric(NAMES)
    metric.add_batch(predictions=torch.tensor([0, 1]), references=torch.tensor([0, 2]))
    metric.add_batch(predictions=np.array([2], dtype=np.int32), references=np.array([2], dtype=np.int32))
    metric.add(prediction=1, reference=1)
    whole = ClassificationMetric(NAMES).compute(predictions=[0, 1, 2, 1], references=[0, 2, 2, 1])
    assert metric.compute() == whole
    assert metric.compute(predictions=[1], references=[1])["per_class"]["neutral"]["support"] == 1


def test_result_is_plain_json() -> None:
    scores = ClassificationMetric(NAMES).compute(predictions=[0, 1], references=[0, 2])
    assert json.loads(json.dumps(scores)) == scores
    assert type(scores["accuracy"]) is type(scores["macro_f1"]) is type(scores["majority_accuracy"]) is float
    assert type(scores["per_class"]["neutral"]["support"]) is type(scores["confusion_matrix"][0][0]) is int


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([0, 3], [0, 1], r"predictions\[1\] is 3, but the 3 classes"),
        ([0, 1], [-1, 1], r"references\[0\] is -1, but the 3 classes"),
        ([0, 1], [0], "Mismatch in the number"),
        ([], [], "nothing to score"),
    ],
)
def test_mistakes_are_one_clear_error_and_leave_the_metric_usable(
    predictions: list[int], references: list[int], message: str
) -> None:
    metric = ClassificationMetric(NAMES)
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=references)
    assert metric.compute(predictions=[1, 2], references=[1, 1])["accuracy"] == 0.5


@pytest.mark.parametrize("names", [[], ["a"], ["a", "a"]])
def test_class_names_are_checked(names: list[str]) -> None:
    with pytest.raises(ValueError, match="different names"):
        ClassificationMetric(names)


def test_score_combines_with_the_classification_metric() -> None:
    both = evaluate.combine(
        [ClassificationMetric(["no", "yes"]), SklearnMetric("mcc", sklearn_metrics.matthews_corrcoef)]
    )
    scores = both.compute(predictions=[0, 1, 1, 0], references=[0, 1, 0, 0])
    assert (scores["accuracy"], scores["mcc"]) == (0.75, pytest.approx(2 / 12**0.5))
    assert both.compute(predictions=[0, 0], references=[0, 1])["mcc"] == 0.0


def test_regression_by_hand() -> None:
    scores = RegressionMetric().compute(predictions=[1.0, 2.0, 4.0], references=[1.0, 3.0, 2.0])
    assert scores == {
        "pearson": pytest.approx(1 / (14 / 3 * 2) ** 0.5),
        "spearman": pytest.approx(0.5),
        "mean_absolute_error": pytest.approx(1.0),
        "constant_absolute_error": pytest.approx(2 / 3),
    }
    assert json.loads(json.dumps(scores)) == scores


@pytest.mark.parametrize(
    ("predictions", "references"), [([2.0, 2.0], [0.0, 1.0]), ([0.0, 1.0], [2.0, 2.0]), ([1.0], [1.0])]
)
def test_correlation_with_a_constant_is_zero(predictions: list[float], references: list[float]) -> None:
    scores = RegressionMetric().compute(predictions=predictions, references=references)
    assert (scores["pearson"], scores["spearman"]) == (0.0, 0.0)
