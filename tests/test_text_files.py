"""modeling_dsa.text_files: every format, and a mistake in each place."""

import json
import re
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from modeling_dsa.text_files import read_texts


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
    objects = (json.dumps({"other": other, "text": text, "id": 1}) for text, other in rows)
    paths = [
        write(tmp_path, "a.csv", "\ufefftext,other\r\n" + "".join(f'"{text}",{other}\r\n' for text, other in quoted)),
        write(tmp_path, "b.tsv", "id\ttext\tother\n" + "".join(f"1\t{text}\t{other or ''}\n" for text, other in rows)),
        write(tmp_path, "c.JSONL", "\n\n".join(objects)),
        tmp_path / "d.parquet",
    ]
    for path in paths:
        assert read_texts([path], ["text"]) == texts, path
        assert read_texts([path], ["text", "other"]) == [texts[0], "b", *texts[1:]], path
    lines = write(tmp_path, "e.txt", "\ufeff" + "\r\n".join([*texts, "", "last"]))
    assert read_texts([lines, paths[0]], ["text"]) == [*texts, "last", *texts]


def test_csv_holds_line_ends_in_quotes_and_rows_that_end_early(tmp_path: Path) -> None:
    assert read_texts([write(tmp_path, "a.csv", 'id,text\n1,"a\nb"\n2\n\n3,c\n')], ["text"]) == ["a\nb", "c"]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.json", "", ["text"], "a.json has an unknown ending: give .txt, .jsonl, .csv, .tsv, .parquet."),
        ("a.txt", b"good\nbad \xff\n", [], "a.txt, line 2 is not UTF-8"),
        ("a.jsonl", '{"text": "a"}\n{"text": ', ["text"], "a.jsonl, line 2 is broken JSON"),
        ("a.jsonl", '\n["a"]', ["text"], "a.jsonl, line 2 is no JSON object"),
        ("a.jsonl", '{"text": "a"}\n{"id": 1, "t": 2}', ["text"], "line 2 has no column 'text': it has id, t."),
        ("a.jsonl", '{"text": 5}', ["text"], "a.jsonl, line 1: 5 is no text"),
        ("a.jsonl", '{"id": 5, "text": "a"}', [], "line 1 has the columns id, text: say with --text_columns"),
        ("a.csv", "id,text\n1,a\n", ["id", "txt"], "a.csv has no column 'txt': it has id, text."),
        ("a.csv", "id,text\n1,a\n", [], "a.csv has the columns id, text: say with --text_columns"),
        ("a.csv", "id,text\n1,a\n1,b,c\n", ["text"], "a.csv, line 3 has 3 fields, but the header 2"),
        ("a.csv", 'id,text\n1,"a\n', ["text"], "a.csv, line 2 is broken (unexpected end of data)"),
        ("a.tsv", "id\ttext\n1\ta\tb\n", ["text"], "a.tsv, line 2 has 3 fields, but the header 2"),
        ("a.parquet", "PAR1 and no more", ["text"], "a.parquet is no whole Parquet file"),
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
    with pytest.raises(ValueError, match=r"d\.parquet has no column 'txt': it has id, text\."):
        read_texts([tmp_path / "d.parquet"], ["txt"])
    with pytest.raises(ValueError, match=r"d\.parquet, row 1: 1 is no text"):
        read_texts([tmp_path / "d.parquet"], ["id"])
