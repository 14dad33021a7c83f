"""Which files of a folder on this machine are a data set, so that they mean what they mean one by one."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from .hashing import file_hash
from .text_files import file_extension, is_readable

if TYPE_CHECKING:
    from datasets import DatasetBuilder


def folder_files(name: str, config: str | None = None) -> dict[str, list[Path]]:
    """The files of each split of a folder on this machine, which `read_rows` and `read_lines` are to read.

    By itself `datasets` takes "NA" and the like of a .csv or .tsv for missing values, "001" for 1, the first field of a
    row that is too long for no field, and in a .tsv a quotation mark for the beginning of a field, which then swallows
    rows; texts of a .jsonl that look like dates for dates; UTF-16 for UTF-8, and a carriage return for the end of a
    line. Of Parquet files whose classes stand in different orders it takes the first file's.

    Args:
        name: Of a data set of the Hub, or a folder.
        config: The configuration, where it has several.

    Returns:
        Nothing for what is no folder, holds no texts, tables, JSON or Parquet, or says in its card what its columns are
        or how its files are read. A card of words, or one that says which file is of which split, says neither.

    Raises:
        FileNotFoundError: As in `load_dataset_builder`.
        ValueError: As there, or a file of the folder would not be read.
    """
    folder = Path(name)
    if not name.strip() or not folder.is_dir():
        return {}
    from datasets import load_dataset_builder
    from datasets.packaged_modules.csv.csv import CsvConfig
    from datasets.packaged_modules.json.json import JsonConfig
    from datasets.packaged_modules.parquet.parquet import ParquetConfig
    from datasets.packaged_modules.text.text import TextConfig
    from huggingface_hub import DatasetCard

    builder = load_dataset_builder(name, config)
    read = builder.config
    files = _data_files(builder)
    card = folder / "README.md"
    if not (card.is_file() and DatasetCard.load(card).data.get("configs")):
        _refuse_unread_files(folder, files)
    if not isinstance(read, CsvConfig | JsonConfig | TextConfig | ParquetConfig) or _says_how(builder):
        return {}
    every = [path for paths in files.values() for path in paths]
    if isinstance(read, CsvConfig):
        extensions = {file_extension(path) for path in every}  # refuses archives
        if read.sep != ("\t" if extensions == {".tsv"} else ","):  # the card says so
            return {}
    are_here = all(path.is_file() and is_readable(path) for path in every)  # the Hub's and archives' are not
    return files if are_here else {}


def folder_hashes(name: str, config: str | None = None) -> dict[Path, str]:
    """SHA-256 of the card and of each file of a folder on this machine, to keep by them what `datasets` makes of it.

    Its own key, where a card names the files, knows neither where they are nor that they have changed.

    Args:
        name: As for `folder_files`.
        config: As there.

    Returns:
        Nothing of what is no folder.
    """
    if not Path(name).is_dir():
        return {}
    from datasets import load_dataset_builder

    every = itertools.chain.from_iterable(_data_files(load_dataset_builder(name, config)).values())
    return {path: file_hash(path) for path in [Path(name, "README.md"), *every] if path.is_file()}  # no archive's part


def _data_files(builder: "DatasetBuilder") -> dict[str, list[Path]]:
    found = builder.config.data_files or {}
    return {str(split): [Path(path) for path in paths] for split, paths in found.items()}


def _says_how(builder: "DatasetBuilder") -> bool:
    """Whether a folder has a card that gives its columns' types or an option of reading."""
    of_the_files = {"name", "version", "data_dir", "data_files", "description", "sep"}
    options = [entry for entry in fields(builder.config) if entry.name not in of_the_files]
    given = any(getattr(builder.config, entry.name) != entry.default for entry in options)
    return given or builder.info.features is not None


def _refuse_unread_files(folder: Path, read: Mapping[str, Sequence[Path]]) -> None:
    """Refuse a folder of which `datasets` reads but some: where one file's name is a split's, no other file counts."""
    from datasets.data_files import FILES_TO_IGNORE

    known = {file.resolve() for files in read.values() for file in files}
    for path in sorted(folder.rglob("*")):
        names = path.relative_to(folder).parts
        if path.name in FILES_TO_IGNORE or any(name.startswith((".", "__")) for name in names):
            continue
        if is_readable(path) and path.is_file() and path.resolve() not in known:
            raise ValueError(
                f"{path} would not be read: `datasets` takes {', '.join(sorted(file.name for file in known)):.200} as "
                "the data of that folder. Give the files one by one, or a folder of files of one kind and split."
            )
