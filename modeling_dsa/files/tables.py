"""Rows of a file or data set whose columns are known, with the names of its classes."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .parquet_rows import open_parquet
from .remote_paths import AnyPath
from .rows import Row, Rows
from .text_files import file_extension, read_rows


@dataclass(frozen=True)
class Table:
    """The rows of one split, as they stand in a file or a data set.

    Attributes:
        name: What messages call it.
        read: Gives the rows, all columns or the given ones, and the location of each. A class that the data name
            has its name and not its index.
        class_names: The names of the classes, by index, of each column for which the data name them.
        has_types: Whether values have the types of their columns; in tables of text all are texts.
        may_lack_labels: Whether a row without a label is left out, as nobody can edit it; else it is refused.
    """

    name: str
    read: Callable[[Sequence[str] | None], Rows]
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    has_types: bool = True
    may_lack_labels: bool = False


def file_table(path: AnyPath) -> Table:
    """The rows of a file.

    Raises:
        ValueError: It has an unsupported extension, or is a broken Parquet file.
    """
    if file_extension(path) != ".parquet":
        return Table(str(path), lambda columns: read_rows(path, columns), has_types="json" in file_extension(path))
    with open_parquet(path) as opened:
        names = _class_names(path, opened.schema_arrow.metadata or {})
    return Table(str(path), lambda columns: with_class_names(read_rows(path, columns), names), names)


def files_table(name: str, paths: Sequence[AnyPath]) -> Table:
    """The rows of the files of a folder, one file's after the other's. A class has its name, whatever its index is.

    Args:
        name: What messages call them.
        paths: The files, which must all have the columns that are read.

    Raises:
        ValueError: As in `file_table`.
    """
    tables = [file_table(path) for path in paths]
    first = tables[0].class_names
    return Table(
        name,
        lambda columns: itertools.chain.from_iterable(table.read(columns) for table in tables),
        {
            column: names
            for column, names in first.items()
            if all(sorted(table.class_names.get(column, ())) == sorted(names) for table in tables)
        },
        has_types=all(table.has_types for table in tables),
        may_lack_labels=all(file_extension(path) == ".parquet" for path in paths),
    )


def with_class_names(rows: Rows, class_names: Mapping[str, Sequence[str]]) -> Rows:
    """Rows, as `name_classes` gives each."""
    return ((location, name_classes(row, class_names)) for location, row in rows)


def name_classes(row: Row, class_names: Mapping[str, Sequence[str]]) -> Row:
    """Put the class's own name instead of its index, for the order of the classes may be another there."""
    named = {
        column: names[row[column]]
        for column, names in class_names.items()
        if isinstance(row.get(column), int) and 0 <= row[column] < len(names)
    }
    return {**row, **named} if named else row


def _class_names(path: AnyPath, metadata: Mapping[bytes, bytes]) -> dict[str, Sequence[str]]:
    """The classes of each column that is a `ClassLabel` of `datasets`, which writes them into a file's schema."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        labels = {column: value for column, value in features.items() if isinstance(value, dict)}
        found = {column: value["names"] for column, value in labels.items() if value.get("_type") == "ClassLabel"}
    except (ValueError, RecursionError, AttributeError, KeyError) as error:
        raise ValueError(f"{path} does not say in its schema what `datasets` would: write it again.") from error
    for column, names in found.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{path}: the classes of the column {column!r} have no names: write it again.")
    return found
