"""modeling_dsa.evaluation.classification: the figures that scikit-learn has of the same answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from modeling_dsa.evaluation.classification import classification_metrics

ANSWERS = st.integers(2, 5).flatmap(
    lambda classes: st.tuples(
        st.just(classes),
        st.lists(st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=40),
    )
)


@settings(max_examples=10)
@given(ANSWERS)
def test_agrees_with_sklearn(case: tuple[int, list[tuple[int, int]]]) -> None:
    classes, pairs = case
    predicted, gold = map(list, zip(*pairs, strict=True))
    names, labels = [f"class {i}" for i in range(classes)], list(range(classes))
    found = classification_metrics(gold, predicted, names)
    assert found["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(gold, predicted))
    f1 = sklearn_metrics.f1_score(gold, predicted, labels=labels, average="macro", zero_division=0.0)
    assert found["macro_f1"] == pytest.approx(f1)
    assert found["majority_accuracy"] == pytest.approx(max(np.bincount(gold)) / len(gold))
    expected = sklearn_metrics.confusion_matrix(gold, predicted, labels=labels)
    assert found["confusion_matrix"] == expected.tolist()
    report = sklearn_metrics.classification_report(
        gold, predicted, labels=labels, target_names=names, output_dict=True, zero_division=0.0
    )
    for name in names:
        theirs = report[name]
        theirs["f1"] = theirs.pop("f1-score")
        assert found["per_class"][name] == pytest.approx(theirs)
