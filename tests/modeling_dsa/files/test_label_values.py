"""modeling_dsa.files.label_values: what single values stand for."""

import math
from typing import Any

import pytest

from modeling_dsa.files.label_values import as_number, class_name, plain_label


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("12", 12), (" -1.5e3 ", -1500.0), (".5", 0.5), (3, 3), (2.5, 2.5), ("1_000", None), ("nan", None),
        ("infinity", None), (10**400, None), ("9" * 5000, None), (math.inf, None), (True, None), (None, None),
        ("", None),
    ],
)  # fmt: skip
def test_number_is_what_a_person_would_call_one(value: object, number: float | None) -> None:
    assert as_number(value) == number
    assert type(as_number(value)) is type(number)


def test_plain_label_is_one_value() -> None:
    values: list[Any] = [" a, b 🌍 ", "  ", None, math.nan, False, 0, 1.5]
    assert [plain_label(value, "here") for value in values] == ["a, b 🌍", None, None, None, False, 0, 1.5]
    for value, message in (([1], "a list"), ({"a": 1}, "an object"), (b"a", "bytes"), ("a\nb", "no name should")):
        with pytest.raises(ValueError, match=f"^here: the label .*{message}"):
            plain_label(value, "here")


def test_class_names_are_those_that_other_formats_write() -> None:
    assert [class_name(label) for label in (True, 2, 2.0, 2.5, "2.0")] == ["True", "2", "2", "2.5", "2.0"]
