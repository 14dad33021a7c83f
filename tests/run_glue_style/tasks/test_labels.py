"""run_glue_style.tasks.labels: what single values stand for."""

import math
from typing import Any

import pytest

from run_glue_style.tasks.labels import FoundClasses, KnownClasses, Numbers, as_number, class_name, plain_label


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("12", 12), (" -1.5e3 ", -1500.0), (".5", 0.5), (3, 3), (2.5, 2.5), ("1_000", None), ("nan", None),
        ("infinity", None), (math.inf, None), (True, None), (None, None), ("", None),
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


def test_found_classes_are_read_letter_by_letter() -> None:
    labels = FoundClasses(("None", "a", "A", "1"))
    assert [labels.read(value, "here") for value in ("a", " A ", 1, "1", None, "", -1)] == [
        1,
        2,
        3,
        3,
        None,
        None,
        None,
    ]
    assert FoundClasses(("-1", "1")).read(-1, "here") == 0
    with pytest.raises(ValueError, match="here: the label 'b' is none of the 4 classes"):
        labels.read("b", "here")


def test_known_classes_are_read_by_name_and_index() -> None:
    labels = KnownClasses(("no", "yes"))
    assert [labels.read(value, "here") for value in ("Yes", 0, "1", "-", -1)] == [1, 0, 1, None, None]
    with pytest.raises(ValueError, match="here: the label 2 is unknown; it must be one of no, yes, 0 to 1, or"):
        labels.read(2, "here")


def test_numbers_may_have_one_that_stands_for_none() -> None:
    assert [Numbers(unlabelled=-1).read(value, "here") for value in ("2.5", -1, 0)] == [2.5, None, 0.0]
    assert Numbers().read(-1, "here") == -1.0
    with pytest.raises(ValueError, match="here: the label None is no number"):
        Numbers().read(None, "here")
