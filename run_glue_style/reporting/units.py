"""Metrics as people read them: shares and correlations in percent, all others in their own unit."""

import statistics
from collections.abc import Collection

_OWN_UNIT = ("loss", "absolute_error", "fnc_score", "fnc_max")  # ends of names


def is_percent(metric: str) -> bool:
    """Whether a metric, such as `test.accuracy`, is shown in percent."""
    return not metric.endswith(_OWN_UNIT)


def shown(value: float, metric: str, sign: str = "") -> str:
    """A value of a metric; with the sign "+" a difference of two."""
    return f"{100 * value:{sign}.2f}" if is_percent(metric) else f"{value:{sign}.4g}"


def mean_and_spread(values: Collection[float], metric: str) -> str:
    """Mean and, for several values, the standard deviation over them."""
    mean = shown(statistics.mean(values), metric)
    return mean if len(values) == 1 else f"{mean} ± {shown(statistics.stdev(values), metric)}"
