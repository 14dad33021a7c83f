"""How good a classifier's answers are: one right class for each example."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from modeling_dsa.batching_dsa import Text
from modeling_dsa.files.columns import find_columns
from modeling_dsa.files.label_values import class_index
from modeling_dsa.files.tables import file_table
from modeling_dsa.files.text_values import row_texts


@dataclass(frozen=True)
class ClassifiedTexts:
    """Texts, or pairs of them, with the index of the right class of each.

    Attributes:
        texts: Those that have a label.
        labels: Indices of classes. (texts,)
        unlabelled: How many rows were left out because their label is `-` or -1, which is none.
    """

    texts: list[Text]
    labels: list[int]
    unlabelled: int


def read_classified(
    path: Path,
    class_names: Sequence[str],
    *,
    pairs: bool,
    text_columns: Sequence[str] | None = None,
    label_column: str | None = None,
) -> ClassifiedTexts:
    """Read examples with the labels of a classifier.

    Args:
        path: A file of `read_rows`.
        class_names: The classifier's classes, by index; a label is one of them (in any case, where no two differ by
            that alone) or its index.
        pairs: Whether the classifier reads pairs of texts.
        text_columns: The columns of texts; default: the usual names.
        label_column: The column of labels; default: the usual names.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken or has no labelled row, its columns leave a doubt or do not fit the classifier, a
            text is empty or a label unknown. The message says where.
    """
    table = file_table(path)
    columns, label_column = find_columns(table, text_columns, label_column)
    if len(columns) != 1 + pairs:
        reads = "pairs of texts" if pairs else "single texts"
        raise ValueError(
            f"{path}: the model reads {reads}, but the texts are in {' and '.join(columns)}: say with --text_column "
            "which to read."
        )
    texts: list[Text] = []
    labels: list[int] = []
    unlabelled = 0
    for location, row in table.read([*columns, label_column]):
        label = class_index(row[label_column], class_names, location)
        if label is None:
            unlabelled += 1
            continue
        values = row_texts(row, columns, location)
        texts.append((values[0], values[1]) if pairs else values[0])
        labels.append(label)
    if not labels:
        raise ValueError(f"{path}: there is no row with a label.")
    return ClassifiedTexts(texts, labels, unlabelled)


def classification_metrics(
    gold: Sequence[int] | npt.NDArray[Any], predicted: Sequence[int] | npt.NDArray[Any], class_names: Sequence[str]
) -> dict[str, Any]:
    """Measure the answers of a classifier.

    Args:
        gold: The right classes. (examples,)
        predicted: The classes that were given. (examples,)
        class_names: By index.

    Returns:
        Plain Python values, ready for JSON: `accuracy`; `macro_f1`, the mean over all classes, also those that never
        occur; `per_class`, `{name: {precision, recall, f1, support}}`, 0 where one is 0 / 0; `confusion_matrix`,
        counts, one list for each right class; `majority_accuracy`, the share of the most frequent class.
    """
    classes = np.arange(len(class_names))
    counts = confusion_matrix(gold, predicted, labels=classes)  # (classes, classes)
    by_class = precision_recall_fscore_support(gold, predicted, labels=classes, zero_division=0.0)
    precision, recall, f1, support = (column.tolist() for column in by_class)
    return {
        "accuracy": float(counts.trace() / len(gold)),
        "macro_f1": float(np.mean(f1)),
        "per_class": {
            name: {"precision": precision[i], "recall": recall[i], "f1": f1[i], "support": support[i]}
            for i, name in enumerate(class_names)
        },
        "confusion_matrix": counts.tolist(),
        "majority_accuracy": float(max(support) / len(gold)),
    }
