"""The distinct sentences of a file whose weight vectors or heads are shown, with their labels where it has them."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from modeling_dsa.files.columns import find_columns, find_text_columns, has_label_column
from modeling_dsa.files.label_values import class_name, plain_label
from modeling_dsa.files.tables import file_table
from modeling_dsa.files.text_files import file_extension, read_lines, required_text


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
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if file_extension(path) == ".txt" and not text_columns and label_column is None:
        texts = dict.fromkeys(required_text(line, location) for location, line in read_lines(path))
        return Sentences(list(itertools.islice(texts, count)), [])
    table = file_table(path)
    if label_column is not None or has_label_column(table):
        columns, label_column = find_columns(table, text_columns or None, label_column)
    else:
        columns = tuple(text_columns) or find_text_columns(table, pairs=None)
    found: dict[str, str] = {}
    for location, row in table.read([*columns, *([] if label_column is None else [label_column])]):
        label = None if label_column is None else plain_label(row[label_column], location)
        for column in columns:
            text = required_text(row[column], f"{location}, column {column!r}")
            found.setdefault(text, "no label" if label is None else class_name(label))
        if len(found) >= count:
            break
    return Sentences(list(found)[:count], [] if label_column is None else list(found.values())[:count])
