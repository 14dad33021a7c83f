"""The distinct sentences of a file whose weight vectors or heads are shown, with their labels where it has them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.files.columns import check_text_columns, find_columns, find_text_columns, has_label_column
from modeling_dsa.files.label_values import class_name, plain_label
from modeling_dsa.files.tables import Table, file_table
from modeling_dsa.files.text_files import file_extension
from modeling_dsa.files.text_values import row_texts
from modeling_dsa.prediction.texts import open_texts


@dataclass(frozen=True)
class LabelledSentences:
    """Sentences, each with its label where there are labels.

    Attributes:
        texts: The sentences.
        labels: Their labels, or none at all. (sentences,) or ()
    """

    texts: list[str]
    labels: list[str]


def read_sentences(
    path: Path, text_columns: Sequence[str], label_column: str | None, count: int, *, with_labels: bool = True
) -> LabelledSentences:
    """Read sentences, with labels where these are wanted and the file has a column that is named so.

    Args:
        path: A file of texts, such as `dsa predict` reads; both texts of a pair are sentences.
        text_columns: Its columns of texts; none: the usual names.
        label_column: Its column of labels; None: a usual name, if there is one.
        count: How many distinct sentences to read at most.
        with_labels: Whether labels are wanted.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken, its columns leave a doubt, or a text is empty. The message says where.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    check_text_columns(text_columns)
    texts: Iterator[tuple[str, str]]
    if file_extension(path) == ".txt" and not text_columns and label_column is None:
        texts = ((cast(str, text), "") for text in open_texts(str(path), None, (), pairs=False))
    else:
        table = file_table(path)
        if label_column is not None or (with_labels and has_label_column(table)):
            columns, label_column = find_columns(table, text_columns or None, label_column)
        else:
            columns = tuple(text_columns) or find_text_columns(table, pairs=None)
        texts = _texts_and_labels(table, columns, label_column)
    found: dict[str, str] = {}
    for text, label in texts:
        found.setdefault(replace_surrogates(text), label)
        if len(found) >= count:
            break
    if not found:
        raise ValueError(f"{path} holds no text.")
    return LabelledSentences(list(found), [] if label_column is None else list(found.values()))


def _texts_and_labels(table: Table, columns: Sequence[str], label_column: str | None) -> Iterator[tuple[str, str]]:
    """Each text of a table with its row's label, which is empty where there are none."""
    for location, row in table.read([*columns, *([] if label_column is None else [label_column])]):
        label = ""
        if label_column is not None:
            value = plain_label(row[label_column], location)
            label = "no label" if value is None else class_name(value)
        for text in row_texts(row, columns, location):
            yield text, label
