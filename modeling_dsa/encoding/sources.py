"""Where sentences in bulk come from: files and data sets of the Hub, read one after another."""

import glob
import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from modeling_dsa.command.messages import cause_of, it_has
from modeling_dsa.command.optional_packages import optional_packages
from modeling_dsa.files.columns import find_text_columns
from modeling_dsa.files.data_set_folders import folder_files, folder_hashes
from modeling_dsa.files.hashing import file_hash, require_hash
from modeling_dsa.files.lines import DASH, STANDARD_INPUT, read_lines, read_standard_input
from modeling_dsa.files.parquet_rows import count_rows
from modeling_dsa.files.remote_paths import AnyPath, parse_path
from modeling_dsa.files.rows import require_column
from modeling_dsa.files.tables import Table, file_table, files_table
from modeling_dsa.files.text_files import file_extension, is_readable, read_rows
from modeling_dsa.files.text_values import optional_text

COLUMN = "text"


@dataclass(frozen=True)
class SentenceSource:
    """Sentences that can be read from their first, any number of times; standard input only once.

    Attributes:
        name: Of the file or data set.
        fingerprint: What tells it from another one, and from itself after a change: the hash of a whole file, or of
            each of a folder; of a data set of the Hub that of its files' names, times and revision, as its files may be
            more than a disk holds; standard input is another one each time.
        count: How many sentences there are, where that can be known without reading them.
        read: Reads them one after another; a mistake in the data is a ValueError then.
        require_unchanged: Raises a ValueError where the file is no longer the one that has the fingerprint.
    """

    name: str
    fingerprint: dict[str, Any]
    count: int | None
    read: Callable[[], Iterator[str]]
    require_unchanged: Callable[[], None] = lambda: None


def open_sentences(source: str, column: str | None = None, split: str | None = None) -> SentenceSource:
    """Find sentences by name. Every row is a sentence: an empty line or a missing value is an empty one.

    Args:
        source: A UTF-8 file: `.txt` with one sentence a line, and what `read_rows` reads (empty lines between *its*
            rows are none), on this machine or by a URL of fsspec. Or a data set, by its Hub id or folder on this
            machine, which is streamed and needs `datasets`. Or `-`, standard input with one sentence a line.
        column: The column that holds the sentences; default: as in [`find_text_columns`]. With it a `.txt` is a
            tab-separated table.
        split: Of a data set; default: the only one.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be reached or read, it is the URL of a folder, there is no such column or split, or none
            is named where there are several.
        OSError: The Hub cannot be reached.
    """
    if source == DASH:
        return _open_standard_input(column, split)
    if not source.strip():
        raise ValueError("The name of the input is empty: give a file, a data set, or - for standard input.")
    path = parse_path(source)
    if isinstance(path, Path) and _is_data_set(source, path):
        return _open_data_set(source, column, split)
    if not path.exists():
        patterns = ", and patterns are not read" if glob.has_magic(source) else ""
        raise FileNotFoundError(
            f"There is no file {source}{patterns}: give a file of sentences, or a data set's Hub id or folder."
        )
    if not isinstance(path, Path):
        _refuse_other_urls(source, path)
    if split is not None:
        raise ValueError(f"{source} is a file and has no splits: leave --split out.")
    return _open_file(path, column)


def _open_standard_input(column: str | None, split: str | None) -> SentenceSource:
    if column is not None or split is not None:
        option = "--split" if column is None else "--text_column"
        raise ValueError(f"Standard input has one sentence a line: leave {option} out.")
    return SentenceSource(
        STANDARD_INPUT, {"read": uuid.uuid4().hex}, None, lambda: (line for _, line in read_standard_input())
    )


def _is_data_set(source: str, path: Path) -> bool:
    if path.exists():
        return path.is_dir()
    return not is_readable(path) and bool(re.fullmatch(r"[\w-]+(/[\w.-]+)?", source))  # or it is a file that is missing


def _refuse_other_urls(source: str, path: AnyPath) -> None:
    """Refuse a URL whose end is no file's extension, though it looks right."""
    if source.endswith("/") or path.is_dir():
        raise ValueError(f"{source} is a folder: give the URL of one file, or a folder on this machine.")
    query = path.name.partition("?")[2]
    if query and not is_readable(path):
        raise ValueError(
            f"{source} has ?{query} behind the file's name, whose extension says how to read it: leave that out, or "
            "download the file and give it."
        )


def _open_file(path: AnyPath, column: str | None) -> SentenceSource:
    count, stamp = count_rows(path) if file_extension(path) == ".parquet" else None, _stamp(path)
    if file_extension(path) != ".txt" or column is not None:
        column = _choose_column(file_table(path), column)
    sentences = partial(_file_sentences, path, column)
    next(sentences(), None)  # a mistake that can be told at once
    sha256 = file_hash(path)
    return SentenceSource(
        str(path),
        {"sha256": sha256, "column": column},
        count,
        sentences,
        partial(_require_unchanged, path, stamp, sha256),
    )


def _stamp(path: AnyPath) -> object:
    """What a write to a file changes, and other things may change, too."""
    if isinstance(path, Path):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    path.fs.invalidate_cache()  # it remembers what it was told before
    return path.fs.ukey(path.path)


def _require_unchanged(path: AnyPath, stamp: object, sha256: str) -> None:
    if not path.exists() or _stamp(path) != stamp:
        require_hash(path, sha256)


def _file_sentences(path: AnyPath, column: str | None) -> Iterator[str]:
    if column is None:
        return (line for _, line in read_lines(path))
    return (optional_text(row[column], location) for location, row in read_rows(path, [column]))


def _open_data_set(name: str, column: str | None, split: str | None) -> SentenceSource:
    with optional_packages(f"There is no file {name}, and reading a data set", "train", "datasets"):
        from datasets import load_dataset_builder
    try:
        builder = load_dataset_builder(name)
        splits = builder.as_streaming_dataset()
    except (ConnectionError, FileNotFoundError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} is no file, and no data set that can be read ({cause_of(error)}): give either."
        ) from error
    files = folder_files(name)
    if split is None and len(splits) > 1:
        raise ValueError(f"{name} has the splits {', '.join(splits)}: say with --split which to read.")
    chosen_split = next(iter(splits)) if split is None else split
    if chosen_split not in splits:
        raise ValueError(f"{name} has no split {chosen_split!r}: {it_has(chosen_split, splits)}")
    if files:
        return _open_folder(name, chosen_split, files[chosen_split], column)
    rows = splits[chosen_split]
    column = _choose_column(Table(name, lambda _: ((name, row) for row in rows)), column)
    chosen = rows.select_columns([column])
    info = (builder.info.splits or {}).get(chosen_split)
    hashes = {path: (_stamp(path), sha256) for path, sha256 in folder_hashes(name).items()}
    known = {"sha256": [sha256 for _, sha256 in hashes.values()]} if hashes else {"hash": builder.hash}
    return SentenceSource(
        name,
        {"split": chosen_split, **known, "column": column},
        info.num_examples if info and not hashes else None,  # a folder's card may tell of files before a change
        partial(_data_set_sentences, f"{name}, split {chosen_split!r}", chosen),
        partial(_require_all_unchanged, hashes),
    )


def _open_folder(name: str, split: str, paths: Sequence[Path], column: str | None) -> SentenceSource:
    if column is not None or any(file_extension(path) != ".txt" for path in paths):
        column = _choose_column(files_table(f"{name}, split {split!r}", paths), column)
    for path in paths:
        next(_file_sentences(path, column), None)  # a mistake that can be told at once
    are_parquet = all(file_extension(path) == ".parquet" for path in paths)
    hashes = {path: (_stamp(path), file_hash(path)) for path in paths}
    return SentenceSource(
        name,
        {"split": split, "sha256": [sha256 for _, sha256 in hashes.values()], "column": column},
        sum(map(count_rows, paths)) if are_parquet else None,
        partial(_folder_sentences, paths, column),
        partial(_require_all_unchanged, hashes),
    )


def _folder_sentences(paths: Sequence[Path], column: str | None) -> Iterator[str]:
    return itertools.chain.from_iterable(_file_sentences(path, column) for path in paths)


def _require_all_unchanged(hashes: Mapping[Path, tuple[object, str]]) -> None:
    for path, (stamp, sha256) in hashes.items():
        _require_unchanged(path, stamp, sha256)


def _data_set_sentences(name: str, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for number, row in enumerate(rows, 1):
        (value,) = row.values()
        yield optional_text(value, f"{name}, row {number}")


def _choose_column(table: Table, column: str | None) -> str:
    """The column to read, that of the option or the one that is found."""
    if column is None:
        return next(iter(find_text_columns(table, pairs=False)), COLUMN)
    first = next(table.read(None), None)
    if first is not None:
        require_column(table.name, column, first[1])
    return column
