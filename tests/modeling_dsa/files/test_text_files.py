"""modeling_dsa.files.text_files: every format, and the location of each mistake."""

import gzip
import json
import re
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from modeling_dsa.files.text_files import read_rows, read_texts


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
