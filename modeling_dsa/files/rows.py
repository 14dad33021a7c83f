"""Rows of files, whatever the format: where each is, and its values by column."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from modeling_dsa.command.messages import it_has

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Iterator[tuple[str, Row]]  # where each row is, such as "a.csv, line 7", and its values by column


def require_column(where: str, column: str, there: Iterable[str]) -> None:
    """Refuse a column that is not there.

    Raises:
        ValueError: It is none of them.
    """
    if column not in there:
        raise ValueError(f"{where} has no column {column!r}: {it_has(column, there)}")


def wanted_columns(location: str, columns: Sequence[str] | None, there: Sequence[str]) -> Sequence[str]:
    """The columns to read of those that are there.

    Args:
        location: Of the row or the file, for the message.
        columns: Those that are asked for; None asks for all.
        there: Those that are there.

    Raises:
        ValueError: One is not there, or two have one name.
    """
    repeated = repeated_name([name for name in there if name])  # tables end in empty columns without a name
    if repeated is not None:
        raise ValueError(f"{location} has the column {repeated!r:.80} twice: rename or remove one.")
    for column in columns or ():
        require_column(location, column, there)
    return there if columns is None else columns


def repeated_name(names: Sequence[str]) -> str | None:
    """The first name that stands twice, if one does."""
    return next((name for name, count in Counter(names).items() if count > 1), None)
