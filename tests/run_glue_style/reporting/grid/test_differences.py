"""Tests and intervals of a difference, against ones that are written independently here."""

import numpy as np
import pytest
from scipy import stats

from run_glue_style.reporting.grid.differences import (
    OTHER_EXAMPLES,
    Difference,
    Measured,
    compare,
    crossed_interval,
    difference,
)


def compared(first: np.ndarray, second: np.ndarray, *, examples: bool = True) -> Difference:
    """Two rows from (seeds, examples) scores."""
    row, other = ({seed: float(scores.mean()) for seed, scores in enumerate(row)} for row in (first, second))
    scores = [dict(enumerate(row.astype(float))) if examples else {} for row in (first, second)]
    found = difference(row, other, scores[0], scores[1])
    assert found is not None
    return found


def test_examples_are_swapped() -> None:
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
    halves = []
    for means in (by_both.mean(0), by_both.mean(1)):  # of the examples, of the seeds
        low, high = stats.ttest_1samp(means, 0).confidence_interval(0.95)
        halves.append((high - low) / 2)
    assert found.interval is not None
    assert np.diff(found.interval) / 2 == pytest.approx(np.hypot(*halves))
    assert np.mean(found.interval) == pytest.approx(by_both.mean())
    assert found.mean == pytest.approx(by_both.mean())
    assert found.p_seeds == pytest.approx(stats.ttest_rel(first.mean(1), second.mean(1)).pvalue)


@pytest.mark.parametrize(
    ("seeds", "of_seeds", "longest"), [(1, 0.0, 1.1), (2, 0.0, 6), (3, 0.0, 2), (2, 0.1, 11), (3, 0.1, 3)]
)
def test_an_interval_holds_the_true_difference_as_often_as_it_says(seeds: int, of_seeds: float, longest: float) -> None:
    """Also where there are few seeds, and whatever varies more: the seeds or the examples."""
    generator, held, halves = np.random.default_rng(10 + seeds), [], []
    for _ in range(500):
        differences = 0.02 + generator.normal(0, 0.5, (seeds, 200)) + generator.normal(0, 0.3, 200)
        differences += generator.normal(0, of_seeds, (seeds, 1))
        low, high = crossed_interval(differences)
        held.append(low <= 0.02 <= high)
        halves.append((high - low) / 2)
    known = 1.96 * np.sqrt(of_seeds**2 / seeds + 0.3**2 / 200 + 0.5**2 / (200 * seeds))  # if the variances were known
    assert np.mean(halves) < longest * known
    assert 0.93 <= np.mean(held) <= 0.998


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
    assert (found.mean, found.interval, found.p_examples, found.p_seeds) == (0, None, 1, None)


def test_seeds_that_differ_by_as_much_but_for_rounding_leave_no_interval() -> None:
    found = difference({0: 0.812, 1: 0.815}, {0: 0.802, 1: 0.805}, {}, {})
    assert found is not None
    assert (found.interval, found.p_seeds) == (None, None)


def test_one_example_that_differs_says_nothing() -> None:
    found = difference({0: 0.75}, {0: 0.5}, {0: np.array([1.0, 1, 1, 0])}, {0: np.array([0.0, 1, 1, 0])})
    assert found is not None
    assert found.p_examples == 1


def test_rows_that_were_measured_on_other_examples_have_no_difference() -> None:
    runs = [{"data": {"test": {"sha256": digest}}} for digest in "ab"]
    row, other = (Measured({0: value}, runs=[run]) for value, run in zip((0.5, 0.6), runs, strict=True))
    assert compare(row, other, "test.accuracy") == OTHER_EXAMPLES
    assert compare(row, Measured({0: 0.6}, runs=runs[:1]), "test.accuracy") == difference({0: 0.5}, {0: 0.6}, {}, {})
    longer, shorter = (Measured({0: 1.0}, {0: np.ones(count)}) for count in (4, 3))
    assert compare(longer, shorter, "test.accuracy") == OTHER_EXAMPLES
    assert compare(row, Measured({}, runs=runs[1:]), "test.accuracy") is None


@pytest.mark.parametrize(
    ("other", "comparable"),
    [
        ({"name": "b", "sha256": "2"}, False),
        ({"name": "a", "sha256": "2"}, True),  # of other sentences, too
        ({"name": "b", "sha256": "1"}, True),
    ],
)
def test_what_two_teachers_taught_has_no_difference(other: dict[str, str], comparable: bool) -> None:
    runs = [{"task": "distillation", "teacher": teacher} for teacher in ({"name": "a", "sha256": "1"}, other)]
    row, of_other = (Measured({0: value}, runs=[run]) for value, run in zip((0.5, 0.6), runs, strict=True))
    assert (compare(row, of_other, "validation.cosine") != OTHER_EXAMPLES) is comparable
    assert compare(row, of_other, "validation.spearman_stsb") != OTHER_EXAMPLES
