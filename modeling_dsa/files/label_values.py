"""What single values of a column of labels stand for."""

import math
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Sequence

_NO_CLASS = ("nan", "na", "n/a", "-")
_LONGEST_INTEGER = 300  # digits; a float holds no more
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def plain_label(value: object, location: str) -> bool | int | float | str | None:
    """A label as one plain value, a text without the blanks around it; None where there is none.

    Raises:
        ValueError: It is a list or an object, or a text that cannot be stored.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text.isprintable():
            raise ValueError(
                f"{location}: the label {value!r:.80} has characters that no name should have; fix this row"
            )
        return text or None
    if isinstance(value, bool | int | float):
        return value
    kind = "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else type(value).__name__
    raise ValueError(f"{location}: the label is {kind}; an example has one label, a name or a number")


def look(name: str) -> str:
    """A name without what the eye does not tell apart: capitals, blanks and how Unicode writes a character."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def look_alike(name: str, names: Iterable[str]) -> str | None:
    """The first of some names that looks like another one; None where none does."""
    return next((other for other in names if look(other) == look(name)), None)


def class_name(label: bool | int | float | str) -> str:
    """The name of the class that a label stands for: 1.0, as a table with gaps has it, is 1."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def says_no_class(name: str, names: Collection[str]) -> bool:
    """Whether the name of a class among others says that there is none: n/a, - without a +, or -1 beside 0, 1 and 2."""
    if name == "-1":
        others = {other for other in names if other != name}
        return len(others) > 2 and others == set(map(str, range(len(others))))
    return name.lower() in _NO_CLASS and not (name == "-" and "+" in names)


def as_number(value: object) -> int | float | None:
    """The finite number that a value is or spells; None where it is none, and True and False are none."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        text = value.strip()
        value = int(text) if text.lstrip("+-").isdigit() and len(text) < _LONGEST_INTEGER else float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= sys.float_info.max else None  # not math.isfinite, which fails for a larger integer


def class_index(value: object, names: Sequence[str], location: str) -> int | None:
    """The index of the class that a value stands for: its name, in any case where that is unique, or its index.

    Where a class is called by a number, a label is a name: 1 could be either, and a file that counts from 0 would have
    most of its labels read as the neighbours of what they are.

    Args:
        value: From the data.
        names: The classes, by index.
        location: Where the value stands, for messages.

    Returns:
        None for `-` and -1, where no class is called so: there is no label.

    Raises:
        ValueError: The value is unknown.
    """
    label = plain_label(value, location)
    name = "" if label is None else class_name(label)
    if name in names:
        return names.index(name)
    if name in ("-", "-1"):
        return None
    folded = [other.casefold() for other in names]
    if folded.count(name.casefold()) == 1:
        return folded.index(name.casefold())
    takes_indices = not any(as_number(other) is not None for other in names)
    if takes_indices and name in map(str, range(len(names))):
        return int(name)
    if (twin := look_alike(name, names)) is not None:
        raise ValueError(
            f"{location}: the label {value!r:.80} looks like {twin!r} and is written otherwise (Unicode, blanks): "
            "write both alike."
        )
    indices = f", 0 to {len(names) - 1}," if takes_indices else ","
    raise ValueError(
        f"{location}: the label {value!r:.80} is unknown; it must be one of {', '.join(names)}{indices} or - or -1 for "
        "an example without a label"
    )
