"""modeling_dsa.files.columns: usual names of columns, and doubts."""

from collections.abc import Sequence
from typing import Any

import pytest

from modeling_dsa.files.columns import example_texts, find_columns, find_text_columns
from modeling_dsa.files.rows import Rows
from modeling_dsa.files.tables import Table


def table(*rows: dict[str, Any], has_types: bool = True) -> Table:
    def read(columns: Sequence[str] | None) -> Rows:
        chosen = ({name: row[name] for name in columns or row} for row in rows)
        return ((f"data, row {index}", row) for index, row in enumerate(chosen, 1))

    return Table("data", read, has_types=has_types)


@pytest.mark.parametrize(
    ("row", "texts", "label"),
    [
        ({"id": 1, "text": "a", "label": 0}, ("text",), "label"),
        ({"text": "a", "title": "b", "label": 0}, ("text",), "label"),
        ({"Sentence1": "a", "sentence2": "b", "idx": 0, "Score": 2.5}, ("Sentence1", "sentence2"), "Score"),
        ({"gold_label": "x", "premise": "a", "hypothesis": "b"}, ("premise", "hypothesis"), "gold_label"),
        ({"question": "a", "sentence": "b", "label": 0}, ("question", "sentence"), "label"),
        ({"review": "good", "stars": 5, "id": 7}, ("review",), "stars"),
        ({"sentence A": "a", "sentence B": "b", "class": "x"}, ("sentence A", "sentence B"), "class"),
    ],
)
def test_usual_names_are_found(row: dict[str, Any], texts: tuple[str, ...], label: str) -> None:
    assert find_columns(table(row)) == (texts, label)
    assert find_text_columns(table(row), pairs=len(texts) == 2) == texts


def test_numbers_of_a_table_of_texts_are_no_texts() -> None:
    rows = [{"id": "1", "words": "a b", "label": "x"}, {"id": "2.5", "words": "3", "label": "x"}]
    assert find_columns(table(*rows, has_types=False)) == (("words",), "label")


def test_given_columns_win() -> None:
    row = {"text": "a", "title": "b", "label": 0, "kind": "x"}
    assert find_columns(table(row), ["title", "text"], "kind") == (("title", "text"), "kind")
    assert find_columns(table(row), ["title"]) == (("title",), "label")


@pytest.mark.parametrize(
    ("row", "texts", "label", "message"),
    [
        ({"text": "a", "label": 0, "class": 1}, None, None, "'label', 'class' may each hold.*with --label_column$"),
        ({"text": "a", "kind": 0}, None, None, "none of the columns 'text', 'kind' is called 'label'; say .*column$"),
        ({"text": "a", "sentence": "b", "label": 0}, None, None, "not clear which of 'text', 'sentence' holds the te"),
        (
            {"a": "a", "b": "b", "c": "c", "label": 0},
            ["a", "b", "c"],
            None,
            "takes one column, or the two different ones",
        ),
        ({"title": "a", "review": "b", "label": 0}, None, None, "not clear which of 'title', 'review' .*--text_column"),
        ({"id": 1, "label": 0}, None, None, "not clear which of 'id' holds the texts"),
        ({"Text": "a", "text": "b", "label": 0}, None, None, "'Text', 'text' are called alike; say with --text_column"),
        ({"text": "a", "label": 0}, ["txt"], None, "has no column 'txt': it has text, label; did you mean 'text'"),
        ({"text": "a", "label": 0}, None, "class", "has no column 'class'"),
        ({"text": "a", "label": 0}, None, "", "has no column ''"),
        ({"text": "a", "label": 0}, ["text"], "text", "'text' cannot hold both texts and labels"),
    ],
)
def test_doubts_name_the_option(row: dict[str, Any], texts: Any, label: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        find_columns(table(row), texts, label)
    assert "\n" not in str(caught.value)


def test_file_without_a_header_is_told() -> None:
    row = {"3": "4", "Wall St. Bears Claw Back Into the Black": "Oil prices"}
    with pytest.raises(ValueError, match="or give the file a first line with the names of its columns"):
        find_columns(table(row, has_types=False))
    with pytest.raises(ValueError, match="data: there are no rows"):
        find_columns(table())


def test_shortest_whole_example_is_shown() -> None:
    rows: list[dict[str, Any]] = [
        {"a": "long text", "b": "x"},
        {"a": "", "b": "x"},
        {"a": "so", "b": "y"},
        {"a": None, "b": "x"},
    ]
    assert example_texts(table(*rows), ["a", "b"]) == ("so", "y")
    assert example_texts(table({"a": None}), ["a"]) == ()
