"""Options: fields of a dataclass that say what they are and what their values must be.

Validation, command lines and docs read it from the fields: those of the config, and those of the training scripts.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Bound(NamedTuple):
    """What the value of an option must be.

    Attributes:
        holds: Whether a value is so.
        demand: The same in words, after "must".
    """

    holds: Callable[[Any], bool]
    demand: str


COUNT = Bound(lambda value: value >= 1, "be at least 1")
COUNT_OR_NONE = Bound(COUNT.holds, "be at least 1, or none")
COUNTS = Bound(lambda values: all(value >= 1 for value in values), "be positive")
RATE = Bound(lambda value: 0 <= value < 1, "lie in [0, 1)")
POSITIVE = Bound(lambda value: 0 < value < math.inf, "be a number greater than 0")
NOT_NEGATIVE = Bound(lambda value: 0 <= value < math.inf, "be a finite number of at least 0")
FINITE = Bound(math.isfinite, "be a finite number")


def option(default: T, help: str, bound: Bound | None = None, **metadata: object) -> T:
    """A field of a dataclass, with its default, its help text, what its values must be and what else is said of it."""
    return dataclasses.field(default=default, metadata={"help": help, "bound": bound, **metadata})


def option_help(options: type) -> dict[str, str]:
    """The help text of each field of a dataclass that has one, by the field's name."""
    return {field.name: field.metadata["help"] for field in dataclasses.fields(options) if "help" in field.metadata}


def check_bounds(options: Any) -> None:
    """Refuse a value of a dataclass that is not within its bound; None, where it is allowed, is.

    Raises:
        ValueError: One is not.
    """
    for field in dataclasses.fields(options):
        bound: Bound | None = field.metadata.get("bound")
        value = getattr(options, field.name)
        if bound is not None and value is not None and not bound.holds(value):
            shown = list(value) if isinstance(value, tuple) else value
            raise ValueError(f"{field.name} must {bound.demand}, got {shown}.")
