"""run_glue_style.tasks.labelled_examples, with pairs of natural language inference as the examples."""

import csv
import gzip
import json
import logging
import os
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from huggingface_hub import constants

from modeling_dsa.files.lines import read_lines
from modeling_dsa.files.rows import Rows
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from run_glue_style.tasks.labelled_examples import ExampleFormat, load_file, load_files, load_hub
from run_glue_style.tasks.labels import KnownClasses
from run_glue_style.tasks.nli import NLI

# Lone quotes and words that a table reader might take for missing values are text.
ROWS = [
    {"gold_label": "neutral", "sentence1": 'A sign says "open.', "sentence2": "n/a"},
    {"gold_label": "-", "sentence1": "Nobody agrees.", "sentence2": "None"},
    {"gold_label": "entailment", "sentence1": "Zwei Männer, ein Hund 🐕", "sentence2": "NULL"},
    {"gold_label": "contradiction", "sentence1": "'tis so", "sentence2": 'it is" not'},
]
PAIRS: dict[str, list[object]] = {
    "premise": [ROWS[0]["sentence1"], ROWS[2]["sentence1"], ROWS[3]["sentence1"]],
    "hypothesis": ["n/a", "NULL", 'it is" not'],
    "label": [1, 0, 2],
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def write_jsonl(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps({**row, "annotator_labels": ["neutral"]}) + "\n" for row in rows), "utf-8")


def write_tab(path: Path, rows: list[dict[str, str]]) -> None:
    header = ["gold_label", "sentence1_parse", "sentence1", "sentence2", "label1", "label2"]
    lines = [[row["gold_label"], "(ROOT x)", row["sentence1"], row["sentence2"], "neutral"] for row in rows]
    path.write_text("\n".join("\t".join(line) for line in [header, *lines]) + "\n", "utf-8")


def write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(path: Path, rows: list[dict[str, str]]) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


WRITERS: dict[str, Callable[[Path, list[dict[str, str]]], None]] = {
    ".jsonl": write_jsonl,
    ".txt": write_tab,
    ".tsv": write_tab,
    ".csv": write_csv,
    ".parquet": write_parquet,
}


def load(path: Path) -> datasets.Dataset:
    return load_file("train", path, NLI)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("ending", WRITERS)
def test_every_format_gives_the_same_pairs(tmp_path: Path, ending: str, packed: str) -> None:
    path = tmp_path / f"pairs{ending}"
    WRITERS[ending](path, ROWS)
    if packed:
        path.with_name(path.name + packed).write_bytes(gzip.compress(path.read_bytes()))
    split = load(path.with_name(path.name + packed))
    assert split.to_dict() == PAIRS
    assert split.features["label"].names == list(NLI_CLASS_NAMES) == ["entailment", "neutral", "contradiction"]
    # A constant: results of other days and machines are compared by it.
    assert NLI.fingerprint(split) == "d583353c3af04695a5b1a06afa5c24cf547a51ee1b3c618d6a5c91735d8542dc"


def test_splits_keep_their_names_and_the_dropped_rows_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    write_csv(tmp_path / "b.csv", ROWS[2:])
    files = {"train": tmp_path / "a.jsonl", "validation_matched": tmp_path / "b.csv"}
    for _ in range(2):  # also when the rows come from the cache
        caplog.clear()
        with caplog.at_level(logging.INFO):
            splits = load_files(files, NLI)
        assert {name: len(split) for name, split in splits.items()} == {"train": 3, "validation_matched": 2}
        assert "split 'train': 1 of 4 rows dropped, without a label" in caplog.text
        assert "validation_matched" not in caplog.text


def test_short_column_names_numbers_and_untidy_labels(tmp_path: Path) -> None:
    labels = ["0", "1", "2", "-1", " Neutral ", "ENTAILMENT", "-"]
    path = tmp_path / "pairs.csv"
    write_csv(path, [{"label": label, "hypothesis": "b", "premise": "a"} for label in labels])
    assert load(path)["label"][:] == [0, 1, 2, 1, 0]
    lines = [json.dumps({"premise": "a", "hypothesis": "b", "label": label}) for label in (2, -1, 0)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    assert load(tmp_path / "pairs.jsonl")["label"][:] == [2, 0]


def test_half_a_character_is_read_as_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(r'{"premise": "a\ud83d", "hypothesis": "b", "label": 0}')
    assert load(path)["premise"][:] == ["a\ufffd"]


def test_class_numbers_of_another_order_are_matched_by_name(tmp_path: Path) -> None:
    features = datasets.Features(
        {
            "premise": datasets.Value("string"),
            "hypothesis": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["Contradiction", "entailment", "neutral"]),
        }
    )
    rows = {"premise": ["a", "b", "c", "d"], "hypothesis": ["x"] * 4, "label": [0, 1, 2, -1]}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "pairs.parquet")
    assert load(tmp_path / "pairs.parquet")["label"][:] == [2, 0, 1]


def test_csv_fields_may_hold_separators_quotes_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes('\ufeffpremise,hypothesis,label\r\n"a, ""b""\n\nc, d, 0\ne",f,0\r\n'.encode())
    assert load(path).to_dict() == {"premise": ['a, "b"\n\nc, d, 0\ne'], "hypothesis": ["f"], "label": [0]}


def test_second_call_reads_the_cache_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    write_jsonl(path, ROWS)
    first, status = load(path), path.stat()
    assert load(path).cache_files == first.cache_files != []
    path.write_bytes(path.read_bytes().replace(b"Nobody", b"Anyone").replace(b"tis so", b"tis no"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # the same size and time, as a copy may have
    assert path.stat().st_size == status.st_size
    assert load(path)["premise"][:] == [*PAIRS["premise"][:2], "'tis no"]


def test_fingerprint_sees_text_labels_and_order_only() -> None:
    others = [
        {**PAIRS, "label": [1, 0, 1]},
        {**PAIRS, "premise": ["A", "b", "c"]},
        {**PAIRS, "premise": PAIRS["hypothesis"], "hypothesis": PAIRS["premise"]},
        {column: values[::-1] for column, values in PAIRS.items()},
        {column: values[:2] for column, values in PAIRS.items()},
    ]
    prints = [NLI.fingerprint(datasets.Dataset.from_dict(columns)) for columns in [PAIRS, *others]]
    assert len(set(prints)) == len(prints)
    extra = datasets.Dataset.from_dict({"source": ["a", "b", "c"], **PAIRS}).with_format("numpy")
    assert NLI.fingerprint(extra) == prints[0]


HEADER = "premise,hypothesis,label\n"
GOOD = '{"premise": "a", "hypothesis": "b", "label": 0}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", HEADER + "a,b,0\na,b,maybe\n", r"a\.csv, line 3: the label 'maybe' is unknown; it must be one of"),
        ("a.csv", HEADER + "a,b,3\n", r"line 2: the label '3' is unknown"),
        ("a.jsonl", GOOD + GOOD.replace("0", "null"), r"a\.jsonl, line 2: the label None is unknown"),
        *(
            ("a.csv", f"{HEADER}a,b,0\n{mark}{HEADER}", r"line 3 repeats the names of the columns, as joined files do")
            for mark in ("", "\ufeff")
        ),
        ("a.csv", "premise,label\na,0\n", r"a\.csv, line 2: there is no column sentence2 or hypothesis, only premise"),
        (
            "a.txt",
            "gold_label\tsentence1\tsentence2\nneutral\ta\n",
            r"a\.txt, line 2: the sentence2 is '', not a text",
        ),
        ("a.txt", "label\tpremise\thypothesis\n0\ta\tb\tc\n", r"a\.txt, line 2 has 4 fields, but the header 3"),
        ("a.jsonl", GOOD + "\n" + GOOD.replace('"b"', "null"), r"a\.jsonl, line 3: the hypothesis is None, not a te"),
        ("a.csv", HEADER + "  ,b,0\n", r"line 2: the premise is '  ', not a text"),
        ("a.jsonl", GOOD.replace('"a"', "5"), r"line 1: the premise is 5, not a text"),
        ("a.jsonl", GOOD + '{"premise": \n', r"a\.jsonl, line 2 is broken JSON \(Expecting value at character"),
        ("a.jsonl", "[0, 1]\n", r"line 1 is no JSON object but '\[0, 1\]': each line must be"),
        ("a.csv", HEADER + '"a,b,0\n', r"a\.csv, line 2 is broken \(unexpected end of data\)"),
        (
            "a.csv",
            HEADER + '"a,b,0\nc,d,neutral\ne",f,0\n',
            r"a\.csv, line 4: a text holds what .* 'a,b,0': close",
        ),
        ("a.csv", HEADER + 'a,"b\nc,d,neutral\ne",0\n', r"line 4: a text holds .*, 'c,d,neutral': close"),
        ("a.tsv", b"label\tpremise\thypothesis\n0\ta\xff\tb\n", r"a\.tsv, line 2 is not UTF-8: save it as UTF-8"),
        ("a.jsonl", "", r"a\.jsonl: the file holds no rows"),
        ("a.csv", HEADER, r"a\.csv: the file holds no rows"),
        ("a.tsv", "", r"a\.tsv: the file holds no rows"),
        ("a.csv", HEADER + "a,b,-\n", r"a\.csv, split 'train': there is no row with a label"),
        ("a.parquet", "PAR1", r"a\.parquet is a broken Parquet file"),
        ("a.csv.gz", "label", r"a\.csv\.gz is a broken gzip file"),
        ("b.csv.gz", gzip.compress(HEADER.encode() + b"a,b,0\n", mtime=0)[:-8], r"b\.csv\.gz is a broken gzip file"),
        ("a.xml", GOOD, r"a\.xml has an un.*: give \.txt, \.jsonl, "),
    ],
)
def test_mistakes_in_a_file_are_one_clear_sentence(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ValueError, match=message) as caught:
        load(tmp_path / name)
    assert type(caught.value) is ValueError
    assert "\n" not in str(caught.value)


def test_parquet_mistakes_name_the_row(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    write_parquet(path, [*ROWS, ROWS[0] | {"gold_label": "unsure"}])
    with pytest.raises(ValueError, match=r"pairs\.parquet, row 5: the label 'unsure' is unknown"):
        load(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.csv, split 'train': there is no such file"):
        load(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match="split 'train', is a folder: give a file in it"):
        load(tmp_path)


def test_a_failed_file_can_be_fixed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(HEADER + "a,b,0\na,b,9\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="line 3"):
            load(path)
    path.write_text(HEADER + "a,b,0\na,b,2\n")
    assert load(path)["label"][:] == [0, 2]


@pytest.fixture
def hub_folder(tmp_path: Path) -> Path:
    """A folder laid out as a Hub data set: Parquet splits, classes in an order of its own, a hidden test set."""
    features = datasets.Features(
        {
            "idx": datasets.Value("int32"),
            "premise": datasets.Value("string"),
            "hypothesis": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["contradiction", "entailment", "neutral"]),
        }
    )
    labels: dict[str, list[int | None]] = {
        "train": [0, 1, 2, -1],
        "validation_matched": [1, 2, None],
        "validation_mismatched": [0],
    }
    labels |= {"test": [-1, -1], "hidden": [None, None]}
    folder = tmp_path / "hub" / "data"
    folder.mkdir(parents=True)
    for split, numbers in labels.items():
        rows = {
            "idx": list(range(len(numbers))),
            "premise": [f"{split} {i}" for i in range(len(numbers))],
            "hypothesis": ["n/a"] * len(numbers),
            "label": numbers,
        }
        table = datasets.Dataset.from_dict(rows, features=features)
        table.to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return folder.parent


def test_hub_data_set_keeps_all_splits_and_matches_classes_by_name(hub_folder: Path) -> None:
    splits = load_hub(str(hub_folder), None, NLI)
    assert {name: split["label"][:] for name, split in splits.items()} == {
        "train": [2, 0, 1],
        "validation_matched": [0, 1],
        "validation_mismatched": [2],
        "test": [],
        "hidden": [],
    }
    assert splits["train"][0] == {"premise": "train 0", "hypothesis": "n/a", "label": 2}
    assert splits["train"].features["label"].names == list(NLI_CLASS_NAMES)
    again = load_hub(str(hub_folder), None, NLI)
    assert again.cache_files == splits.cache_files


def test_classes_of_a_folders_files_are_matched_by_name(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    for split, names in (("train", ["entailment", "neutral"]), ("test", ["neutral", "entailment"])):
        features = datasets.Features(
            {name: datasets.Value("string") for name in ("premise", "hypothesis")}
            | {"label": datasets.ClassLabel(names=names)}
        )
        rows = {"premise": ["a", "b"], "hypothesis": ["x", "y"], "label": [0, 1]}
        whole = datasets.Dataset.from_dict(rows, features=features)
        whole.to_parquet(tmp_path / "hub" / f"{split}-0.parquet")
        whole.select([]).to_parquet(tmp_path / "hub" / f"{split}-1.parquet")
    splits = load_hub(str(tmp_path / "hub"), None, NLI)
    assert {name: split["label"][:] for name, split in splits.items()} == {"train": [0, 1], "test": [1, 0]}


def test_a_folder_whose_card_says_how_is_read_where_it_is_and_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`datasets` keeps what it has read of such a folder by its name and the card's patterns."""
    card = "configs:\n- config_name: default\n  sep: ';'\n  data_files:\n  - split: train\n    path: data/train-*\n"
    monkeypatch.chdir(tmp_path)
    folders = [Path(name) / "reviews" for name in "ab"]
    for folder, premise in zip(folders, ("one", "two"), strict=True):
        (folder / "data").mkdir(parents=True)
        (folder / "README.md").write_text(f"---\n{card}---\n")
        (folder / "data" / "train-0.csv").write_text(f"premise;hypothesis;label\n{premise};x;neutral\n")
    assert [load_hub(str(folder), None, NLI)["train"]["premise"][:] for folder in folders] == [["one"], ["two"]]
    (folders[0] / "data" / "train-0.csv").write_text("premise;hypothesis;label\nthree;x;neutral\n")
    assert load_hub(str(folders[0]), None, NLI)["train"]["premise"][:] == ["three"]


def test_hub_data_set_with_the_names_of_the_original_files(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    write_jsonl(tmp_path / "hub" / "train.jsonl", ROWS)
    write_jsonl(tmp_path / "pairs.jsonl", ROWS)
    from_folder = load_hub(str(tmp_path / "hub"), None, NLI)["train"]
    assert from_folder.to_dict() == PAIRS
    assert NLI.fingerprint(from_folder) == NLI.fingerprint(load(tmp_path / "pairs.jsonl"))


def test_a_file_of_a_folder_that_would_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    for name in ("train", "more"):
        write_jsonl(tmp_path / "hub" / f"{name}.jsonl", ROWS)
    with pytest.raises(ValueError, match=r"more\.jsonl would not be read: `datasets` takes train\.jsonl as the data"):
        load_hub(str(tmp_path / "hub"), None, NLI)


def test_a_folder_of_tables_is_read_as_its_files_are(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    lines = ["premise\thypothesis\tlabel", '"He left\tNA\tneutral', 'null\t"b\tentailment', "c\td\tneutral"]
    (tmp_path / "hub" / "train.tsv").write_text("\n".join(lines) + "\n")
    from_folder = load_hub(str(tmp_path / "hub"), None, NLI)["train"]
    assert from_folder["premise"][:] == ['"He left', "null", "c"]
    assert from_folder.to_dict() == load(tmp_path / "hub" / "train.tsv").to_dict()
    (tmp_path / "hub" / "test.tsv").write_text(lines[0] + "\ne\tf\tneutral\tmore\n")
    with pytest.raises(ValueError, match=r"test\.tsv, line 2 has 4 fields, but the header 3"):
        load_hub(str(tmp_path / "hub"), None, NLI)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"premise": "a", "text": "b", "label": 0}, "row 1: there is no column sentence2 or hypothesis, only premise"),
        ({"premise": "a", "hypothesis": "b", "label": "not_entailment"}, "row 1: the label 'not_entailment' is unkn"),
        ({"premise": None, "hypothesis": "b", "label": "neutral"}, "row 1: the premise is None, not a text"),
    ],
)
def test_mistakes_in_a_folder_name_file_and_row(tmp_path: Path, row: dict[str, object], message: str) -> None:
    (tmp_path / "hub").mkdir()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "hub" / "train.parquet")
    with pytest.raises(ValueError, match=rf"train\.parquet, {message}"):
        load_hub(str(tmp_path / "hub"), None, NLI)


def test_hub_data_set_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        load_hub(str(tmp_path / "absent"), None, NLI)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        ConnectionError, match=r"'stanfordnlp/snli' is not in the cache and cannot be downl.*local files"
    ):
        load_hub("stanfordnlp/snli", None, NLI)


OTHER = ExampleFormat(texts={"question": ("q", "question")}, label_columns=("y",), labels=KnownClasses(("no", "yes")))


def read_words(path: Path, label: str) -> Rows:
    return ((location, {"q": line, "y": label}) for location, line in read_lines(path))


def read_words_and_write(path: Path) -> Rows:
    yield from read_words(path, "no")
    path.write_text("b\n")


def test_a_file_that_changes_while_it_is_read_is_not_cached(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for _ in range(2):
        path.write_text("a\n")
        with pytest.raises(ValueError, match=r"a\.txt has changed while it was read: start again when it is complete"):
            load_file("train", path, OTHER, read_words_and_write)
    assert load_file("train", path, OTHER, read_words_and_write)["question"][:] == ["b"]


@pytest.mark.parametrize("is_generated", [False, True])
def test_a_full_disk_under_the_cache_is_told(is_generated: bool, tmp_path: Path, cache: Path) -> None:
    """A limit on the size of files fails as a full disk does: on the examples, or on which of them have a label."""
    write_jsonl(tmp_path / "rows.jsonl", ROWS * 400)
    if is_generated:
        load_file("train", tmp_path / "rows.jsonl", NLI)
        for filtered in cache.rglob("cache-*.arrow"):
            filtered.unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"The cache of datasets, {cache}, cannot be written .*: free some space"):
            load_file("train", tmp_path / "rows.jsonl", NLI)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_two_names_of_one_column_must_say_the_same() -> None:
    assert OTHER.convert({"question": "a", "q": "a", "y": " YES "}, "here") == {"question": "a", "label": 1}
    with pytest.raises(ValueError, match="here: q is 'a' and question is 'b', which should be the same"):
        OTHER.convert({"question": "b", "q": "a", "y": " YES "}, "here")
    pair = {"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}
    assert NLI.convert({**pair, "label": 1}, "here")["label"] == 1
    with pytest.raises(ValueError, match="here: gold_label is 'neutral' and label is 'entailment', which should"):
        NLI.convert({**pair, "label": "entailment"}, "here")
    with pytest.raises(ValueError, match="here: there is no column q or question, only y"):
        OTHER.convert({"y": 1}, "here")


def test_cache_tells_readers_and_versions_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\nb\n")
    found = [load_file("train", path, OTHER, partial(read_words, label=label)) for label in ("no", "yes", "no")]
    assert [split["label"][:] for split in found] == [[0, 0], [1, 1], [0, 0]]
    files = [split.cache_files[0]["filename"] for split in found]
    assert files[0] == files[2] != files[1]
    newer = ExampleFormat(OTHER.texts, OTHER.label_columns, OTHER.labels, version=OTHER.version + 1)
    other = load_file("train", path, newer, partial(read_words, label="no"))
    assert other.to_dict() == found[0].to_dict()
    assert other.cache_files[0]["filename"] not in files
