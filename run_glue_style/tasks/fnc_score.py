"""The official weighted score of the Fake News Challenge (FNC-1) as an `evaluate.Metric` that needs no network."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .metrics import OfflineMetric

UNRELATED = "unrelated"
RELATED_POINTS = 0.25  # for telling related from unrelated
EXACT_POINTS = 0.75  # more for the exact class of a related pair


def class_points(class_names: Sequence[str]) -> tuple[float, ...]:
    """The most points that a pair of each class can give."""
    return tuple(RELATED_POINTS + (name != UNRELATED) * EXACT_POINTS for name in class_names)


class FNCScore(OfflineMetric):
    """Points of the Fake News Challenge: 0.25 for related or unrelated, 0.75 more for a related pair's exact class.

    The rule is that of the organisers' `scorer.py` (https://github.com/FakeNewsChallenge/fnc-1): a related pair gives 1
    where its class is right, 0.25 where another related class is predicted and 0 as unrelated; an unrelated pair gives
    0.25 where it is right.

    Args:
        class_names: The classes in the order of their integer labels, `unrelated` among them.

    Raises:
        ValueError: No class is called `unrelated`.
    """

    def __init__(self, class_names: Sequence[str]) -> None:
        if UNRELATED not in class_names:
            raise ValueError(f"class_names must have {UNRELATED!r} among them, not only {list(class_names)}")
        self.unrelated = list(class_names).index(UNRELATED)
        super().__init__()

    def _compute(self, *, predictions: Sequence[int], references: Sequence[int]) -> dict[str, float]:
        """Score rows.

        Returns:
            `fnc_score`, the points; `fnc_max`, those of a perfect answer; `fnc_relative`, the share of them.
        """
        gold = np.asarray(references)  # (rows,)
        points = float(self._points(np.asarray(predictions), gold).sum())
        most = float(self._points(gold, gold).sum())
        return {"fnc_score": points, "fnc_max": most, "fnc_relative": points / most}

    def example_scores(self, predictions: NDArray[Any], references: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """What each row adds to `fnc_relative`, in shares of a row, so that it is their mean. (rows,)"""
        most = self._points(references, references)  # (rows,)
        return {"fnc_relative": self._points(predictions, references) / most.mean()}

    def _points(self, predicted: NDArray[Any], gold: NDArray[Any]) -> NDArray[Any]:
        related = gold != self.unrelated  # (rows,)
        right_kind = related == (predicted != self.unrelated)
        points: NDArray[Any] = RELATED_POINTS * right_kind + EXACT_POINTS * (related & (predicted == gold))
        return points
