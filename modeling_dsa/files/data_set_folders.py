"""How `datasets` is to read a folder on this machine, so that it means what its files mean one by one."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .text_files import file_extension, is_readable, read_rows

if TYPE_CHECKING:
    from datasets import DatasetBuilder


def table_options(name: str, config: str | None = None) -> dict[str, Any]:
    """Options of `load_dataset` and `load_dataset_builder` for a data set, by the rules of `read_rows`.

    By themselves they take "NA", "None" and the like of a .csv or .tsv for missing values and "001" for 1, and in a
    .tsv a quotation mark for the beginning of a field, which then swallows rows.

    Args:
        name: Of a data set of the Hub, or a folder.
        config: The configuration, where it has several.

    Returns:
        Nothing for what is no folder, holds no tables of text, or says in its card what its columns are or how a table
        is read. A card of words, or one that says which file is of which split, says neither.

    Raises:
        FileNotFoundError: As in `load_dataset_builder`.
        ValueError: As there, or a file of the folder would not be read.
    """
    folder = Path(name)
    if not folder.is_dir():
        return {}
    from datasets import Features, Value, load_dataset_builder
    from datasets.packaged_modules.csv.csv import CsvConfig
    from huggingface_hub import DatasetCard

    builder = load_dataset_builder(name, config)
    read = builder.config
    files: Mapping[Any, Sequence[str]] = read.data_files or {}
    card = folder / "README.md"
    if not (card.is_file() and DatasetCard.load(card).data.get("configs")):
        _refuse_unread_files(folder, files)
    if not isinstance(read, CsvConfig) or _says_how(builder) or _says_separator(builder, files):
        return {}
    first = next((row for paths in files.values() for path in paths for _, row in read_rows(Path(path))), {})
    texts = {"features": Features({column: Value("string") for column in first})} if first else {}
    return {"na_filter": False, **texts} | ({"quoting": csv.QUOTE_NONE} if read.sep == "\t" else {})


def line_files(builder: "DatasetBuilder", split: str) -> list[Path]:
    """The files of a split whose lines are its rows, for `read_lines`.

    By itself `datasets` takes UTF-16 for UTF-8, and a carriage return for the end of a line.

    Args:
        builder: Of a data set.
        split: Its split.

    Returns:
        Nothing for what is no folder of .txt on this machine, or has a card that says how they are read.
    """
    from datasets.packaged_modules.text.text import TextConfig

    read = builder.config
    if not isinstance(read, TextConfig) or _says_how(builder):
        return []
    files = [Path(file) for file in (read.data_files or {}).get(split, ())]
    are_here = all(file.is_file() and is_readable(file) and file_extension(file) == ".txt" for file in files)
    return files if are_here else []  # the Hub's and archives' are not


def _says_how(builder: "DatasetBuilder") -> bool:
    """Whether a folder has a card that gives its columns' types or an option of reading."""
    of_the_files = {"name", "version", "data_dir", "data_files", "description", "sep"}
    options = [entry for entry in fields(builder.config) if entry.name not in of_the_files]
    given = any(getattr(builder.config, entry.name) != entry.default for entry in options)
    return given or builder.info.features is not None


def _says_separator(builder: "DatasetBuilder", files: Mapping[Any, Sequence[str]]) -> bool:
    """Whether a folder of tables has a card that gives the separator of their columns."""
    extensions = {file_extension(Path(file)) for paths in files.values() for file in paths}
    return bool(builder.config.sep != ("\t" if extensions == {".tsv"} else ","))


def _refuse_unread_files(folder: Path, read: Mapping[Any, Sequence[str]]) -> None:
    """Refuse a folder of which `datasets` reads but some: where one file's name is a split's, no other file counts."""
    from datasets.data_files import FILES_TO_IGNORE

    known = {Path(file).resolve() for files in read.values() for file in files}
    for path in sorted(folder.rglob("*")):
        names = path.relative_to(folder).parts
        if path.name in FILES_TO_IGNORE or any(name.startswith((".", "__")) for name in names):
            continue
        if is_readable(path) and path.is_file() and path.resolve() not in known:
            raise ValueError(
                f"{path} would not be read: `datasets` takes {', '.join(sorted(file.name for file in known)):.200} as "
                "the data of that folder. Give the files one by one, or a folder of files of one kind and split."
            )
