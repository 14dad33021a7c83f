"""What the labels in a column are, from its values: classes with their names, or numbers."""

import logging
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from modeling_dsa.files.label_values import as_number, class_name, look, look_alike, plain_label, says_no_class
from modeling_dsa.files.tables import Table

from .labels import FoundClasses, Labels, Numbers

logger = logging.getLogger(__name__)

ProblemType: TypeAlias = Literal["single_label_classification", "regression"]
Label: TypeAlias = bool | int | float | str

_LARGEST, _SMALLEST, _FINEST = 1e18, 1e-18, 1e-5  # of numbers whose squares and differences float32 has
_FEW = 20  # so many whole numbers are classes, whichever they are
_SHOWN = 12
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_INFINITE = ("inf", "+inf", "-inf", "infinity", "-infinity")
_GAPS = ("nan", "na", "n/a", "null", "none")  # how tables of text spell that a number is missing


@dataclass
class LabelColumn:
    """The labels of one split.

    Attributes:
        counts: How often each distinct one occurs.
        first: Where each occurs first.
        missing: How many rows have none.
        first_missing: Where the first of these stands, if there is one.
    """

    counts: Counter[Label] = field(default_factory=Counter)
    first: dict[Label, str] = field(default_factory=dict)
    missing: int = 0
    first_missing: str | None = None


def infer_labels(
    tables: Mapping[str, Table], column: str, problem_type: ProblemType | None = None
) -> tuple[Labels, tuple[str, ...]]:
    """What the labels of some splits are, and which splits have any.

    Classes that the data name keep their order; others are sorted, by number where all are numbers. Labels are numbers
    for a regression where one of the training data has a decimal point, or where these have more than 20 distinct whole
    numbers that do not count up from 0 or 1 without a gap.

    Args:
        tables: The splits, `train` among them. Another one whose labels are all missing or -1, as those of a test set
            that others score, has none.
        column: The column of labels.
        problem_type: What they are, where it is known.

    Raises:
        ValueError: A label is missing or no number, only one value occurs in `train`, another split has a class that
            `train` has not, or it is not clear what the labels are. The message says where.
    """
    columns = {split: _read(table, column) for split, table in tables.items()}
    table, train = tables["train"], columns["train"]
    class_names = table.class_names.get(column)
    if class_names is not None:
        for found in columns.values():
            del found.counts[-1]  # which is how `datasets` says that a row has no class
    columns = {
        split: found
        for split, found in columns.items()
        if found is train or found.counts.keys() & train.counts or not _is_hidden(found)
    }
    is_regression = problem_type == "regression"
    if problem_type is None and class_names is None:
        is_regression = _are_numbers(list(train.counts), table)
    said = problem_type is not None
    if is_regression:
        return _numbers(columns, table, column, said), tuple(columns)
    return _classes(columns, table, column, class_names, said), tuple(columns)


def _read(table: Table, column: str) -> LabelColumn:
    found = LabelColumn()
    for location, row in table.read([column]):
        label = plain_label(row[column], location)
        if label is not None:
            found.counts[label] += 1
            found.first.setdefault(label, location)
        elif not table.may_lack_labels:
            found.missing += 1
            found.first_missing = found.first_missing or location
    return found


def _is_hidden(found: LabelColumn) -> bool:
    return all(as_number(label) == -1 for label in found.counts)


def _are_numbers(labels: Sequence[Label], table: Table) -> bool:
    if table.has_types and any(isinstance(label, str) for label in labels):
        return False
    numbers = [as_number(label) for label in labels if str(label).lower() not in (*_GAPS, *_INFINITE)]
    if not numbers or None in numbers:
        return False
    whole = {int(number) for number in numbers if number is not None and float(number).is_integer()}
    if any(isinstance(number, float) for number in numbers):
        if len(whole) == 2 and len({float(number) for number in numbers if number is not None}) == 2:
            raise ValueError(
                f"{table.name}: the labels are {' and '.join(map(str, labels))}: say with --problem_type "
                "single_label_classification that they are two classes, or with --problem_type regression that they "
                "are numbers"
            )
        return True
    counts_up = min(whole) in (0, 1) and max(whole) - min(whole) == len(whole) - 1
    return len(whole) > _FEW and not counts_up


def _numbers(columns: Mapping[str, LabelColumn], table: Table, column: str, said: bool) -> Numbers:
    for found in columns.values():
        wrong = next((label for label in found.counts if as_number(label) is None), None)
        if wrong is not None:
            raise ValueError(f"{found.first[wrong]}: the label {wrong!r} is no number; fix or remove this row")
        _refuse_missing(found)
    values = [float(as_number(label) or 0) for label in columns["train"].counts]
    if len(set(values)) < 2:
        raise ValueError(f"{table.name}: all labels in column {column!r} are the same: there is nothing to learn")
    largest = max(map(abs, values))
    if largest > _LARGEST or statistics.pstdev(values) < _FINEST * largest or largest < _SMALLEST:
        raise ValueError(
            f"{table.name}: the labels in column {column!r} go from {min(values):g} to {max(values):g}, which 32 bits "
            "cannot tell apart or hold: subtract a constant from them, or divide them by one"
        )
    hint = "" if said else " --problem_type single_label_classification makes classes of them."
    logger.info(f"Regression: column {column!r} holds numbers from {min(values):g} to {max(values):g}.{hint}")
    return Numbers()


def _classes(
    columns: Mapping[str, LabelColumn], table: Table, column: str, class_names: Sequence[str] | None, said: bool
) -> FoundClasses:
    for found in columns.values():
        _refuse_missing(found)
    train = Counter[str]()
    for label, count in columns["train"].counts.items():
        train[class_name(label)] += count
    if len(train) < 2:
        only = ", ".join(map(repr, train)) or "rows without a label"
        raise ValueError(f"{table.name}: column {column!r} holds only {only}: two or more classes are needed")
    if not said and len(train) > _FEW and 2 * len(train) > train.total():
        raise ValueError(
            f"{table.name}: column {column!r} has {len(train):,} different labels in {train.total():,} rows: name the "
            "column of labels with --label_column, or say with --problem_type single_label_classification that these "
            "are classes"
        )
    if not said and class_names is None:
        _refuse_doubtful(columns["train"], train)
        _refuse_twins(columns["train"], train)
    for split, found in columns.items():
        unseen = next((label for label in found.counts if class_name(label) not in train), None)
        if unseen is not None:
            are_numbers = as_number(unseen) is not None and None not in map(as_number, train)
            name = class_name(unseen)
            if (twin := look_alike(name, train)) is not None:
                raise ValueError(
                    f"{found.first[unseen]}: the label {name!r} of split {split!r} looks like {twin!r} of the training "
                    "data and is written otherwise (capitals, blanks, Unicode): write both alike"
                )
            numbers = ", or say with --problem_type regression that labels are numbers" if are_numbers else ""
            raise ValueError(
                f"{found.first[unseen]}: the label {name!r} of split {split!r} does not occur in the "
                f"training data: write it as there, add examples of it, or remove this row{numbers}"
            )
    names = tuple(class_names or _sorted(train))
    shown = [f"{name} ({train[name]:,})" for name in names[:_SHOWN]] + (["..."] if len(names) > _SHOWN else [])
    hint = " --problem_type regression takes them as numbers." if not said and None not in map(as_number, names) else ""
    logger.info(f"Classification: column {column!r} holds {len(names)} classes: {', '.join(shown)}.{hint}")
    return FoundClasses(names)


def _refuse_missing(found: LabelColumn) -> None:
    if found.missing == 1:
        raise ValueError(f"{found.first_missing}: there is no label; add it or remove this row")
    if found.missing:
        raise ValueError(
            f"{found.first_missing}: there is no label, and none in {found.missing - 1:,} more; add them or remove "
            "these rows"
        )


def _refuse_doubtful(found: LabelColumn, names: Mapping[str, int]) -> None:
    """Refuse classes that are something else in the wrong clothes."""
    label, location = next(iter(found.first.items()))
    if all(len(name) > 2 and name[0] == name[-1] == '"' for name in names):
        raise ValueError(
            f"{location}: the label {label!r} is in quotation marks, as all are: no blank may stand before them in a "
            ".csv, and a .tsv has none"
        )
    if all(_DECIMAL_COMMA.fullmatch(name) for name in names):
        raise ValueError(
            f"{location}: the label {label!r} is a number with a comma, as all are: write points, or say with "
            "--problem_type single_label_classification that these are classes"
        )
    for label, location in found.first.items():
        if says_no_class(class_name(label), names):
            raise ValueError(
                f"{location}: the label {label!r} says that there is none: remove this row, or say with --problem_type "
                "single_label_classification that it is a class"
            )


def _refuse_twins(found: LabelColumn, names: Mapping[str, int]) -> None:
    """Refuse two classes whose names differ in capitals, blanks or how Unicode writes them alone."""
    by_look: dict[str, str] = {}
    for name in sorted(names, key=lambda name: -names[name]):
        usual = by_look.setdefault(look(name), name)
        if usual != name:
            location = next(location for label, location in found.first.items() if class_name(label) == name)
            raise ValueError(
                f"{location}: the label {name!r} looks like {usual!r}, of which there are more: write both alike, or "
                "say with --problem_type single_label_classification that they are two classes"
            )


def _sorted(names: Mapping[str, int]) -> list[str]:
    numbers = {name: as_number(name) for name in names}
    if None in numbers.values():
        return sorted(names)
    return sorted(names, key=lambda name: (numbers[name] or 0, name))
