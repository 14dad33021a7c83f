"""Which single values of a row are texts."""

from collections.abc import Sequence

from .rows import Row


def required_text(value: object, location: str) -> str:
    """A text with more than blanks in it.

    Raises:
        ValueError: The value is none.
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{location}: {value!r:.80} is no text: fix or remove it.")
    return value


def optional_text(value: object, location: str) -> str:
    """A text, empty for a missing value.

    Raises:
        ValueError: The value is something else.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{location}: {value!r:.80} is no text: fix the row or name another column.")
    return value


def row_texts(row: Row, columns: Sequence[str], location: str) -> list[str]:
    """The texts of a row, by its columns of texts.

    Raises:
        ValueError: One of them has none.
    """
    return [required_text(row[column], f"{location}, column {column!r}") for column in columns]
