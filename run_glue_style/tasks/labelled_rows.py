"""Rows of texts with one label each, from files or from the Hub, as one kind of `datasets.Dataset`."""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from datasets import ClassLabel, Dataset, DatasetDict, Features, Value, load_dataset
from datasets.exceptions import DatasetGenerationError

from modeling_dsa.files.text_files import Row, Rows, file_ending, open_parquet, read_rows

logger = logging.getLogger(__name__)

UNLABELLED = -1
Reader: TypeAlias = Callable[[Path], Rows]
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # from a broken \\u escape in JSON; cannot be stored


@dataclass(frozen=True)
class RowRules:
    """What the rows of one kind of data are, and how they are found in the columns of others.

    Attributes:
        texts: The columns of texts, and the names that each may have in the data, the first of which wins.
        labels: The names that the column of labels may have.
        label_names: The classes, by number. In the data a label is such a name in any case, its number, or `-` or -1
            for a row without a label.
        version: To be raised when reading changes: `datasets` hashes a function of a module by its name, so its
            caches must be told.
    """

    texts: Mapping[str, tuple[str, ...]]
    labels: tuple[str, ...]
    label_names: tuple[str, ...]
    version: int

    @property
    def features(self) -> Features:
        """The columns of the result: the texts and `label`."""
        return Features(
            {**{column: Value("string") for column in self.texts}, "label": ClassLabel(names=list(self.label_names))}
        )

    def convert(self, row: Row, place: str) -> Row:
        """Check one row and give it the columns of the result.

        Args:
            row: Its values by column.
            place: Where it stands, for messages.

        Raises:
            ValueError: A column is missing, the label is unknown, or a text of a labelled row is none.
        """
        texts = {column: _first_of(names, row, place) for column, names in self.texts.items()}
        found = _first_of(self.labels, row, place)
        label = self._number(found)
        if label is None:
            raise ValueError(
                f"{place}: the label {found!r} is unknown; it must be one of {', '.join(self.label_names)}, "
                f"0 to {len(self.label_names) - 1}, or - or -1 for a row without a label"
            )
        if label != UNLABELLED:
            for column, text in texts.items():
                if not isinstance(text, str) or not text.strip() or _HALF_CHARACTER.search(text):
                    raise ValueError(f"{place}: the {column} is {text!r}, not a sentence; mend or remove this row")
        return {**texts, "label": label}

    def _number(self, label: object) -> int | None:
        word = str(label).strip().lower()
        if word in self.label_names:
            return self.label_names.index(word)
        numbers = {str(number): number for number in range(len(self.label_names))}
        return {**numbers, "-": UNLABELLED, str(UNLABELLED): UNLABELLED}.get(word)


def load_file(split: str, path: Path, rules: RowRules, reader: Reader | None = None) -> Dataset:
    """Read the labelled rows of a file, once: later calls take them from the cache of `datasets`.

    Args:
        split: The name of the split, for messages.
        path: A file.
        rules: What its rows are.
        reader: Reads them, a function of a module or a `functools.partial` of one; default: `read_rows`, and class
            numbers of a Parquet file that `datasets` wrote are matched by their names.

    Returns:
        The columns of `rules.features`. Rows without a label are dropped, and how many is logged.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file has another ending, is broken or empty or has no label at all, or as in
            `RowRules.convert`. The sentence names the file, the row and the value.
    """
    path = path.absolute()
    where = f"{path}, split {split!r}"
    if not path.is_file():
        raise FileNotFoundError(f"{where}: there is no such file")
    status = path.stat()
    try:
        rows = Dataset.from_generator(
            _read_file,
            features=rules.features,
            gen_kwargs={
                "path": path,
                "rules": rules,
                "reader": reader,
                "version": (status.st_size, status.st_mtime_ns),
            },
        )
    except DatasetGenerationError as error:
        if type(error.__cause__) is ValueError:  # ours
            raise error.__cause__ from None
        raise
    labelled = _drop_unlabelled(rows, where)
    if not len(labelled):
        raise ValueError(f"{where}: there is no row with a label")
    return labelled


def load_hub(name: str, config: str | None, revision: str | None, rules: RowRules) -> DatasetDict:
    """Load a data set of labelled rows from the Hub or a local folder, with all of its splits.

    Where the data set names its classes they are matched by name, so their order may differ; where it has bare
    integers they must follow `rules.label_names`.

    Args:
        name: Of the data set, or a folder.
        config: The configuration, where the data set has several.
        revision: A branch, tag or commit of the data set's repository.
        rules: What its rows are.

    Returns:
        The columns of `rules.features` for each split; a split without any label (a hidden test set) is empty.

    Raises:
        ConnectionError: The Hub cannot be reached and the data set is not in the cache.
        FileNotFoundError: There is no such data set or folder.
        ValueError: There is no such configuration, or as in `RowRules.convert`.
    """
    try:
        splits = load_dataset(name, config, revision=revision)
    except ConnectionError as error:
        raise ConnectionError(
            f"the data set {name!r} is not in the cache and cannot be downloaded ({error}): connect to the network "
            "once, or train from local files"
        ) from None
    converted = DatasetDict()
    for split, rows in splits.items():
        where = f"{name}, split {split!r}"
        found = rows.map(
            _convert_indexed,
            with_indices=True,
            fn_kwargs={"where": where, "features": rows.features, "rules": rules},
            remove_columns=rows.column_names,
            features=rules.features,
        )
        converted[split] = _drop_unlabelled(found, where)
    return converted


def fingerprint(dataset: Dataset, columns: Sequence[str]) -> str:
    """SHA-256 of the values of these columns in the order of the rows, the same for the same rows from any source.

    Args:
        dataset: One split.
        columns: In the order in which they are hashed.

    Returns:
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for batch in dataset.with_format(None).select_columns(list(columns)).iter(batch_size=1000):
        for row in zip(*(batch[column] for column in columns), strict=True):
            digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()


def _read_file(path: Path, rules: RowRules, reader: Reader | None, version: tuple[int, ...]) -> Iterator[Row]:  # noqa: ARG001
    """Yield the rows of a file; `version` only makes the key under which `datasets` keeps them."""
    empty = True
    for place, row in _read_table(path, rules) if reader is None else reader(path):
        empty = False
        yield rules.convert(row, place)
    if empty:
        raise ValueError(f"{path}: the file holds no rows")


def _read_table(path: Path, rules: RowRules) -> Rows:
    if file_ending(path) != ".parquet":
        return read_rows(path)
    with open_parquet(path) as table:
        features = Features.from_arrow_schema(table.schema_arrow)
    names = [name for names in (*rules.texts.values(), rules.labels) for name in names if name in features]
    return ((place, _with_class_names(row, features, rules)) for place, row in read_rows(path, names or None))


def _convert_indexed(row: Row, index: int, where: str, features: Features, rules: RowRules) -> Row:
    return rules.convert(_with_class_names(row, features, rules), f"{where}, row {index + 1}")


def _with_class_names(row: Row, features: Features, rules: RowRules) -> Row:
    """Put the class's own name in the place of its number, for the order of the classes may be another there."""
    for column in rules.labels:
        feature, value = features.get(column), row.get(column)
        if isinstance(feature, ClassLabel) and isinstance(value, int) and value >= 0:
            row = {**row, column: feature.int2str(value)}
    return row


def _first_of(names: Sequence[str], row: Row, place: str) -> object:
    for name in names:
        if name in row:
            return row[name]
    raise ValueError(f"{place}: there is no column {' or '.join(names)}, only {', '.join(row)}")


def _drop_unlabelled(rows: Dataset, where: str) -> Dataset:
    labelled = rows.filter(_is_labelled, input_columns="label")
    logger.info("%s: %d of %d rows dropped, without a label", where, len(rows) - len(labelled), len(rows))
    return labelled


def _is_labelled(label: int) -> bool:
    return label != UNLABELLED
