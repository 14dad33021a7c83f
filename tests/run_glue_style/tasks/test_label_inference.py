"""run_glue_style.tasks.label_inference: what a column of labels is taken for."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from modeling_dsa.files.rows import Rows
from modeling_dsa.files.tables import Table
from run_glue_style.tasks.label_inference import ProblemType, infer_labels


def table(labels: Sequence[object], has_types: bool = True, names: Sequence[str] | None = None) -> Table:
    def read(columns: Sequence[str] | None) -> Rows:
        return ((f"data, row {index}", {"label": label}) for index, label in enumerate(labels, 1))

    return Table("data", read, {"label": names} if names else {}, has_types)


def infer(
    train: Sequence[object], problem_type: ProblemType | None = None, has_types: bool = True, **splits: Sequence[object]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tables = {name: table(labels, has_types) for name, labels in {"train": train, **splits}.items()}
    labels, labelled = infer_labels(tables, "label", problem_type)
    return labels.class_names, labelled


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "a", "b"], ("a", "b")),
        (["yes, 🙂", "No way"], ("No way", "yes, 🙂")),
        ([True, False], ("False", "True")),
        ([10, 9, 1], ("1", "9", "10")),
        (["10", "9", "1"], ("1", "9", "10")),
        ([1, 0, -1], ("-1", "0", "1")),
        (["1", "other"], ("1", "other")),
        (["+", "-"], ("+", "-")),
        (["01", "1", "2"], ("01", "1", "2")),  # codes, of which two are one number
        (["1.5", "2.5", "3"], ("1.5", "2.5", "3")),  # texts in a file that knows numbers
        (list(range(150)), tuple(map(str, range(150)))),
    ],
)
def test_classes_have_names_in_a_stable_order(labels: list[object], names: tuple[str, ...]) -> None:
    assert infer([*labels, *labels])[0] == infer([*labels[::-1], *labels])[0] == names


@pytest.mark.parametrize("labels", [[0.5, 1.0, 2.0], [1.0, 2.0, 3.0], list(range(0, 90, 3)), [*range(50), -7]])
def test_numbers_with_a_point_or_many_of_them_are_a_regression(
    labels: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert infer(labels)[0] == ()
    assert f"Regression: column 'label' holds numbers from {min(labels):g} to {max(labels):g}." in caplog.text
    assert "--problem_type single_label_classification makes classes of them" in caplog.text
    assert infer([str(label) for label in labels], has_types=False)[0] == ()


def test_problem_type_decides() -> None:
    assert infer([0.0, 1.0], "single_label_classification")[0] == ("0", "1")
    assert infer([0.5, 1.0] * 5, "single_label_classification")[0] == ("0.5", "1")
    assert infer(["1", "2"], "regression")[0] == ()
    assert infer(["Yes", "yes"], "single_label_classification")[0] == ("Yes", "yes")
    assert len(infer([f"text {index}" for index in range(30)], "single_label_classification")[0]) == 30


def test_named_classes_keep_their_order_and_minus_one_is_no_label() -> None:
    tables = {"train": table(["z", "a", -1], names=("z", "a")), "test": table([-1, -1], names=("z", "a"))}
    labels, labelled = infer_labels(tables, "label")
    assert labels.class_names == ("z", "a")
    assert labelled == ("train",)


def test_rows_of_a_data_set_may_lack_their_label() -> None:
    tables = {"train": table(["b", None, "a"]), "test": table([None, None])}
    tables = {split: replace(rows, may_lack_labels=True) for split, rows in tables.items()}
    labels, labelled = infer_labels(tables, "label")
    assert (labels.class_names, labelled) == (("a", "b"), ("train",))


def test_splits_without_labels_are_left_out() -> None:
    assert infer([0, 1], validation=[1], test=[-1, -1], other=[None, ""])[1] == ("train", "validation")
    assert infer([-1, 1], test=[-1])[1] == ("train", "test")


def test_classes_and_their_counts_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    infer(["b", "a", "b"])
    assert caplog.messages == ["Classification: column 'label' holds 2 classes: a (1), b (2)."]
    infer([0, 1])
    assert caplog.messages[-1].endswith("0 (1), 1 (1). --problem_type regression takes them as numbers.")


@pytest.mark.parametrize(
    ("train", "options", "message"),
    [
        (["a", "a"], {}, "data: column 'label' holds only 'a': two or more classes are needed"),
        ([], {}, "column 'label' holds only rows without a label: two or more"),
        ([2.5, 2.5], {}, "all labels in column 'label' are the same"),
        ([1.0, 0.0], {}, "the labels are 1.0 and 0.0: say with --problem_type single_label_classification that"),
        (["a", None, "b"], {}, "data, row 2: there is no label; add it or remove this row"),
        ([0.5, float("nan"), 1, None], {}, "data, row 2: there is no label, and none in 1 more; add them or remove"),
        (["0.5", "nan", "1"], {"has_types": False}, "data, row 2: the label 'nan' is no number; fix or remove"),
        (["a", "b"], {"problem_type": "regression"}, "data, row 1: the label 'a' is no number"),
        (["a", ["b"]], {}, "data, row 2: the label is a list; an example has one label"),
        (["a", "b"], {"test": ["a", "c"]}, "row 2: the label 'c' of split 'test' does not occur in the training data"),
        (['"a"', '"b"'], {}, "row 1: the label '\"a\"' is in quotation marks, as all are"),
        (
            ["0,5", "1,5"],
            {"has_types": False},
            "row 1: the label '0,5' is a number with a comma, as all are: write poin",
        ),
        (["a", "b", "N/A"], {}, "row 3: the label 'N/A' says that there is none: remove this row, or say"),
        (["a", "b", "-"], {}, "row 3: the label '-' says that there is none: remove this row, or say"),
        ([1, 0, -1, 2], {}, "row 3: the label -1 says that there is none: remove this row, or say"),
        (["1", "1.0", "0"], {"has_types": False}, "the labels are 1 and 1.0 and 0: say with --problem_type"),
        (  # as pandas writes whole numbers where one was missing: training decides
            ["1", "0", "2"],
            {"has_types": False, "test": ["1.0", "0.0"]},
            r"row 1: the label '1.0' of split 'test' does not occur in the training data: .* --problem_type regression",
        ),
        (
            ["café", "thé"],
            {"test": ["cafe\u0301"]},
            "row 1: the label 'cafe\u0301' of split 'test' looks like 'café' of the training data and is wri",
        ),
        (["1.5", "2.5", "inf"], {"has_types": False}, "row 3: the label 'inf' is no number"),
        (["Yes", "no", "yes", "yes"], {}, "row 1: the label 'Yes' looks like 'yes', of which there are more"),
        ([f"text {index}" for index in range(30)], {}, "has 30 different labels in 30 rows: name the column of lab"),
    ],
)
def test_mistakes_are_one_sentence(train: list[object], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        infer(train, **options)
    assert "\n" not in str(caught.value)
