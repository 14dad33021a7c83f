"""Linear probes: what logistic regression reads out of a model's frozen vectors, by SentEval's protocol."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate

from modeling_dsa.files.columns import find_columns
from modeling_dsa.files.label_values import as_number, class_name, plain_label, says_no_class
from modeling_dsa.files.tables import file_table
from modeling_dsa.files.text_values import row_texts

from .similarity import Encode

FOLDS = 10
SEED = 1111  # as SentEval's
MAX_ITERATIONS = 1000
# SentEval's values of C: of nested cross-validation and a validation file, and of a test file without the latter.
NESTED_C, TEST_C = [2.0**power for power in range(-2, 4)], [2.0**power for power in range(-1, 6)]

Features = npt.NDArray[Any]


@dataclass(frozen=True)
class LabelledTexts:
    """Texts, or pairs of them, with the name of the class of each.

    Attributes:
        name: The file, for messages.
        texts: The text of each example, or its two texts.
        labels: Names of classes.
    """

    name: str
    texts: list[tuple[str, ...]]
    labels: list[str]


@dataclass(frozen=True)
class ProbeMetrics:
    """What a probe gets right.

    Attributes:
        accuracy: Of the test file, or the mean of ten folds' accuracies.
        macro_f1: The same of the mean F1 of the classes that an example has or is given.
        c: The chosen inverse strength of regularisation, or that of each fold.
        protocol: How C was chosen and what was tested on.
        classes: Names.
        examples: How many were tested.
    """

    accuracy: float
    macro_f1: float
    c: list[float]
    protocol: str
    classes: list[str]
    examples: int


def read_labelled(
    path: Path, text_columns: Sequence[str] | None = None, label_column: str | None = None
) -> LabelledTexts:
    """Read texts or pairs with their classes.

    Args:
        path: A file of `read_rows`.
        text_columns: One or two columns of texts; default: the usual names.
        label_column: The column of labels; default: the usual names.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken, its columns leave a doubt, a text is empty, or a label is missing, says that
            there is none or is a number with decimals. The message says where.
    """
    table = file_table(path)
    columns, label_column = find_columns(table, text_columns, label_column)
    texts: list[tuple[str, ...]] = []
    labels: list[str] = []
    first: dict[str, str] = {}  # where each class stands first
    for location, row in table.read([*columns, label_column]):
        label = plain_label(row[label_column], location)
        if label is None:
            raise ValueError(f"{location}: there is no label; add it or remove this row.")
        number = as_number(label)  # a table of text spells it
        if isinstance(number, float) and not number.is_integer():
            raise ValueError(f"{location}: the label {label} is a number with decimals, but a probe needs classes.")
        texts.append(tuple(row_texts(row, columns, location)))
        labels.append(class_name(label))
        first.setdefault(labels[-1], location)
    for name, location in first.items():
        if says_no_class(name, first):
            raise ValueError(f"{location}: the label {name!r} says that there is none: remove this row.")
    return LabelledTexts(str(path), texts, labels)


def probe(encode: Encode, files: Sequence[LabelledTexts]) -> ProbeMetrics:
    """Train logistic regression on a model's vectors as they are, and test it.

    A single text's features are its vector; a pair's are those of SentEval, |u - v| and u * v.

    Args:
        encode: Gives the vectors of sentences. (sentences, numbers)
        files: One: ten-fold cross-validation, C chosen in each fold by ten-fold cross-validation of what it trains on.
            Two: training, with C from ten-fold cross-validation, and test. Three: training, validation, which chooses
            C, and test.

    Raises:
        ValueError: A class has too few examples, or is not in the training data.
    """
    check_files(files)
    features = [_features(encode, file.texts) for file in files]
    labels = [np.array(file.labels) for file in files]
    if len(files) == 1:
        accuracy, macro_f1, chosen = _nested(features[0], labels[0])
        protocol = f"nested {FOLDS}-fold cross-validation"
    elif len(files) == 2:
        accuracy, macro_f1, chosen = _with_test(features, labels)
        protocol = f"test file, C by {FOLDS}-fold cross-validation"
    else:
        accuracy, macro_f1, chosen = _with_validation(features, labels)
        protocol = "test file, C by validation file"
    return ProbeMetrics(accuracy, macro_f1, chosen, protocol, sorted(set(files[0].labels)), len(labels[-1]))


def check_files(files: Sequence[LabelledTexts]) -> None:
    """Refuse the files of a probe that cannot be trained or tested, before a model is loaded.

    Raises:
        ValueError: As in `probe`.
    """
    train = Counter(files[0].labels)
    if len(train) < 2:
        raise ValueError(
            f"{files[0].name}: a probe needs two classes or more, and there is {', '.join(train) or 'none'}."
        )
    # What a fold of the outer cross-validation leaves must be enough for the inner one.
    needed = {1: FOLDS + 2, 2: FOLDS}.get(len(files), 1)
    for name, count in train.items():
        if count < needed:
            raise ValueError(
                f"{files[0].name}: class {name!r} has {count} examples, and {FOLDS}-fold cross-validation needs "
                f"{needed}: add examples, or give files for training, validation and test."
            )
    learnt = set(zip(files[0].texts, files[0].labels, strict=True))
    for file in files[1:]:
        if learnt.issuperset(zip(file.texts, file.labels, strict=True)):
            raise ValueError(
                f"{file.name} holds nothing but examples of {files[0].name}: a probe is tested on others than it is "
                "trained on."
            )
    for file in files:
        unseen = sorted(set(file.labels) - set(train))
        if unseen:
            raise ValueError(f"{file.name}: class {unseen[0]!r} does not occur in {files[0].name}.")
        if {len(texts) for texts in file.texts} != {len(files[0].texts[0])}:
            raise ValueError(
                f"{file.name} and {files[0].name} differ: one holds pairs of texts, the other single ones."
            )


def _features(encode: Encode, texts: Sequence[tuple[str, ...]]) -> Features:
    """(examples, numbers), or (examples, 2 * numbers) of pairs"""
    parts = list(zip(*texts, strict=True))
    vectors = encode([text for part in parts for text in part])  # (texts of an example * examples, numbers)
    if len(parts) == 1:
        return vectors
    first, second = np.split(vectors, 2)
    return np.hstack([np.abs(first - second), first * second])


def _regression() -> LogisticRegression:
    return LogisticRegression(max_iter=MAX_ITERATIONS)


def _search(values: Sequence[float]) -> GridSearchCV:
    """Logistic regression that chooses its C by cross-validation, and of equals the smallest."""
    return GridSearchCV(_regression(), {"C": list(values)}, scoring="accuracy", cv=_folds())


def _folds() -> StratifiedKFold:
    return StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)


def _on_all_cores() -> joblib.parallel_config:
    # Threads share the vectors, and what they wait for, numpy's products, runs beside Python.
    return joblib.parallel_config("threading", n_jobs=-1)


def _nested(features: Features, labels: Features) -> tuple[float, float, list[float]]:
    with _on_all_cores():
        found = cross_validate(
            _search(NESTED_C),
            features,
            labels,
            scoring=["accuracy", "f1_macro"],
            cv=_folds(),
            return_estimator=True,
            error_score="raise",
        )
    chosen = [float(estimator.best_params_["C"]) for estimator in found["estimator"]]
    return float(found["test_accuracy"].mean()), float(found["test_f1_macro"].mean()), chosen


def _with_test(features: Sequence[Features], labels: Sequence[Features]) -> tuple[float, float, list[float]]:
    with _on_all_cores():
        search = _search(TEST_C).fit(features[0], labels[0])
    return *_accuracy_and_f1(search, features[1], labels[1]), [float(search.best_params_["C"])]


def _with_validation(features: Sequence[Features], labels: Sequence[Features]) -> tuple[float, float, list[float]]:
    fitted = [_regression().set_params(C=c).fit(features[0], labels[0]) for c in NESTED_C]
    best = int(np.argmax([regression.score(features[1], labels[1]) for regression in fitted]))
    return *_accuracy_and_f1(fitted[best], features[2], labels[2]), [NESTED_C[best]]


def _accuracy_and_f1(fitted: Any, features: Features, labels: Features) -> tuple[float, float]:
    """Accuracy and macro F1."""
    predicted = fitted.predict(features)  # (examples,)
    return float(accuracy_score(labels, predicted)), float(f1_score(labels, predicted, average="macro"))
