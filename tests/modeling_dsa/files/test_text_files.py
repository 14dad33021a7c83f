"""modeling_dsa.files.text_files: every format, and the location of each mistake."""

import base64
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet
import pytest

from modeling_dsa.files.text_files import read_lines, read_rows, read_texts

TEXTS = ["a man, sleeps", "line one\nline two", "x"]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_every_format_gives_the_same_texts(tmp_path: Path) -> None:
    texts = ['He said "no, never".', "It's 5\u2028o'clock", "Straße…"]
    rows = list(zip(texts, ["b", None, ""], strict=True))
    table = pyarrow.table({"id": [1, 2, 3], "text": texts, "other": [other for _, other in rows]})
    pyarrow.parquet.write_table(table, tmp_path / "d.parquet")
    quoted = ((text.replace('"', '""'), other or "") for text, other in rows)
    objects = [json.dumps({"other": other, "text": text, "id": 1}) for text, other in rows]
    paths = [
        write(tmp_path, "a.csv", "\ufefftext,other\r\n" + "".join(f'"{text}",{other}\r\n' for text, other in quoted)),
        write(tmp_path, "b.tsv", "id\ttext\tother\n" + "".join(f"1\t{text}\t{other or ''}\n" for text, other in rows)),
        write(tmp_path, "c.JSONL", "\n\n".join(objects)),
        write(tmp_path, "c.json", "\n\n".join(objects)),
        write(tmp_path, "f.json", "\n[" + ",\n".join(objects) + "]"),
        tmp_path / "d.parquet",
    ]
    for path in paths:
        assert read_texts([path], ["text"]) == texts, path
        assert read_texts([path], ["text", "other"]) == [texts[0], "b", *texts[1:]], path
    lines = write(tmp_path, "e.txt", "\ufeff" + "\r\n".join([*texts, "", "last"]))
    assert read_texts([lines]) == [*texts, "last"]
    assert read_texts([write(tmp_path, "table.txt", "id\ttext\n1\ta b\n")], ["text"]) == ["a b"]


def test_csv_holds_line_ends_in_quotes_and_rows_that_end_early(tmp_path: Path) -> None:
    assert read_texts([write(tmp_path, "a.csv", 'id,text\n1,"a\nb"\n2\n\n3,c\n')], ["text"]) == ["a\nb", "c"]


def test_csv_field_has_any_length(tmp_path: Path) -> None:
    assert read_texts([write(tmp_path, "a.csv", f"text\n{'x' * 200_000}\n")], ["text"]) == ["x" * 200_000]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        (
            "a.xml",
            "",
            ["text"],
            "a.xml has an unsupported extension: give .txt, .jsonl, .json, .csv, .tsv, .parquet or one of them with",
        ),
        ("a.txt", b"good\nbad \xff\n", [], "a.txt, line 2 is not UTF-8"),
        ("a.jsonl", '{"text": "a"}\n{"text": ', ["text"], "a.jsonl, line 2 is broken JSON"),
        ("a.jsonl", '\n["a"]', ["text"], "a.jsonl, line 2 is no JSON object"),
        ("a.json", '\n[{"text": "a"},\n{"text": ]', ["text"], "a.json, line 3 is broken JSON"),
        ("a.json", '[{"text": "a"}, 5]', ["text"], "a.json, row 2 is no JSON object but 5"),
        ("a.jsonl", '{"text": "a"}\n{"id": 1, "t": 2}', ["text"], "line 2 has no column 'text': it has id, t."),
        ("a.jsonl", '{"text": 5}', ["text"], "a.jsonl, line 1: 5 is no text"),
        ("a.jsonl", '{"id": 5, "text": "a"}', [], "a.jsonl has the columns id, text: say with --text_column"),
        ("a.csv", "id,text\n1,a\n", ["id", "txt"], "a.csv has no column 'txt': it has id, text; did you mean 'text'?"),
        ("a.csv", "id,text\n1,a\n", [], "a.csv has the columns id, text: say with --text_column"),
        ("a.csv", "id,text\n1,a\n1,b,c\n", ["text"], "a.csv, line 3 has 3 fields, but the header 2"),
        ("a.csv", 'id,text\n1,"a\n', ["text"], "a.csv, line 2 is broken (unexpected end of data)"),
        ("a.tsv", "id\ttext\n1\ta\tb\n", ["text"], "a.tsv, line 2 has 3 fields, but the header 2"),
        ("a.jsonl", '{"text": ' + "[" * 100_000, ["text"], "a.jsonl, line 1 is broken JSON (it is nested too deeply)"),
        ("a.json", "[" * 100_000, ["text"], "a.json is broken JSON (it is nested too deeply)"),
        ("a.jsonl", f'{{"text": {"9" * 5000}}}', ["text"], "a.jsonl, line 1 is broken JSON (Exceeds the limit"),
        ("a.jsonl", '{"text": "a", "text": "b"}', ["text"], "line 1 is broken JSON (it has the key 'text' twice)"),
        ("a.csv", "text,id,text\na,1,b\n", ["text"], "a.csv has the column 'text' twice: rename or remove one."),
        ("a.tsv", "id\ttext\tid\n1\ta\t2\n", ["text"], "a.tsv has the column 'id' twice"),
        ("a.parquet", "PAR1 and no more", ["text"], "a.parquet is a broken Parquet file"),
    ],
)
def test_mistakes_name_the_file_the_place_and_the_way_out(
    tmp_path: Path, name: str, content: str | bytes, columns: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_texts([write(tmp_path, name, content)], columns)


def test_damaged_page_and_columns_of_one_name_in_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a b c d"] * 5000}), path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.parquet is a broken Parquet file"):
        read_texts([path], ["text"])
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], ["text", "text"])
    pyarrow.parquet.write_table(twice, path)
    with pytest.raises(ValueError, match=r"a\.parquet has the column 'text' twice"):
        read_texts([path], ["text"])


def test_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"a\.txt is no regular file"):
        read_texts([tmp_path / "a.txt"])


def test_empty_columns_at_the_end_of_a_table_are_no_columns(tmp_path: Path) -> None:
    assert read_texts([write(tmp_path, "a.csv", "text,,\na,,\n")], ["text"]) == ["a"]


def test_missing_file_folder_and_parquet_column(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*b\.txt"):
        read_texts([tmp_path / "b.txt"])
    (tmp_path / "c.txt").mkdir()
    with pytest.raises(ValueError, match=r"c\.txt is a folder"):
        read_texts([tmp_path / "c.txt"])
    pyarrow.parquet.write_table(pyarrow.table({"id": [1], "text": ["a"]}), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"d\.parquet has no column 'txt': it has id, text; did you mean 'text'\?"):
        read_texts([tmp_path / "d.parquet"], ["txt"])
    with pytest.raises(ValueError, match=r"d\.parquet, row 1: 1 is no text"):
        read_texts([tmp_path / "d.parquet"], ["id"])


@pytest.mark.parametrize("packed", [False, True])
def test_rows_have_a_place_and_the_wanted_columns_in_their_order(tmp_path: Path, packed: bool) -> None:
    rows = [{"id": "1", "text": "a", "other": "x"}, {"id": "2", "text": 'lone " quote', "other": ""}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    tabs = '\ufeffid\ttext\tother\r\n1\ta\tx\r\n\r\n2\tlone " quote\r\n'
    paths = {
        write(tmp_path, "a.txt", tabs): ["line 2", "line 4"],
        write(tmp_path, "a.tsv", tabs): ["line 2", "line 4"],
        write(tmp_path, "a.csv", 'id,text,other\n"1",a,x\n2,"lone "" quote"\n'): ["line 2", "line 3"],
        write(tmp_path, "a.jsonl", "\n" + "\n".join(map(json.dumps, rows))): ["line 2", "line 3"],
        tmp_path / "a.parquet": ["row 1", "row 2"],
    }
    for path, locations in paths.items():
        source = write(tmp_path, path.name + ".GZ", gzip.compress(path.read_bytes())) if packed else path
        found = list(read_rows(source))
        assert [location for location, _ in found] == [f"{source}, {location}" for location in locations]
        assert [row for _, row in found] == rows
        assert [list(row.items()) for _, row in read_rows(source, ["text", "id"])] == [
            [("text", row["text"]), ("id", row["id"])] for row in rows
        ]
        with pytest.raises(ValueError, match=r"has no column 'none': it has id, text, other\."):
            list(read_rows(source, ["id", "none"]))


def test_row_of_several_lines_stands_at_its_last(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'id,text\n1,"a\r\n\nb"\n2,c\n')
    assert [(location, row["text"]) for location, row in read_rows(path)] == [
        (f"{path}, line 4", "a\r\n\nb"),
        (f"{path}, line 5", "c"),
    ]


def test_lines_keep_their_spaces_and_number(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt.gz", gzip.compress("\ufeffa \r\n\n b\u2028c".encode()))
    assert list(read_lines(path)) == [
        (f"{path}, line 1", "a "),
        (f"{path}, line 2", ""),
        (f"{path}, line 3", " b\u2028c"),
    ]
    assert read_texts([path]) == ["a ", " b\u2028c"]


@pytest.mark.parametrize("content", [b"id,text", gzip.compress(b"id,text\n1,a\n" * 1000, mtime=0)[:-9]])
def test_broken_gzip_file(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, "a.csv.gz", content)
    with pytest.raises(ValueError, match=re.escape(f"{path} is a broken gzip file (")):
        read_texts([path], ["text"])


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text\rA man\rA dog\r", "carriage return that ends no line"),
        ("text\nA man\n".encode("utf-16-le"), "zero byte"),
        (b"PK\x03\x04\x14\x00", "zero byte"),
    ],
)
def test_lines_that_are_none_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_lines, read_rows):
        with pytest.raises(ValueError, match=f"line 1 holds a {message}"):
            list(read(path))


EVIL = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": b"cposix\nmkdir\n(Vran\ntR."}


@pytest.mark.parametrize(
    "metadata",
    [
        {"ARROW:schema": b"no schema"},
        {"ARROW:schema": base64.b64encode(b"\xff" * 500)},
        {"ARROW:schema": base64.b64encode(pyarrow.schema([("label", pyarrow.int64())]).serialize().to_pybytes())},
        {
            "ARROW:schema": base64.b64encode(
                pyarrow.schema([pyarrow.field("text", pyarrow.string(), metadata=EVIL)]).serialize().to_pybytes()
            )
        },
        {"huggingface": '{"info":' * 5000, "pandas": "{"},
        {str(number): "x" for number in range(10_000)},
    ],
    ids=["no schema", "noise", "other columns", "a pickle", "nested", "many"],
)
def test_what_else_a_parquet_schema_says_changes_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pyarrow.table({"text": ["A man", "A dog"]}).replace_schema_metadata(metadata)
    pyarrow.parquet.write_table(table, "a.parquet", store_schema=False)
    assert [row["text"] for _, row in read_rows(Path("a.parquet"))] == ["A man", "A dog"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        ({"text": TEXTS, "n": [1, 2, 3]}, (3, 4)),
        ({"n": [1, 2, 3], "text": TEXTS}, (3, 4)),
        ({"n": [1, 2, 3], "text": ["a", 'say "no\n\n"no" more" b\nc', "d"], "m": [1, 2, 3]}, (3, 6)),
        ({"text": TEXTS, "other": TEXTS}, (3, 5)),
    ],
)
def test_texts_of_several_lines_in_a_table_with_tabs_are_refused(
    tmp_path: Path, columns: dict[str, Any], lines: tuple[int, int]
) -> None:
    path = tmp_path / "a.tsv"
    pandas.DataFrame(columns).to_csv(path, sep="\t", index=False)
    first, last = lines
    with pytest.raises(ValueError, match=rf"a\.tsv, line {first} opens a quotation mark that line {last} closes, but "):
        list(read_rows(path))


def test_quotation_marks_of_single_lines_are_characters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = ['"open\t1', 'end"\t2', '"a" b\t3', '"\t4', '5\t"', "6\t7", 'c"']
    path = write(tmp_path, "a.tsv", "\n".join(["text\tn", *rows]))
    assert [tuple(row.values()) for _, row in read_rows(path)] == [tuple((f"{row}\t").split("\t")[:2]) for row in rows]
    assert not caplog.messages
    path = write(tmp_path, "b.tsv", 'text\n"line one\nline two"\n"line three\nline four"\n')  # or four sentences
    assert len(list(read_rows(path))) == 4
    (message,) = caplog.messages
    assert message.startswith(f"{path}, line 2 opens a quotation mark that line 3 closes, but these lines are texts of")


def test_a_row_in_an_open_quotation_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,score\n"Well, it is\n1,000, or so\nmore",1\n')
    assert len(list(read_rows(path))) == 1
    assert not caplog.messages
    path.write_text('text,score\n"open,1\nb,2\nc",3\n')
    for _ in range(2):
        assert len(list(read_rows(path))) == 1
    (message,) = caplog.messages
    assert message.startswith(
        f"{path}, line 4: a field of several lines holds 'open,1', which looks like a row of its own"
    )


def test_of_many_such_rows_the_first_are_told_and_the_others_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "articles.csv"
    path.write_text("text,score\n" + '"open,1\nb,2\nc",3\n' * 5)
    assert len(list(read_rows(path))) == 5
    assert len(caplog.messages) == 4
    assert caplog.messages[-1].startswith(f"{path}: 2 more fields of several lines hold what looks like a row")
