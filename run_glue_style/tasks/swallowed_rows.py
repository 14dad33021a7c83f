"""Rows with a class that an open quotation mark has made part of a text."""

from modeling_dsa.files.open_quotes import rows_within
from modeling_dsa.files.rows import Row

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
    label_index = list(row).index(label_column)
    for fields in rows_within(list(row.values())):
        if labels.class_names and len(fields) == len(row) and _is_class(fields[label_index], labels):
            raise ValueError(
                f"{location}: a text holds what looks like a row of its own, {','.join(fields)[:80]!r}: close the "
                "quotation mark that is open before it, or double it where it is a character of the text"
            )


def _is_class(field: str, labels: Labels) -> bool:
    """Whether a field is a label, without the blank that stands after a comma of a sentence."""
    try:
        return field == field.strip() and labels.read(field, "") is not None
    except ValueError:
        return False
