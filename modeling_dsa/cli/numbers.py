"""Numbers on the command line."""

import argparse
import math
import re
from collections.abc import Callable


def whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    """What reads an option's value as a whole number within bounds, both included."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"-?\d{1,30}", value) or not lowest <= int(value) <= highest:
            raise argparse.ArgumentTypeError(f"{value!r} is no whole number from {lowest} to {highest}")
        return int(value)

    return parse


def positive_number(value: str) -> float:
    """Read an option's value as a number above 0."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{value!r} is no number above 0")
    return number
