"""The official score of the Fake News Challenge, against hand-computed and published figures."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from run_glue_style.tasks.fnc_score import FNCScore

NAMES = ("agree", "disagree", "discuss", "unrelated")
AGREE, DISAGREE, DISCUSS, UNRELATED = range(4)
TEST_STANCES = Path(__file__).parents[4] / "shared" / "data" / "fnc1" / "competition_test_stances.csv"


def score(predictions: list[int], references: list[int]) -> dict[str, Any]:
    scores: dict[str, Any] = FNCScore(NAMES).compute(predictions=predictions, references=references)
    return scores


def test_points_of_one_pair() -> None:
    points = [
        # predicted: agree, disagree, discuss, unrelated
        [1.0, 0.25, 0.25, 0.0],
        [0.25, 1.0, 0.25, 0.0],
        [0.25, 0.25, 1.0, 0.0],
        [0.0, 0.0, 0.0, 0.25],
    ]
    for gold, row in enumerate(points):
        most = 0.25 if gold == UNRELATED else 1.0
        for predicted, own in enumerate(row):
            assert score([predicted], [gold]) == {"fnc_score": own, "fnc_max": most, "fnc_relative": own / most}


def test_points_add_up() -> None:
    predictions = [AGREE, DISCUSS, UNRELATED, UNRELATED, UNRELATED, AGREE, DISAGREE]
    references = [AGREE, AGREE, AGREE, UNRELATED, UNRELATED, UNRELATED, DISAGREE]
    assert score(predictions, references) == {
        "fnc_score": 1 + 0.25 + 0 + 0.25 + 0.25 + 0 + 1,
        "fnc_max": 4 + 3 * 0.25,
        "fnc_relative": 2.75 / 4.75,
    }


# Confusion matrices and scores in the README files of the organisers' baseline (its hold-out set) and of a system made
# of it (the competition's test set, https://github.com/aiThanet/FNC-1): rows are the true classes.
@pytest.mark.parametrize(
    ("matrix", "points", "most", "percent"),
    [
        (
            [[119, 3, 560, 80], [14, 2, 131, 15], [59, 4, 1528, 209], [5, 1, 100, 6792]],
            3539.75,
            4448.5,
            79.57176576374059,
        ),
        (
            [[351, 3, 1319, 230], [57, 0, 424, 216], [247, 0, 3601, 616], [32, 0, 412, 17905]],
            8940.75,
            11651.25,
            76.73640167364017,
        ),
    ],
    ids=["baseline", "test"],
)
def test_published_scores(matrix: list[list[int]], points: float, most: float, percent: float) -> None:
    gold, predicted = (axis.repeat(np.ravel(matrix)) for axis in map(np.ravel, np.indices((4, 4))))
    scores = score(predicted.tolist(), gold.tolist())
    assert (scores["fnc_score"], scores["fnc_max"]) == (points, most)
    assert 100 * scores["fnc_relative"] == pytest.approx(percent, abs=1e-12)
    of_pairs = FNCScore(NAMES).example_scores(predicted, gold)["fnc_relative"]
    assert 100 * of_pairs.mean() == pytest.approx(percent, abs=1e-12)


@pytest.mark.skipif(not TEST_STANCES.is_file(), reason="the competition's files are not here")
def test_all_unrelated_on_the_test_set() -> None:
    with TEST_STANCES.open(newline="", encoding="utf-8") as file:
        gold = [NAMES.index(row["Stance"]) for row in csv.DictReader(file)]
    scores = score([UNRELATED] * len(gold), gold)
    assert scores == {"fnc_score": 4587.25, "fnc_max": 11651.25, "fnc_relative": pytest.approx(0.39371, abs=1e-5)}


def test_order_of_the_classes_is_free() -> None:
    scores = FNCScore(("unrelated", "discuss", "agree")).compute(predictions=[0, 1, 2], references=[0, 1, 1])
    assert scores == {"fnc_score": 1.5, "fnc_max": 2.25, "fnc_relative": 1.5 / 2.25}


def test_classes_without_unrelated_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have 'unrelated' among them.*'yes'"):
        FNCScore(["yes", "no"])
