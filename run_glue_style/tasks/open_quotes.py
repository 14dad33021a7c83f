"""A quotation mark in a CSV file that nobody closes, so that rows after it become part of a text."""

import csv

from modeling_dsa.files.text_files import Row

from .labels import Labels


def refuse_swallowed_rows(row: Row, label_column: str, labels: Labels, location: str) -> None:
    """Refuse a text of several lines of which one would be a row of its own, with a class where the label stands.

    Args:
        row: All of its columns, in the order of the file.
        label_column: The one of labels.
        labels: What stands there; among texts numbers are no sign of a row.
        location: Where the row ends, for messages.

    Raises:
        ValueError: Such a line is there.
    """
    if not labels.names:
        return
    label_index = list(row).index(label_column)
    for index, (column, text) in enumerate(row.items()):
        first, *others = (text or "").splitlines() or [""]
        # The row itself begins in the first line, and the last one, which closes the quotation, is none of its own.
        lines = [[*list(row.values())[:index], *_fields(first)], *map(_fields, others[:-1])] if others else []
        for fields in lines:
            if len(fields) == len(row) and _is_class(fields[label_index], labels):
                raise ValueError(
                    f"{location}: the {column} holds what looks like a row of its own, {','.join(fields)[:80]!r}: "
                    "close the quotation mark that is open before it, or double it where it is a character of the text"
                )


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])


def _is_class(field: str, labels: Labels) -> bool:
    """Whether a field is a label, without the blank that stands after a comma of a sentence."""
    try:
        return field == field.strip() and labels.read(field, "") is not None
    except ValueError:
        return False
