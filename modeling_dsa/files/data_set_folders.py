"""How `datasets` is to read a folder on this machine, so that it means what its files mean one by one."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .text_files import is_readable, read_rows


def table_options(name: str, config: str | None = None) -> dict[str, Any]:
    """Options of `load_dataset` and `load_dataset_builder` for a data set, by the rules of `read_rows`.

    By themselves they take "NA", "None" and the like of a .csv or .tsv for missing values and "001" for 1, and in a
    .tsv a quotation mark for the beginning of a field, which then swallows rows.

    Args:
        name: Of a data set of the Hub, or a folder.
        config: The configuration, where it has several.

    Returns:
        Nothing for what is no folder, holds no tables of text, or says in a card of its own how it is read.

    Raises:
        FileNotFoundError: As in `load_dataset_builder`.
        ValueError: As there, or a file of the folder would not be read.
    """
    if not Path(name).is_dir() or (Path(name) / "README.md").is_file():
        return {}
    from datasets import Features, Value, load_dataset_builder
    from datasets.packaged_modules.csv.csv import CsvConfig

    read = load_dataset_builder(name, config).config
    files: Mapping[Any, Sequence[str]] = read.data_files or {}
    _refuse_unread_files(Path(name), files)
    if not isinstance(read, CsvConfig):
        return {}
    first = next((row for paths in files.values() for path in paths for _, row in read_rows(Path(path))), {})
    texts = {"features": Features({column: Value("string") for column in first})} if first else {}
    return {"na_filter": False, **texts} | ({"quoting": csv.QUOTE_NONE} if read.sep == "\t" else {})


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
