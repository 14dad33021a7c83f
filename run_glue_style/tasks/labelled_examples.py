"""Labelled examples, from files or from the Hub, as one kind of `datasets.Dataset`."""

import errno
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import datasets
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value, concatenate_datasets, load_dataset
from datasets.exceptions import DatasetGenerationError

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.command.messages import listed
from modeling_dsa.files.data_set_folders import folder_files, folder_hashes
from modeling_dsa.files.hashing import file_hash, require_hash
from modeling_dsa.files.parquet_rows import count_rows, open_parquet
from modeling_dsa.files.rows import Row, Rows
from modeling_dsa.files.tables import Table, file_table, name_classes, with_class_names
from modeling_dsa.files.text_files import file_extension

from .labels import Labels
from .swallowed_rows import refuse_swallowed_rows

logger = logging.getLogger(__name__)

Reader: TypeAlias = Callable[[Path], Rows]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, or a user's share of one


@dataclass(frozen=True)
class ExampleFormat:
    """What the examples of a task are, and in which columns of the data they are found.

    Attributes:
        texts: The columns of texts, and the names that each may have in the data. Where a row has two of them, they
            must say the same.
        label_columns: The names that the column of labels may have, likewise.
        labels: What the labels are.
        version: To be raised when reading changes: `datasets` hashes a function of a module by its name, so its
            caches must be told.
    """

    texts: Mapping[str, tuple[str, ...]]
    label_columns: tuple[str, ...]
    labels: Labels
    version: int = 7

    @property
    def features(self) -> Features:
        """The columns of the result: the texts and `label`."""
        return Features({**{column: Value("string") for column in self.texts}, "label": self.labels.feature})

    def convert(self, row: Row, location: str, *, may_lack_label: bool = False) -> Row:
        """Check one row and give it the columns of the result.

        Args:
            row: Its values by column.
            location: Where it stands, for messages.
            may_lack_label: Whether None is no label, and not a mistake.

        Raises:
            ValueError: A column is missing, two names of one column say different things, the label is unknown, or a
                text of a labelled row is none.
        """
        columns = {column: _agreed(names, row, location, lambda value: value) for column, names in self.texts.items()}

        def read(value: object) -> int | float | None:
            return None if value is None and may_lack_label else self.labels.read(value, location)

        label = read(row[_agreed(self.label_columns, row, location, read)])
        if label is not None:
            for name in columns.values():
                text = row[name]
                if not isinstance(text, str) or not text.strip():
                    shown = f"{text!r:.80}"
                    raise ValueError(f"{location}: the {name} is {shown}, not a text; fix or remove this row")
        texts = {column: row[name] for column, name in columns.items()}
        if label is not None:  # half a character of a broken \\u escape in JSON cannot be stored
            texts = {column: replace_surrogates(text) for column, text in texts.items()}
        return {**texts, "label": label}

    def fingerprint(self, dataset: Dataset) -> str:
        """SHA-256 of a split's texts and labels in the order of the examples, the same from any source.

        Returns:
            64 hexadecimal digits.
        """
        digest = hashlib.sha256()
        columns = list(self.features)
        for batch in dataset.with_format(None).select_columns(columns).iter(batch_size=1000):
            for row in zip(*(batch[column] for column in columns), strict=True):
                digest.update(json.dumps(row).encode() + b"\n")
        return digest.hexdigest()


@contextmanager
def _writing_cache() -> Iterator[None]:
    """Say that it is the cache of `datasets` whose disk is full; its errors name no file, or speak of a closed one."""
    try:
        yield
    except (OSError, ValueError, DatasetGenerationError) as error:
        causes = (error, error.__cause__, error.__context__)
        cause = next((cause for cause in causes if getattr(cause, "errno", None) in _FULL), None)
        if cause is None:
            raise
        raise OSError(
            f"The cache of datasets, {datasets.config.HF_DATASETS_CACHE}, cannot be written ({cause}): free some space "
            "there, or name a folder on another disk in HF_DATASETS_CACHE."
        ) from error


def dataset_table(dataset: Dataset, name: str) -> Table:
    """The rows of a split of a loaded data set.

    Args:
        dataset: The split.
        name: What messages call it.
    """
    names = _class_names(dataset.features)

    def read(columns: Sequence[str] | None) -> Rows:
        rows = dataset if columns is None else dataset.select_columns(list(columns))
        return with_class_names(((f"{name}, row {index}", row) for index, row in enumerate(rows, 1)), names)

    return Table(name, read, names, may_lack_labels=True)


def load_files(files: Mapping[str, Path], form: ExampleFormat) -> DatasetDict:
    """Read labelled examples from files, as `load_file` does.

    Args:
        files: The file of each split, such as `{"train": Path("train.csv")}`.
        form: What the examples are.
    """
    return DatasetDict({split: load_file(split, path, form) for split, path in files.items()})


@_writing_cache()
def load_file(split: str, path: Path, form: ExampleFormat, reader: Reader | None = None) -> Dataset:
    """Read the labelled examples of a file, once: later calls take them from the cache of `datasets`.

    Args:
        split: The name of the split, for messages.
        path: A file, of a format of `read_rows` if there is no other reader.
        form: What its examples are.
        reader: Reads its rows, a function of a module or a `functools.partial` of one; default: `read_rows`, and class
            indices of a Parquet file that `datasets` wrote are matched by their names.

    Returns:
        The columns of `form.features`. Rows without a label are dropped, and how many is logged.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file has an unsupported extension, is broken or empty or has no label at all, or as in
            `ExampleFormat.convert`. The sentence names the file, the row and the value.
        OSError: The disk of the cache is full.
    """
    path = existing_file(split, path)
    examples = _labelled_examples(split, path, form, reader)
    if not len(examples):
        raise ValueError(f"{path}, split {split!r}: there is no row with a label")
    return examples


@_writing_cache()
def load_folder(files: Mapping[str, Sequence[Path]], form: ExampleFormat) -> DatasetDict:
    """Read labelled examples from a folder, each of its files as `load_file` does.

    Args:
        files: The files of each split, as `folder_files` gives them.
        form: What the examples are.

    Returns:
        The columns of `form.features` for each split; a split without any label (a hidden test set) is empty.

    Raises:
        ValueError: As in `load_file`.
        OSError: The disk of the cache is full.
    """
    return DatasetDict(
        {
            split: concatenate_datasets([_examples_of_folder(split, path, form) for path in paths])
            for split, paths in files.items()
        }
    )


def _examples_of_folder(split: str, path: Path, form: ExampleFormat) -> Dataset:
    """Those of a file; what writes Parquet in parts leaves some of them without rows, and rows without labels."""
    is_parquet = file_extension(path) == ".parquet"
    if is_parquet and not count_rows(path):
        return Dataset.from_dict({column: [] for column in form.features}, features=form.features)
    return _labelled_examples(split, path, form, may_lack_labels=is_parquet)


def _labelled_examples(
    split: str, path: Path, form: ExampleFormat, reader: Reader | None = None, *, may_lack_labels: bool = False
) -> Dataset:
    """The examples of a file that have a label; arguments as for `load_file` and `ExampleFormat.convert`."""
    try:
        rows = Dataset.from_generator(
            _read_examples,
            features=form.features,
            gen_kwargs={
                "path": path,
                "form": form,
                "reader": reader,
                "sha256": file_hash(path),
                "may_lack_labels": may_lack_labels,
            },
        )
    except DatasetGenerationError as error:
        if type(error.__cause__) is ValueError:  # ours
            raise error.__cause__ from None
        raise
    return _drop_unlabelled(rows, f"{path}, split {split!r}")


@_writing_cache()
def open_dataset(name: str, config: str | None) -> DatasetDict:
    """Open a data set of the Hub or of a local folder, with all of its splits.

    Raises:
        ConnectionError: The Hub cannot be reached and the data set is not in the cache.
        FileNotFoundError: There is no such data set or folder.
        ValueError: The name is empty, or there is no such configuration.
    """
    if not name.strip():
        raise ValueError("--dataset_name is empty: give a data set of the Hub, or a folder.")
    try:
        return load_dataset(name, config, cache_dir=_folder_cache(name, config))
    except ConnectionError as error:
        raise ConnectionError(
            f"the data set {name!r} is not in the cache and cannot be downloaded ({error}): connect to the network "
            "once, or train from local files"
        ) from None


def _folder_cache(name: str, config: str | None) -> str | None:
    """Where `datasets` keeps what it reads of a folder on this machine; None of what is none."""
    hashes = folder_hashes(name, config)
    key = hashlib.sha256(json.dumps([config, *hashes.values()]).encode()).hexdigest()
    return str(Path(datasets.config.HF_DATASETS_CACHE, "folders", key)) if hashes else None


def load_hub(name: str, config: str | None, form: ExampleFormat) -> DatasetDict:
    """Load a data set of labelled examples from the Hub or a local folder, with all of its splits.

    Where the data set names its classes they are matched by name, so their order may differ.

    Args:
        name: Of the data set, or a folder.
        config: The configuration, where the data set has several.
        form: What its examples are.

    Returns:
        The columns of `form.features` for each split; a split without any label (a hidden test set) is empty.

    Raises:
        ConnectionError, FileNotFoundError: As in `open_dataset`.
        ValueError: As in `open_dataset`, `folder_files` or `ExampleFormat.convert`.
    """
    if files := folder_files(name, config):
        return load_folder(files, form)
    splits = open_dataset(name, config)
    return DatasetDict(
        {split: convert_dataset(f"{name}, split {split!r}", rows, form) for split, rows in splits.items()}
    )


@_writing_cache()
def convert_dataset(name: str, rows: Dataset, form: ExampleFormat) -> Dataset:
    """Give a split of a data set the columns of `form`, without the rows that have no label."""
    examples = rows.map(
        _convert_indexed,
        with_indices=True,
        fn_kwargs={"name": name, "class_names": _class_names(rows.features), "form": form},
        remove_columns=rows.column_names,
        features=form.features,
    )
    return _drop_unlabelled(examples, name)


def existing_file(split: str, path: Path) -> Path:
    """The absolute path of a split's file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is a folder, or a pipe, which could not be read twice.
    """
    path = path.absolute()
    if not path.exists():
        raise FileNotFoundError(f"{path}, split {split!r}: there is no such file")
    if not path.is_file():
        kind, instead = ("a folder", "a file in it") if path.is_dir() else ("no regular file", "one with what it gives")
        raise ValueError(f"{path}, split {split!r}, is {kind}: give {instead}")
    return path


def _read_examples(
    path: Path, form: ExampleFormat, reader: Reader | None, sha256: str, may_lack_labels: bool
) -> Iterator[Row]:
    """Yield the examples of a file; `sha256` is of its contents, and makes the key under which `datasets` keeps them.

    Raises:
        ValueError: They have changed meanwhile.
    """
    empty = True
    is_csv = reader is None and file_extension(path) == ".csv"
    for location, row in _needed_rows(path, form) if reader is None else reader(path):
        empty = False
        if is_csv:
            label_column = next((name for name in form.label_columns if name in row), None)
            if label_column is not None:
                refuse_swallowed_rows(row, label_column, form.labels, location)
        yield form.convert(row, location, may_lack_label=may_lack_labels)
    if empty:
        raise ValueError(f"{path}: the file holds no rows")
    require_hash(path, sha256)


def _needed_rows(path: Path, form: ExampleFormat) -> Rows:
    """All columns but those of a Parquet file that nobody asks for."""
    columns: list[str] = []
    if file_extension(path) == ".parquet":
        with open_parquet(path) as opened:
            there = opened.schema_arrow.names
        columns = [name for names in (*form.texts.values(), form.label_columns) for name in names if name in there]
    return file_table(path).read(columns or None)


def _convert_indexed(
    row: Row, index: int, name: str, class_names: Mapping[str, Sequence[str]], form: ExampleFormat
) -> Row:
    return form.convert(name_classes(row, class_names), f"{name}, row {index + 1}", may_lack_label=True)


def _class_names(features: Features) -> dict[str, Sequence[str]]:
    return {name: feature.names for name, feature in features.items() if isinstance(feature, ClassLabel)}


def _agreed(names: Sequence[str], row: Row, location: str, meaning: Callable[[object], object]) -> str:
    """The first of several names of one column that a row has; all that it has must mean the same."""
    there = [name for name in names if name in row]
    if not there:
        raise ValueError(f"{location}: there is no column {' or '.join(names)}, only {listed(row)}")
    for other in there[1:]:
        if meaning(row[other]) != meaning(row[there[0]]):
            raise ValueError(
                f"{location}: {there[0]} is {row[there[0]]!r:.80} and {other} is {row[other]!r:.80}, which should be "
                "the same; fix the row or rename one of the columns"
            )
    return there[0]


def _drop_unlabelled(rows: Dataset, where: str) -> Dataset:
    labelled = rows.filter(_is_labelled, input_columns="label")
    if len(labelled) < len(rows):
        logger.info("%s: %d of %d rows dropped, without a label", where, len(rows) - len(labelled), len(rows))
    return labelled


def _is_labelled(label: int | float | None) -> bool:
    return label is not None
