"""modeling_dsa.encoding.sources: every kind of source gives one sentence a row, and each mistake is told in one."""

import gzip
import io
import itertools
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modeling_dsa.encoding.sources import open_sentences

SENTENCES = ["A man sleeps.", "", 'He said "no".', "Straße\u2028…"]


def write(folder: Path, name: str, content: str) -> str:
    (folder / name).write_bytes(content.encode())
    return str(folder / name)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    quoted = (sentence.replace('"', '""') for sentence in SENTENCES)
    table = pyarrow.table({"id": range(4), "text": SENTENCES, "other": ["b"] * 4})
    pyarrow.parquet.write_table(table, tmp_path / "e.parquet")
    return {
        ".txt": write(tmp_path, "a.txt", "\ufeff" + "\r\n".join(SENTENCES)),
        ".jsonl": write(tmp_path, "b.jsonl", "\n".join(json.dumps({"id": 1, "text": text}) for text in SENTENCES)),
        ".csv": write(tmp_path, "c.csv", "id,text\n" + "".join(f'1,"{text}"\n' for text in quoted)),
        ".tsv": write(tmp_path, "d.tsv", "text\tid\n" + "".join(f"{text}\t1\n" for text in SENTENCES)),
        ".parquet": str(tmp_path / "e.parquet"),
        "table.txt": write(tmp_path, "f.txt", "text\tid\n" + "".join(f"{text}\t1\n" for text in SENTENCES)),
    }


@pytest.mark.parametrize("packed", [False, True])
def test_every_format_gives_every_row_twice(files: dict[str, str], packed: bool) -> None:
    for kind, plain in files.items():
        path = plain
        if packed:
            path = plain + ".gz"
            Path(path).write_bytes(gzip.compress(Path(plain).read_bytes()))
        source = open_sentences(path, "text" if kind == "table.txt" else None)
        assert list(source.read()) == SENTENCES, kind
        assert list(source.read()) == SENTENCES
        assert source.count == (4 if kind == ".parquet" else None)
        assert source.name == path


def test_rows_of_empty_values_are_rows_and_empty_lines_are_none(tmp_path: Path) -> None:
    """As pandas writes them: a row that is left out would shift all vectors behind it."""
    for name, content in (
        ("a.csv", 'text\na\n""\n\nb\n'),
        ("b.csv", "id,text\n1,a\n,\n\n2,b\n"),
        ("c.tsv", "id\ttext\n1\ta\n\t\n\n2\tb\n"),
    ):
        assert list(open_sentences(write(tmp_path, name, content)).read()) == ["a", "", "b"]


def test_sentences_are_not_taken_for_a_header_nor_several_columns_for_one(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"a\.csv: its first line is 'A man is fast asleep', which is taken for the name"
    ):
        open_sentences(write(tmp_path, "a.csv", "A man is fast asleep\nHe snores\n"))
    with pytest.raises(ValueError, match=r"b\.csv has one column, 'id;text': if ';' separates its columns"):
        open_sentences(write(tmp_path, "b.csv", "id;text\n1;a\n"))
    with pytest.raises(
        ValueError, match=r"c\.csv: its first line is taken .* holds the number '1': give the file a first"
    ):
        open_sentences(write(tmp_path, "c.csv", "a man sleeps,1\nthe dog,0\n"))


def test_the_column_that_was_taken_is_told_where_it_was_not_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, years = write(tmp_path, "a.csv", "great\nawful\n"), write(tmp_path, "b.csv", "2023,text,2024\n1,a,2\n")
    assert list(open_sentences(one).read()) == ["awful"]
    assert list(open_sentences(years).read()) == ["a"]
    assert list(open_sentences(years, "2024").read()) == ["2"]
    assert caplog.messages == [f"{one}: the texts are in 'great'.", f"{years}: the texts are in 'text'."]


def test_only_column_needs_no_name_and_missing_values_are_empty(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"s": "a"}\n\n{"s": null}\n{"s": "b"}\n')
    assert list(open_sentences(path).read()) == ["a", "", "b"]
    assert list(open_sentences(write(tmp_path, "a.csv", "id,s\n1,a\n2\n"), "s").read()) == ["a", ""]


def test_empty_files_have_no_sentences(tmp_path: Path) -> None:
    for name, content in (("a.txt", ""), ("a.jsonl", ""), ("a.csv", "text,id\n")):
        assert list(open_sentences(write(tmp_path, name, content)).read()) == []


def test_fingerprint_is_that_of_what_is_read(files: dict[str, str], tmp_path: Path) -> None:
    first = open_sentences(files[".csv"]).fingerprint
    copied = write(tmp_path, "copy.csv", Path(files[".csv"]).read_text(encoding="utf-8"))
    assert open_sentences(copied).fingerprint == open_sentences(files[".csv"], "text").fingerprint == first
    assert open_sentences(files[".csv"], "id").fingerprint != first
    text = Path(copied).read_text(encoding="utf-8")
    for changed in (text + "2,b\n", text.replace("man", "dog")):
        assert open_sentences(write(tmp_path, "copy.csv", changed)).fingerprint != first


def test_a_change_behind_the_first_megabyte_changes_the_fingerprint(tmp_path: Path) -> None:
    text = "a man sleeps\n" * 100_000
    fingerprints = [open_sentences(write(tmp_path, "a.txt", text + last)).fingerprint for last in ("dog", "cat")]
    assert fingerprints[0] != fingerprints[1]


def test_standard_input_has_a_sentence_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(SENTENCES).encode())))
    source = open_sentences("-")
    assert (source.name, source.count) == ("standard input", None)
    assert list(source.read()) == SENTENCES
    assert source.fingerprint != open_sentences("-").fingerprint
    with pytest.raises(ValueError, match="one sentence a line: leave --text_column out"):
        open_sentences("-", "text")
    with pytest.raises(ValueError, match="one sentence a line: leave --split out"):
        open_sentences("-", split="train")


def test_file_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        for number in itertools.count():
            yield f"sentence {number}"

    path = write(tmp_path, "a.txt", "\n".join(itertools.islice(lines(), 5000)) + "\n")
    with (tmp_path / "a.txt").open("ab") as file:
        file.write(b"\xff\n")
    sentences = open_sentences(path).read()
    assert list(itertools.islice(sentences, 5000)) == list(itertools.islice(lines(), 5000))
    with pytest.raises(ValueError, match=re.escape("a.txt, line 5001 is not UTF-8")):
        next(sentences)


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "id,text\n1,a\n", "txt", "a.csv has no column 'txt': it has id, text; did you mean 'text'?"),
        ("a.csv", "id,text\n1,a\n", "zzz", "a.csv has no column 'zzz': it has id, text."),
        ("a.csv", "title,body\na,b\n", None, "a.csv: it is not clear which of 'title', 'body' holds the texts; say it"),
        ("a.csv", "premise,hypothesis\na,b\n", None, "a.csv holds pairs (premise and hypothesis), but single texts"),
        ("a.csv", "id\n", "text", "a.csv has no column 'text': it has id."),
        ("a.jsonl", '{"text": 5}', None, "a.jsonl, line 1: 5 is no text: fix the row or name another column."),
        ("a.jsonl", '{"text": "a"', None, "a.jsonl, line 1 is broken JSON"),
        ("a.parquet", "PAR1", None, "a.parquet is a broken Parquet file"),
        ("a.xml", "[]", None, "a.xml has an unsupported extension: give .txt, .jsonl, .json, .csv, .tsv, .parquet"),
    ],
)
def test_mistakes_of_files_are_told_at_once(
    tmp_path: Path, name: str, content: str, column: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        open_sentences(write(tmp_path, name, content), column)


def test_missing_files_and_splits_of_files(tmp_path: Path, files: dict[str, str]) -> None:
    for name in (str(tmp_path / "no.txt"), "no.txt", "some/no.jsonl.gz", "one/two/three", "no.json"):
        with pytest.raises(FileNotFoundError, match=f"There is no file {name}: give"):
            open_sentences(name)
    with pytest.raises(ValueError, match=r"a\.txt is a file and has no splits: leave --split out"):
        open_sentences(files[".txt"], split="train")


def test_a_url_is_that_of_one_file() -> None:
    for name in ("a.txt", "b.txt?download=true"):
        MemoryFileSystem().pipe(f"/sources/{name}", b"A man sleeps.\n")
    assert list(open_sentences("memory://sources/a.txt").read()) == ["A man sleeps."]
    for url in ("memory://sources", "memory://sources/"):
        with pytest.raises(ValueError, match=f"^{url} is a folder: give the URL of one file, or a folder on this"):
            open_sentences(url, split="train")
    with pytest.raises(ValueError, match=r"has \?download=true behind the file's name, whose extension says"):
        open_sentences("memory://sources/b.txt?download=true")
    with pytest.raises(FileNotFoundError, match=r"^There is no file memory://sources/\*\.txt, and patterns are not"):
        open_sentences("memory://sources/*.txt")


@pytest.fixture
def folder(tmp_path: Path, datasets_cache: None) -> str:
    splits: dict[str, list[Any]] = {"train": SENTENCES, "test": [None, "b"]}
    for split, texts in splits.items():
        (tmp_path / "data").mkdir(exist_ok=True)
        table = pyarrow.table({"text": pyarrow.array(texts, pyarrow.string()), "id": range(len(texts))})
        pyarrow.parquet.write_table(table, tmp_path / "data" / f"{split}-00000-of-00001.parquet")
    return str(tmp_path / "data")


def test_data_set_is_streamed(folder: str) -> None:
    source = open_sentences(folder, split="train")
    assert list(source.read()) == list(source.read()) == SENTENCES
    other = open_sentences(folder, "text", "test")
    assert list(other.read()) == ["", "b"]
    assert other.fingerprint != source.fingerprint
    assert open_sentences(folder, split="train").fingerprint == source.fingerprint


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.csv", 'id,text\n1,NA\n2,None\n3,"a, b"\n4,\n5,007\n'),
        ("data.tsv", 'id\ttext\n1\t"Hello he said.\n2\tA man sleeps.\n3\tnull\n4\t"Stop!" she cried.\n5\tEnd.\n'),
    ],
)
def test_a_folder_of_tables_is_read_as_its_file_is(
    name: str, content: str, packed: bool, tmp_path: Path, datasets_cache: None
) -> None:
    (tmp_path / "folder").mkdir()
    file = write(tmp_path / "folder", name, content)
    if packed:
        Path(f"{file}.gz").write_bytes(gzip.compress(Path(file).read_bytes()))
        Path(file).unlink()
        file = f"{file}.gz"
    as_file = list(open_sentences(file, "text").read())
    assert list(open_sentences(str(tmp_path / "folder"), "text").read()) == as_file
    write(tmp_path / "folder", "README.md", "# My data\n")
    assert list(open_sentences(str(tmp_path / "folder"), "text").read()) == as_file


@pytest.mark.parametrize(
    ("name", "first", "second", "message"),
    [
        (
            "csv",
            "text,label\na man,pos\n",
            "text,label\na dog,pos,\n",
            r"b\.csv, line 2 has 3 fields, but",
        ),
        ("csv", "text\na man\n", "a dog\nthe rain\n", r"b\.csv\b.* has no column 'text'"),
        ("csv", "A man plays in the park.\n", "A man plays in the park.\nTwo dogs run.\n", "looks like a text"),
        ("csv", "text\na man\n", 'text\n"a dog\n', r"b\.csv, line 2"),
        ("jsonl", '{"text": "a man"}\n', '{"txt": "the rain"}\n', r"b\.jsonl, line 1 has no column 'text'"),
    ],
)
def test_mistakes_in_any_file_of_a_folder_are_told(
    name: str, first: str, second: str, message: str, tmp_path: Path, datasets_cache: None
) -> None:
    write(tmp_path, f"a.{name}", first)
    write(tmp_path, f"b.{name}", second)
    with pytest.raises(ValueError, match=message):
        list(open_sentences(str(tmp_path)).read())


def test_a_folder_s_dates_are_texts_and_a_change_of_any_file_is_told(tmp_path: Path, datasets_cache: None) -> None:
    write(tmp_path, "a.jsonl", '{"text": "2021-05-05"}\n')
    file = write(tmp_path, "b.jsonl", '{"text": "b"}\n')
    source = open_sentences(str(tmp_path))
    assert list(source.read()) == ["2021-05-05", "b"]
    source.require_unchanged()
    Path(file).write_text('{"text": "other"}\n')
    with pytest.raises(ValueError, match=r"b\.jsonl"):
        source.require_unchanged()


def test_a_folder_of_lines_is_read_as_its_files_are(tmp_path: Path, datasets_cache: None) -> None:
    write(tmp_path, "b.txt", "\ufeffA man.\nHe\rruns.\n\n\u2028 ")
    Path(tmp_path, "a.txt.gz").write_bytes(gzip.compress(b"A dog.\r\n"))
    assert list(open_sentences(str(tmp_path)).read()) == ["A dog.", "A man.", "He\rruns.", "", "\u2028 "]
    write(
        tmp_path,
        "README.md",
        "---\nconfigs:\n- config_name: default\n  data_files: b.txt\n  sample_by: document\n---\n",
    )
    assert len(list(open_sentences(str(tmp_path)).read())) == 1
    Path(tmp_path, "README.md").unlink()
    Path(tmp_path, "a.txt").write_bytes("A man.\n".encode("utf-16-le"))
    with pytest.raises(ValueError, match=r"a\.txt, line 1 holds a zero byte, as UTF-16"):
        open_sentences(str(tmp_path))


def test_a_folder_s_card_says_which_files_are_read_and_how(tmp_path: Path, datasets_cache: None) -> None:
    write(tmp_path, "some.csv", "text\nNA\n007\n")
    write(tmp_path, "other.csv", "text\nelse\n")
    card = "---\nconfigs:\n- config_name: default\n  data_files: some.csv\n{}---\n"
    write(tmp_path, "README.md", card.format(""))
    assert list(open_sentences(str(tmp_path)).read()) == ["NA", "007"]
    write(tmp_path, "README.md", card.format("  na_values: ['007']\n"))
    assert list(open_sentences(str(tmp_path)).read()) == ["", ""]
    write(tmp_path, "some.csv", "number;text\n1;a\n")
    write(tmp_path, "README.md", card.format('  sep: ";"\n'))
    assert list(open_sentences(str(tmp_path)).read()) == ["a"]


def test_mistakes_of_data_sets_are_clear(folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has the splits train, test: say with --split which to read"):
        open_sentences(folder)
    with pytest.raises(ValueError, match=r"has no split 'trian': it has train, test; did you mean 'train'\?"):
        open_sentences(folder, split="trian")
    with pytest.raises(ValueError, match=r"has no column 'txt': it has text, id; did you mean 'text'\?"):
        open_sentences(folder, "txt", "train")
    with pytest.raises(ValueError, match=r"train-\S+\.parquet, row 1: 0 is no text"):
        list(open_sentences(folder, "id", "train").read())
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty is no file, and no data set that can be read \([^\n]+\): give either"):
        open_sentences(str(tmp_path / "empty"))
    Path(folder, "more.csv").write_text("text\nnever read\n")
    with pytest.raises(ValueError, match=r"more\.csv would not be read: `datasets` takes test-\S+\.parquet, train"):
        open_sentences(folder, split="train")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match="There is no file org/name, and reading a data set needs datasets: pip"):
        open_sentences("org/name")
