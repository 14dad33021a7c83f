"""A quotation mark in a CSV file that nobody closes, so that rows after it become part of a text."""

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


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])
