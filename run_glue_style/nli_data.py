"""Natural language inference pairs, from files or from the Hub, as one kind of `datasets.DatasetDict`."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import logging
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias

import pyarrow
import pyarrow.parquet as parquet
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value, load_dataset
from datasets.exceptions import DatasetGenerationError

logger = logging.getLogger(__name__)

LABEL_NAMES = ("entailment", "neutral", "contradiction")
FEATURES = Features(
    {"premise": Value("string"), "hypothesis": Value("string"), "label": ClassLabel(names=list(LABEL_NAMES))}
)

_COLUMNS = {
    "premise": ("sentence1", "premise"),
    "hypothesis": ("sentence2", "hypothesis"),
    "label": ("gold_label", "label"),
}
_UNLABELLED = -1
_LABELS = {
    **{name: number for number, name in enumerate(LABEL_NAMES)},
    **{str(number): number for number in range(len(LABEL_NAMES))},
    "-": _UNLABELLED,
    str(_UNLABELLED): _UNLABELLED,
}
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # from a broken \\u escape in JSON; cannot be stored
_Row: TypeAlias = Mapping[str, object]
_File: TypeAlias = BufferedReader | gzip.GzipFile
_Reader: TypeAlias = Callable[[_File, str], Iterator[tuple[str, _Row]]]
# datasets hashes a function of a module by its name, so the caches must be told when the rules of reading change.
_RULES = 1


def load_nli_files(files: Mapping[str, Path]) -> DatasetDict:
    """Read labelled sentence pairs from files, once: later calls take them from the cache of `datasets`.

    The formats are those of SNLI and MultiNLI (`.jsonl`, and tab-separated `.txt` with a header, where quotes are
    plain characters), `.tsv` (the same as `.txt`), `.csv` and `.parquet`, each also with `.gz` behind.
    Columns: `sentence1` or `premise`, `sentence2` or `hypothesis`, `gold_label` or `label`; others are ignored. A
    label is a name of `LABEL_NAMES` (in any case), its number 0 to 2, or `-` or -1 for a pair without a gold label.
    Such pairs are dropped, and how many is logged.

    Args:
        files: the file of each split, such as `{"train": Path("snli_1.0_train.jsonl")}`.

    Returns:
        For each split the columns `premise`, `hypothesis` (text as it is in the file) and `label` (`LABEL_NAMES`).

    Raises:
        FileNotFoundError: if a file does not exist.
        ValueError: if a file has another ending, is broken or empty or has no gold label at all, a column is missing,
            a sentence is null or blank, or a label is unknown. The sentence names the file, the row and the value.
    """
    if not files:
        raise ValueError("no files were given: at least one split needs a file")
    return DatasetDict({split: _load_file(split, Path(path).absolute()) for split, path in files.items()})


def load_nli_dataset(name: str, config: str | None = None, revision: str | None = None) -> DatasetDict:
    """Load a data set of labelled sentence pairs from the Hub or a local folder, with all of its splits.

    Columns and labels are as in `load_nli_files`. Where the data set names its classes they are matched by name, so
    their order may differ; where it has bare integers they must follow `LABEL_NAMES`.

    Args:
        name: such as `stanfordnlp/snli` or `nyu-mll/multi_nli`, or a folder.
        config: the configuration, where the data set has several (`mnli` of `nyu-mll/glue`).
        revision: a branch, tag or commit of the data set's repository.

    Returns:
        The columns `premise`, `hypothesis` and `label` for each split; a split without any gold label (a hidden test
        set) is empty.

    Raises:
        ConnectionError: if the Hub cannot be reached and the data set is not in the cache.
        FileNotFoundError: if there is no such data set or folder.
        ValueError: as in `load_nli_files`, or if there is no such configuration.
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
        pairs = rows.map(
            _convert_row,
            with_indices=True,
            fn_kwargs={"where": where, "features": rows.features, "rules": _RULES},
            remove_columns=rows.column_names,
            features=FEATURES,
        )
        converted[split] = _drop_unlabelled(pairs, where)
    return converted


def fingerprint(dataset: Dataset) -> str:
    """SHA-256 of a split's pairs and labels in their order, the same for the same rows from any kind of file.

    Args:
        dataset: one split of `load_nli_files` or `load_nli_dataset`.

    Returns:
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for batch in dataset.with_format(None).select_columns(list(FEATURES)).iter(batch_size=1000):
        for row in zip(*(batch[column] for column in FEATURES), strict=True):
            digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()


def _load_file(split: str, path: Path) -> Dataset:
    where = f"{path}, split {split!r}"
    if not path.is_file():
        raise FileNotFoundError(f"{where}: there is no such file")
    reader = _READERS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if reader is None:
        raise ValueError(f"{where}: unknown ending; give {', '.join(_READERS)}, each also with .gz behind")
    status = path.stat()
    version = (status.st_size, status.st_mtime_ns, _RULES)
    try:
        pairs = Dataset.from_generator(
            _read_pairs, features=FEATURES, gen_kwargs={"path": path, "reader": reader, "version": version}
        )
    except DatasetGenerationError as error:
        if type(error.__cause__) is ValueError:  # ours
            raise error.__cause__ from None
        raise
    labelled = _drop_unlabelled(pairs, where)
    if not len(labelled):
        raise ValueError(f"{where}: there is no row with a gold label")
    return labelled


def _read_pairs(path: Path, reader: _Reader, version: tuple[int, ...]) -> Iterator[_Row]:  # noqa: ARG001
    """Yield the pairs of a file; `version` only makes the key under which `datasets` keeps them."""
    empty = True
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            for place, row in reader(file, str(path)):
                empty = False
                yield _pair(row, place)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: this is not a whole gzip file ({error})") from None
    if empty:
        raise ValueError(f"{path}: the file holds no rows")


def _lines(file: _File, where: str) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{where}, line {number}: this is not UTF-8 text ({error.reason})") from None


def _json_rows(file: _File, where: str) -> Iterator[tuple[str, _Row]]:
    for number, line in enumerate(_lines(file, where), 1):
        if not line.strip():
            continue
        place = f"{where}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{place}: broken JSON ({error.msg} at character {error.pos + 1})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{place}: each line must be a JSON object, not {line[:80].strip()!r}")
        yield place, row


def _tab_rows(file: _File, where: str) -> Iterator[tuple[str, _Row]]:
    # Not the csv module: SNLI's sentences have lone quotes, which are plain characters in these files.
    header: list[str] = []
    for number, line in enumerate(_lines(file, where), 1):
        fields = line.rstrip("\r\n").split("\t")
        if number == 1:
            header = fields
        elif any(fields):
            place = f"{where}, line {number}"
            yield place, _named(header, fields, place)


def _csv_rows(file: _File, where: str) -> Iterator[tuple[str, _Row]]:
    rows = csv.reader(_lines(file, where), strict=True)
    try:
        header = next(rows, [])
        for fields in rows:
            if fields:
                place = f"{where}, line {rows.line_num}"
                yield place, _named(header, fields, place)
    except csv.Error as error:
        raise ValueError(f"{where}, line {rows.line_num}: broken CSV ({error})") from None


def _named(header: Sequence[str], fields: Sequence[str], place: str) -> _Row:
    # A line may end early, without its last, empty fields; a field too many means that a separator is in a text.
    if len(fields) > len(header):
        raise ValueError(f"{place}: there are {len(fields)} fields, but the header has {len(header)}")
    return dict(zip(header, fields, strict=False))


def _parquet_rows(file: _File, where: str) -> Iterator[tuple[str, _Row]]:
    try:
        table = parquet.ParquetFile(file)
        features = Features.from_arrow_schema(table.schema_arrow)
        wanted = [column for columns in _COLUMNS.values() for column in columns if column in features]
        rows = (row for batch in table.iter_batches(columns=wanted) for row in batch.to_pylist())
        for number, row in enumerate(rows, 1):
            yield f"{where}, row {number}", _named_label(row, features)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{where}: this is not a whole Parquet file ({error})") from None


def _convert_row(row: _Row, index: int, where: str, features: Features, rules: int) -> _Row:  # noqa: ARG001
    """Make a pair of a row of a Hub data set; `rules` is there for the key of the cache."""
    return _pair(_named_label(row, features), f"{where}, row {index + 1}")


def _named_label(row: _Row, features: Features) -> _Row:
    """Put the class's own name in the place of its number, for the order of the classes may be another there."""
    for column in _COLUMNS["label"]:
        feature, value = features.get(column), row.get(column)
        if isinstance(feature, ClassLabel) and isinstance(value, int) and value >= 0:
            row = {**row, column: feature.int2str(value)}
    return row


def _pair(row: _Row, place: str) -> _Row:
    """Check one row and give it the columns of `FEATURES`."""
    pair = {}
    for column, names in _COLUMNS.items():
        name = next((name for name in names if name in row), None)
        if name is None:
            raise ValueError(f"{place}: there is no column {' or '.join(names)}, only {', '.join(row)}")
        pair[column] = row[name]
    label = _LABELS.get(str(pair["label"]).strip().lower())
    if label is None:
        raise ValueError(
            f"{place}: the label {pair['label']!r} is unknown; it must be one of {', '.join(LABEL_NAMES)}, "
            f"0 to {len(LABEL_NAMES) - 1}, or - or -1 for a pair without a gold label"
        )
    if label != _UNLABELLED:
        for column in ("premise", "hypothesis"):
            sentence = pair[column]
            if not isinstance(sentence, str) or not sentence.strip() or _HALF_CHARACTER.search(sentence):
                raise ValueError(f"{place}: the {column} is {sentence!r}, not a sentence; mend or remove this row")
    return {**pair, "label": label}


def _drop_unlabelled(pairs: Dataset, where: str) -> Dataset:
    labelled = pairs.filter(_is_labelled, input_columns="label")
    logger.info("%s: %d of %d pairs dropped, without a gold label", where, len(pairs) - len(labelled), len(pairs))
    return labelled


def _is_labelled(label: int) -> bool:
    return label != _UNLABELLED


_READERS: dict[str, _Reader] = {
    ".jsonl": _json_rows,
    ".txt": _tab_rows,
    ".tsv": _tab_rows,
    ".csv": _csv_rows,
    ".parquet": _parquet_rows,
}
