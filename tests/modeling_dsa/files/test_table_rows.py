"""modeling_dsa.files.table_rows: what quotes and line ends mean in tables with commas and with tabs."""

from pathlib import Path
from typing import Any

import pandas
import pytest

from modeling_dsa.files.text_files import read_rows, read_texts

TEXTS = ["a man, sleeps", "line one\nline two", "x"]


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def test_csv_holds_line_ends_in_quotes_and_rows_that_end_early(tmp_path: Path) -> None:
    assert read_texts([write(tmp_path, "a.csv", 'id,text\n1,"a\nb"\n2\n\n3,c\n')], ["text"]) == ["a\nb", "c"]


def test_csv_field_has_any_length(tmp_path: Path) -> None:
    assert read_texts([write(tmp_path, "a.csv", f"text\n{'x' * 200_000}\n")], ["text"]) == ["x" * 200_000]


def test_empty_columns_at_the_end_of_a_table_are_no_columns(tmp_path: Path) -> None:
    assert read_texts([write(tmp_path, "a.csv", "text,,\na,,\n")], ["text"]) == ["a"]


def test_row_of_several_lines_stands_at_its_last(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'id,text\n1,"a\r\n\nb"\n2,c\n')
    assert [(location, row["text"]) for location, row in read_rows(path)] == [
        (f"{path}, line 4", "a\r\n\nb"),
        (f"{path}, line 5", "c"),
    ]


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
