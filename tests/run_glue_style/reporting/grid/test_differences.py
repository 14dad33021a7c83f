"""Tests and intervals of a difference, against ones that are written independently here."""

import numpy as np
import pytest
from scipy import stats

from run_glue_style.reporting.grid.differences import Difference, difference


def compared(first: np.ndarray, second: np.ndarray, *, examples: bool = True) -> Difference:
    """Two rows from (seeds, examples) scores."""
    row, other = ({seed: float(scores.mean()) for seed, scores in enumerate(row)} for row in (first, second))
    scores = [dict(enumerate(row.astype(float))) if examples else {} for row in (first, second)]
    found = difference(row, other, scores[0], scores[1])
    assert found is not None
    return found


def test_examples_are_swapped_and_drawn_anew() -> None:
    generator = np.random.default_rng(1)
    easiness = generator.random(400)
    second = generator.random((3, 400)) < easiness
    first = generator.random((3, 400)) < easiness + 0.01
    found = compared(first, second)

    by_example = (first.astype(float) - second).mean(0)
    signs = generator.choice([-1, 1], (20000, 400))
    p_value = (np.abs(signs @ by_example) >= abs(by_example.sum()) - 1e-9).mean()
    assert found.p_examples == pytest.approx(p_value, abs=0.01)
    assert found.p_examples is not None
    assert 0.001 < found.p_examples < 0.2  # else the comparison says little

    by_both = first.astype(float) - second
    drawn = [by_both[generator.integers(3, size=3)][:, generator.integers(400, size=400)].mean() for _ in range(4000)]
    assert found.interval == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.006)
    assert found.mean == pytest.approx(by_both.mean())
    assert found.p_seeds == pytest.approx(stats.ttest_rel(first.mean(1), second.mean(1)).pvalue)


def test_without_scores_of_examples_the_seeds_are_what_varies() -> None:
    first, second = np.array([[0.70], [0.72], [0.71]]), np.array([[0.69], [0.69], [0.70]])
    found = compared(first, second, examples=False)
    differences = np.array([0.01, 0.03, 0.01])
    half = stats.t.ppf(0.975, 2) * differences.std(ddof=1) / np.sqrt(3)
    assert found.interval == pytest.approx((differences.mean() - half, differences.mean() + half))
    assert found.p_examples is None


def test_only_seeds_of_both_rows_count() -> None:
    found = difference({0: 0.5, 1: 0.9}, {1: 0.6, 2: 0.1}, {}, {})
    assert found is not None
    assert found.seeds == 1
    assert found.mean == pytest.approx(0.3)
    assert (found.interval, found.p_examples, found.p_seeds) == (None, None, None)
    assert difference({0: 0.5}, {1: 0.6}, {}, {}) is None


def test_rows_that_are_equal_do_not_differ() -> None:
    scores = np.random.default_rng(0).random((2, 50)) < 0.5
    found = compared(scores, scores)
    assert (found.mean, found.interval, found.p_examples, found.p_seeds) == (0, (0, 0), 1, None)


def test_one_example_that_differs_says_nothing() -> None:
    found = difference({0: 0.75}, {0: 0.5}, {0: np.array([1.0, 1, 1, 0])}, {0: np.array([0.0, 1, 1, 0])})
    assert found is not None
    assert found.p_examples == 1
