"""The distinct sentences of a file whose weight vectors or heads are shown, with their labels where it has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from modeling_dsa.files.columns import LABELS, find_columns
from modeling_dsa.files.label_values import class_name, plain_label
from modeling_dsa.files.tables import file_table
from modeling_dsa.files.text_files import file_extension, required_text
from modeling_dsa.prediction.texts import open_texts


@dataclass(frozen=True)
class Sentences:
    """Sentences, each with its label where there are labels.

    Attributes:
        texts: The sentences.
        labels: Their labels, or none at all. (sentences,) or ()
    """

    texts: list[str]
    labels: list[str]


def read_sentences(path: Path, text_columns: Sequence[str], label_column: str | None, count: int) -> Sentences:
    """Read sentences, with labels where the file has a column that is named so.

    Args:
        path: A file of texts, such as `dsa predict` reads; both texts of a pair are sentences.
        text_columns: Its columns of texts; none: the usual names.
        label_column: Its column of labels; None: a usual name, if there is one.
        count: How many distinct sentences to read at most.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken, its columns leave a doubt, or a text is empty. The message says where.
    """
    found: dict[str, str] = {}
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if not _has_labels(path, label_column):
        for text in open_texts(str(path), None, text_columns, pairs=False):
            found.setdefault(cast(str, text), "")
            if len(found) >= count:
                break
        return Sentences(list(found), [])
    table = file_table(path)
    columns, label_column = find_columns(table, text_columns or None, label_column)
    for location, row in table.read([*columns, label_column]):
        label = plain_label(row[label_column], location)
        for column in columns:
            text = required_text(row[column], f"{location}, column {column!r}")
            found.setdefault(text, "no label" if label is None else class_name(label))
        if len(found) >= count:
            break
    return Sentences(list(found)[:count], list(found.values())[:count])


def _has_labels(path: Path, label_column: str | None) -> bool:
    if label_column is not None:
        return True
    if file_extension(path) == ".txt":
        return False
    first: dict[str, Any] = next((dict(row) for _, row in file_table(path).read(None)), {})
    return any(column.strip().lower() in LABELS.names for column in first)
