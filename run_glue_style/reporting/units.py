"""Metrics as people read them: shares and correlations in percent, all others in their own unit."""

import math
import statistics
from collections.abc import Collection
from typing import Any

_OWN_UNIT = ("loss", "absolute_error", "fnc_score", "fnc_max")  # ends of names


def is_percent(metric: str) -> bool:
    """Whether a metric, such as `test.accuracy`, is shown in percent."""
    return not metric.endswith(_OWN_UNIT)


def shown(value: float, metric: str, sign: str = "") -> str:
    """A value of a metric; with the sign "+" a difference of two."""
    return f"{100 * value:{sign}.2f}" if is_percent(metric) else f"{value:{sign}.4g}"


def standard_deviation(values: Collection[float]) -> float | None:
    """Over seeds; None of a single one."""
    return statistics.stdev(values) if len(values) > 1 else None


def error_bar(values: Collection[float]) -> float:
    """The same for a picture, which draws no bar of NaN."""
    spread = standard_deviation(values)
    return math.nan if spread is None else spread


def mean_and_spread(values: Collection[float], metric: str) -> str:
    """Mean and, for several values, the standard deviation over them."""
    mean, spread = shown(statistics.mean(values), metric), standard_deviation(values)
    return mean if spread is None else f"{mean} ± {shown(spread, metric)}"


def metric_record(values: Collection[float]) -> dict[str, Any]:
    """The values of a metric with mean and standard deviation, for a table as JSON; shares of 1, not percent."""
    return {
        "values": list(values),
        "mean": statistics.mean(values),
        "standard_deviation": standard_deviation(values),
    }
