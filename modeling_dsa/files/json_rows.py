"""Rows of JSON files: objects, of which one stands on each line or all in one array."""

import json
from collections.abc import Sequence
from typing import Any

from .lines import raw_lines
from .remote_paths import AnyPath
from .rows import Rows, repeated_name, wanted_columns


def json_line_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    """The rows of a file with one object a line.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is none, has a key twice, or lacks a column.
    """
    for number, line in enumerate(raw_lines(path), 1):
        if not line.strip():
            continue
        location = f"{path}, line {number}"
        row = _parsed(line, location)
        if not isinstance(row, dict):
            found, example = repr(line[:80].strip()), '{"text": "..."}'
            raise ValueError(f"{location} is no JSON object but {found}: each line must be one, such as {example}.")
        yield location, {column: row[column] for column in wanted_columns(location, columns, list(row))}


def json_file_rows(path: AnyPath, columns: Sequence[str] | None) -> Rows:
    """The rows of a file with one array of objects, which is held in memory, or one object a line.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As in `json_line_rows`.
    """
    first = next((line for line in raw_lines(path) if line.strip()), "")
    if not first.lstrip().startswith("["):
        yield from json_line_rows(path, columns)
        return
    rows = _parsed("".join(raw_lines(path)), str(path))
    for number, row in enumerate(rows, 1):
        location = f"{path}, row {number}"
        if not isinstance(row, dict):
            raise ValueError(f"{location} is no JSON object but {repr(row)[:80]}: the array must hold objects.")
        yield location, {column: row[column] for column in wanted_columns(location, columns, list(row))}


def _parsed(text: str, location: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_with_single_keys)
    except json.JSONDecodeError as error:
        if "\n" in text.rstrip("\r\n"):
            location += f", line {error.lineno}"
        what = f"{error.msg} at character {error.colno}"
    except RecursionError:
        what = "it is nested too deeply"
    except ValueError as error:  # a key that stands twice, or a number of thousands of digits
        what = str(error).partition(";")[0]
    raise ValueError(f"{location} is broken JSON ({what}): fix or remove it.")


def _with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"it has the key {repeated_name([key for key, _ in pairs])!r} twice")
    return found
