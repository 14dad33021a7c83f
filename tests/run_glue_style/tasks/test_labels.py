"""run_glue_style.tasks.labels: what single values stand for."""

import pytest

from run_glue_style.tasks.labels import FoundClasses, KnownClasses, Numbers


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


def test_a_number_is_a_name_where_classes_are_called_by_numbers() -> None:
    stars = KnownClasses(("1", "2", "3", "4", "5"))
    assert stars.read("1", "here") == 0
    with pytest.raises(ValueError, match="here: the label 0 is unknown; it must be one of 1, 2, 3, 4, 5, or - or -1"):
        stars.read(0, "here")


def test_numbers_may_have_one_that_stands_for_none() -> None:
    assert [Numbers(unlabelled=-1).read(value, "here") for value in ("2.5", -1, 0)] == [2.5, None, 0.0]
    assert Numbers().read(-1, "here") == -1.0
    with pytest.raises(ValueError, match="here: the label None is no number"):
        Numbers().read(None, "here")
