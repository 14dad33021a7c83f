"""modeling_dsa.evaluation.probes: the figures of scikit-learn code that was written independently."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from modeling_dsa.batching_dsa import Vectors
from modeling_dsa.evaluation import probes
from modeling_dsa.evaluation.probes import LabelledTexts, probe, read_labelled


def drawn_texts(count: int, seed: int) -> tuple[LabelledTexts, Vectors]:
    """Texts that are two numbers, which are their vectors, with a noisy class."""
    numbers = np.random.default_rng(seed).normal(size=(count, 3)).round(3)
    noise = np.random.default_rng(seed + 1).normal(size=count)
    labels = ["yes" if value > 0.3 else "no" for value in numbers[:, 0] - numbers[:, 1] + noise]
    return LabelledTexts("data", [(" ".join(map(str, row)),) for row in numbers], labels), numbers


def as_vectors(texts: list[str]) -> Vectors:
    return np.array([[float(number) for number in text.split()] for text in texts])


def best_regression(x: Vectors, y: Vectors, values: list[float]) -> LogisticRegression:
    """The loop over C that SentEval's authors wrote out: mean accuracy over folds, the first of the best."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=1111).split(x, y))
    means = [
        np.mean([LogisticRegression(C=c).fit(x[train], y[train]).score(x[test], y[test]) for train, test in folds])
        for c in values
    ]
    return LogisticRegression(C=values[int(np.argmax(means))]).fit(x, y)


@pytest.fixture(autouse=True)
def three_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "FOLDS", 3)  # of ten, nested, a test would need minutes


def test_one_file_is_nested_cross_validation() -> None:
    data, x = drawn_texts(120, seed=0)
    y, accuracies, f1s, chosen = np.array(data.labels), [], [], []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1111).split(x, y):
        fitted = best_regression(x[train], y[train], [0.25, 0.5, 1, 2, 4, 8])
        accuracies.append(fitted.score(x[test], y[test]))
        f1s.append(f1_score(y[test], fitted.predict(x[test]), average="macro"))
        chosen.append(fitted.C)
    found = probe(as_vectors, [data])
    assert found.c == chosen
    assert (found.accuracy, found.macro_f1) == pytest.approx((np.mean(accuracies), np.mean(f1s)))
    assert 0.6 < found.accuracy < 1
    assert (found.classes, found.examples) == (["no", "yes"], 120)


def test_two_and_three_files_are_tested_on_the_last() -> None:
    (train, x), (validation, vx), (test, tx) = (drawn_texts(count, seed) for seed, count in enumerate((90, 60, 80)))
    y, vy, ty = (np.array(file.labels) for file in (train, validation, test))
    expected = best_regression(x, y, [0.5, 1, 2, 4, 8, 16, 32])
    found = probe(as_vectors, [train, test])
    assert found.c == [expected.C]
    assert found.accuracy == pytest.approx(expected.score(tx, ty))
    fitted = [LogisticRegression(C=c).fit(x, y) for c in (0.25, 0.5, 1, 2, 4, 8)]
    expected = max(fitted, key=lambda regression: float(regression.score(vx, vy)))
    found = probe(as_vectors, [train, validation, test])
    assert (found.c, found.examples) == ([expected.C], 80)
    assert found.macro_f1 == pytest.approx(f1_score(ty, expected.predict(tx), average="macro"))


def test_features_of_pairs_are_senteval_s() -> None:
    def pairs(seed: int) -> tuple[LabelledTexts, Vectors]:
        (file, x), (second, other) = drawn_texts(60, seed), drawn_texts(60, seed + 5)
        texts = [(*first, *text) for first, text in zip(file.texts, second.texts, strict=True)]
        return LabelledTexts("pairs", texts, file.labels), np.hstack([np.abs(x - other), x * other])

    (train, x), (validation, vx), (test, tx) = pairs(0), pairs(1), pairs(2)
    best = max(
        (LogisticRegression(C=c).fit(x, train.labels) for c in (0.25, 0.5, 1, 2, 4, 8)),
        key=lambda regression: float(regression.score(vx, validation.labels)),
    )
    assert probe(as_vectors, [train, validation, test]).accuracy == pytest.approx(best.score(tx, test.labels))


def test_a_probe_is_not_tested_on_what_it_is_trained_on() -> None:
    train, _ = drawn_texts(60, seed=0)
    copy = LabelledTexts("copy", train.texts[:20], train.labels[:20])
    with pytest.raises(ValueError, match="copy holds nothing but examples of data: a probe is tested on others than"):
        probe(as_vectors, [train, copy])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\na,x\nb,\n", "line 3: there is no label"),
        ("text,label\na,x\n,y\n", "line 3, column 'text': '' is no text"),
        ("text,label\na,1.0\nb,2.5\n", "line 3: the label 2.5 is a number with decimals, but a probe needs classes"),
        ("text,label\na,x\nb,-\n", "line 3: the label '-' says that there is none: remove this row"),
        ("text,label\na,x\nb,y\n", "class 'x' has 1 examples, and 3-fold cross-validation needs 5"),
    ],
)
def test_mistake_is_told_where_it_is(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        probe(as_vectors, [read_labelled(path)])


def test_class_that_training_lacks_is_refused() -> None:
    train, test = LabelledTexts("train", [("1",), ("2",)] * 10, ["a", "b"] * 10), LabelledTexts("test", [("1",)], ["c"])
    with pytest.raises(ValueError, match="test: class 'c' does not occur in train"):
        probe(as_vectors, [train, test])
