"""How much better one row is than another, and how sure that is."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from run_glue_style.reporting.units import shown
from run_glue_style.training.results import have_same_examples

_CONFIDENCE = 0.95
_RESAMPLES = 9999
_ROUNDING = 1e-12  # of the numbers that are added
_AT_ONCE = 200  # resamples

Numbers = NDArray[np.float64]
OTHER_EXAMPLES: Final = "other examples"  # in place of a difference, which would be one of the examples


@dataclass(frozen=True)
class Difference:
    """A row's metric less another row's, over the seeds that both have.

    Attributes:
        seeds: How many.
        mean: The mean difference.
        interval: Its 95 % confidence interval; None where nothing varies, as with one seed without scores of examples.
            Where examples have scores, by `crossed_interval` over examples and seeds at once; else Student's t over the
            seeds.
        p_examples: From approximate randomisation over the examples, each with its mean over the seeds: whether these
            very models differ on other examples of this kind. None where examples have no scores.
        p_seeds: From a paired t-test over the seeds: whether other seeds would differ. None from one seed.
    """

    seeds: int
    mean: float
    interval: tuple[float, float] | None
    p_examples: float | None
    p_seeds: float | None


@dataclass(frozen=True)
class Measured:
    """A metric of a row.

    Attributes:
        values: By seed.
        scores: Those of its examples by seed, whose mean the metric is; (examples,) each. May lack seeds.
        runs: The results of its runs, which tell the examples; none where the metric is not the runs' own.
    """

    values: Mapping[int, float]
    scores: Mapping[int, Numbers] = field(default_factory=dict)
    runs: Collection[Mapping[str, Any]] = ()


Found = Difference | Literal["other examples"] | None


def compare(row: Measured, other: Measured, metric: str) -> Found:
    """A row's metric less another row's.

    Args:
        row: What was measured of it.
        other: What was measured of the other row.
        metric: Such as `test.accuracy`.

    Returns:
        OTHER_EXAMPLES where the two were not measured on the same, and None where they have no seed in common.
    """
    if not row.values or not other.values:
        return None
    runs = [*row.runs, *other.runs]
    counts = {len(scores) for one in (row, other) for scores in one.scores.values()}
    if len(counts) > 1 or not all(have_same_examples(run, runs[0], metric) for run in runs):
        return OTHER_EXAMPLES
    return difference(row.values, other.values, row.scores, other.scores)


def difference(
    row: Mapping[int, float],
    other: Mapping[int, float],
    row_scores: Mapping[int, Numbers],
    other_scores: Mapping[int, Numbers],
) -> Difference | None:
    """Compare two rows that were measured on the same examples.

    Args:
        row: Its metric by seed.
        other: The other row's metric by seed.
        row_scores: The scores of its examples by seed, whose mean the metric is; (examples,) each. May lack seeds.
        other_scores: Those of the other row, of the same examples.

    Returns:
        None where they have no seed in common.
    """
    seeds = sorted(row.keys() & other.keys())
    if not seeds:
        return None
    by_seed = np.array([row[seed] - other[seed] for seed in seeds])  # (seeds,)
    # Two accuracies that differ by as many examples differ by as much but for the last digits.
    varies = np.ptp(by_seed) > _ROUNDING * max(abs(metrics[seed]) for metrics in (row, other) for seed in seeds)
    interval, p_examples = None, None
    if row_scores.keys() >= set(seeds) and other_scores.keys() >= set(seeds):
        by_example = np.stack([row_scores[seed] - other_scores[seed] for seed in seeds])  # (seeds, examples)
        if np.ptp(by_example):
            interval = crossed_interval(by_example)
        p_examples = _randomise(by_example.mean(0))
    elif varies:
        interval = tuple(stats.ttest_1samp(by_seed, 0).confidence_interval(_CONFIDENCE))
    return Difference(
        seeds=len(seeds),
        mean=float(by_seed.mean()),
        interval=None if interval is None else (float(interval[0]), float(interval[1])),
        p_examples=p_examples,
        p_seeds=float(stats.ttest_1samp(by_seed, 0).pvalue) if varies else None,
    )


def difference_records(differences: Mapping[tuple[str, str], Mapping[str, Found]]) -> list[dict[str, Any]]:
    """Those that there are, for a table as JSON; shares of 1, not percent.

    Args:
        differences: By `compare`, of each row and the other one, by metric.
    """
    return [
        {"row": row, "against": other, "metric": metric, **asdict(found)}
        for (row, other), of_metrics in differences.items()
        for metric, found in of_metrics.items()
        if isinstance(found, Difference)
    ]


def difference_cells(found: Found, metric: str) -> list[str]:
    """Difference with its interval and the two p-values, as a table shows them.

    Args:
        found: By `compare`.
        metric: Of which metric, such as `test.accuracy`.
    """
    if not isinstance(found, Difference):
        return [found or "–", "–", "–"]
    mean, *ends = (shown(value, metric, "+") for value in (found.mean, *(found.interval or ())))
    return [f"{mean} [{', '.join(ends)}]" if ends else mean, _p(found.p_examples), _p(found.p_seeds)]


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _randomise(differences: Numbers) -> float:
    """How often so large a mean comes about where each example's two scores are swapped by chance, two-sided.

    Args:
        differences: (examples,)
    """
    # Of the examples that differ by as much, a binomial number is swapped: drawn at once, for accuracies a few numbers.
    # Cosines hardly ever differ by as much, and a bit for each example is drawn in a tenth of the time.
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)  # (sizes,) each
    if counts.sum() < 2:  # a single one is as far from 0 with its scores swapped
        return 1.0
    alone = counts == 1  # (sizes,)
    rng = np.random.default_rng(0)
    observed = differences.sum()
    rounding = _ROUNDING * np.abs(differences).sum()
    higher = lower = 1  # the observed sum is one of those that chance may give
    for start in range(0, _RESAMPLES, _AT_ONCE):
        resamples = min(_AT_ONCE, _RESAMPLES - start)
        swapped = rng.binomial(counts[~alone], 0.5, (resamples, int((~alone).sum())))  # (resamples, sizes)
        sums = (2 * swapped - counts[~alone]) @ sizes[~alone]  # (resamples,)
        bits = rng.integers(0, 2, (resamples, int(alone.sum())), dtype=np.int8)  # (resamples, sizes)
        sums += (2 * bits - 1) @ sizes[alone]
        higher += int((sums >= observed - rounding).sum())
        lower += int((sums <= observed + rounding).sum())
    return min(1.0, 2 * min(higher, lower) / (_RESAMPLES + 1))


def crossed_interval(differences: Numbers) -> tuple[float, float]:
    """The 95 % interval of a mean over examples and seeds, where every seed is measured on the same examples.

    The mean varies with both. Half its length is the hypotenuse of those of two t intervals, over the seeds and over
    the examples (Zou and Donner 2008, "MOVER"). Where the seeds decide, it is the t interval over the seeds; with a
    single seed it is that over its examples. Both halves hold the variance that neither explains: where seeds do not
    matter it is too long, about twice with three of them and several times with two, as these cannot tell.

    Args:
        differences: Of two rows, (seeds, examples).
    """
    mean, halves = differences.mean(), []
    for axis in (0, 1):
        means = differences.mean(1 - axis)  # of the seeds, then of the examples
        if len(means) > 1:
            halves.append(stats.t.ppf((1 + _CONFIDENCE) / 2, len(means) - 1) * stats.sem(means))
    half = np.hypot.reduce(halves)
    return float(mean - half), float(mean + half)
