"""Quotations of several lines: in a CSV file one that nobody closes makes rows part of a text; in a table with tabs,
where quotation marks are plain characters, one that another program wrote makes rows of a text's lines.
"""

import csv
from collections.abc import Iterator, Sequence
from itertools import pairwise


def rows_within(fields: Sequence[str]) -> Iterator[list[str]]:
    """What the lines of a row's fields would be if they were rows of their own.

    Args:
        fields: Of one row.

    Yields:
        The fields of each line but the last one of a field, which closes the quotation; of a first line together with
        the fields before it.
    """
    for index, field in enumerate(fields):
        if "\n" not in field:
            continue
        first, *others = field.splitlines()
        yield [*fields[:index], *_fields(first)]
        yield from map(_fields, others[:-1])


def swallowed_row(fields: Sequence[str], columns: int) -> str | None:
    """A line within a row that looks like one of that many columns: in a sentence, a blank stands behind a comma and
    none stands between the digits of a number.
    """
    for found in rows_within(fields):
        if len(found) == columns > 1 and not any(
            after[:1].isspace() or (before[-1:].isdigit() and after[:1].isdigit()) for before, after in pairwise(found)
        ):
            return ",".join(found)
    return None


class QuotedRow:
    """Finds lines of a table that would be one row if its quotation marks were no plain characters.

    Attributes:
        columns: How many the table has.
    """

    def __init__(self, columns: int) -> None:
        """Begin at the first line of a table with so many columns."""
        self.columns = columns
        self._first, self._fields = 0, 0  # the line in which a quotation is open, and the fields up to it; 0 if none is

    def ended_by(self, number: int, fields: Sequence[str]) -> int | None:
        """The number of the first of the lines that this one ends; None where it ends none.

        Args:
            number: Of the line.
            fields: Between its tabs; none in an empty line.
        """
        first, before = self._first, self._fields
        if first and (not fields or (len(fields) == 1 and not _is_odd(fields[0]))):
            return None  # within the quotation
        closes = first > 0 and _is_odd(fields[0]) and fields[0].endswith('"')
        others = fields[1:] if closes else fields
        opens = len(others) > 0 and _is_odd(others[-1]) and others[-1].startswith('"')
        reached = before + len(others) if closes else len(others)
        self._first, self._fields = (first if closes else number, reached) if opens else (0, 0)
        return first if closes and not opens and reached == self.columns else None


def _is_odd(field: str) -> bool:
    return field.count('"') % 2 == 1


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])
