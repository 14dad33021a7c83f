"""Rows that are put together from distinct texts: the tokenizer's own, to the last id."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from small_models import small_config
from small_runs import pairs, small_tokenizer
from torch.utils.data import DataLoader

from modeling_dsa import DSAForNLI
from modeling_dsa.encoding.encoder import token_ids
from run_glue_style.tasks.distinct_texts import distinct_texts
from run_glue_style.training.collation import PadRows
from run_glue_style.training.text_rows import Reading, TextRows, TokenizedTexts, reading

ODD = ["", " ", "\u200b", "A man.", "a [SEP] b", "[PAD] zzzunknown", "“Curly” – it's 1,000…", "A man."]
COLUMNS = ("premise", "hypothesis")


def make(
    data: dict[str, Dataset], columns: Sequence[str] = COLUMNS, max_words: int | None = None
) -> dict[str, TextRows]:
    texts = distinct_texts(data, columns)
    tokenizer = small_tokenizer()
    tokenized = TokenizedTexts(tokenizer, *token_ids(tokenizer, texts.texts), len(columns), max_words)
    return {
        name: TextRows(tokenized, [texts.indices[name][column] for column in columns], split["label"][:])
        for name, split in data.items()
    }


def as_lists(row: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in row.items()}


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    odd = [{"premise": first, "hypothesis": second, "label": 1} for first in ODD for second in ODD]
    train = Dataset.from_list([*pairs("train"), *odd])
    return {"train": train.select(range(len(train) - 1, -1, -1)), "test": Dataset.from_list(pairs("validation"))}


@pytest.mark.parametrize("columns", [COLUMNS, ("hypothesis",)], ids=["pairs", "sentences"])
def test_rows_are_those_of_the_tokenizer(data: dict[str, Dataset], columns: tuple[str, ...]) -> None:
    tokenizer = small_tokenizer()
    for name, rows in make(data, columns).items():
        # In a batch, for a single pair whose second text is empty counts as one text.
        expected: dict[str, Any] = dict(tokenizer(*(data[name][column][:] for column in columns)))
        expected["labels"] = data[name]["label"][:]
        assert len(rows) == len(data[name])
        for number, row in enumerate(rows):
            assert as_lists(row) == {key: values[number] for key, values in expected.items()}


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_rows_without_the_words_that_a_model_does_not_read_give_the_same(data: dict[str, Dataset], limit: int) -> None:
    settings: dict[str, Any] = {
        "sentences_per_row": 2,
        "max_sentence_words": limit,
        "vocab_size": len(small_tokenizer()),
    }
    model = DSAForNLI(small_config(**settings)).eval()
    whole, cut = make(data)["train"], make(data, max_words=limit)["train"]
    assert sum(len(row["input_ids"]) for row in cut) < sum(len(row["input_ids"]) for row in whole)
    collate = PadRows(small_tokenizer().pad_token_id)
    with torch.no_grad():
        expected, logits = (model(**collate(list(rows))).logits for rows in (whole, cut))
    torch.testing.assert_close(logits, expected)
    assert reading(cut, 0, limit) == reading(whole, 0, limit)


@pytest.mark.parametrize("columns", [COLUMNS, ("hypothesis",)], ids=["pairs", "sentences"])
@pytest.mark.parametrize("limit", [None, 2])
def test_batch_is_that_of_its_rows(data: dict[str, Dataset], columns: tuple[str, ...], limit: int | None) -> None:
    rows = make(data, columns, limit)["train"]
    collate = PadRows(small_tokenizer().pad_token_id)
    wordless = [number for number, row in enumerate(data["train"]) if row["premise"] == row["hypothesis"] == ""]
    for chosen in ([5], wordless, [7, 3, 3, *range(0, len(rows), 3)], list(range(len(rows)))):
        found, expected = collate(rows.__getitems__(chosen)), collate([rows[number] for number in chosen])
        assert found.keys() == expected.keys()
        for name in expected:
            assert found[name].dtype == torch.long
            assert torch.equal(found[name], expected[name])


def test_loaders_fetch_whole_batches(data: dict[str, Dataset]) -> None:
    rows: Any = make(data)["train"]
    batches = list(DataLoader(rows, 16, collate_fn=type))
    assert set(batches) == {TextRows}
    assert len(batches) == -(-len(rows) // 16)


def test_each_distinct_text_is_held_once(data: dict[str, Dataset]) -> None:
    found = distinct_texts(data, COLUMNS)
    rows = [[example[column] for example in split] for split in data.values() for column in COLUMNS]
    assert len(found.texts) == len(set(found.texts))
    assert found.all() == [text for column in rows for text in column]
    assert len(found.texts) < 0.9 * len(found.all())


def test_slices_and_sorting(data: dict[str, Dataset]) -> None:
    rows = make(data)["test"]
    lists = [as_lists(row) for row in rows]
    assert list(map(as_lists, rows[3:9:2])) == lists[3:9:2]
    together = rows[:7].sorted_by(np.asarray([0, 1, 2, 0, 1, 2, 0]))
    assert list(map(as_lists, together)) == [lists[place] for place in (0, 3, 6, 1, 4, 2, 5)]


def test_reading_counts_distinct_texts() -> None:
    texts = ["a b c d e", "a b", "a b c d e", "a b c d"]
    data = {"train": Dataset.from_dict({"premise": texts, "hypothesis": ["a"] * 4, "label": [0] * 4})}
    rows = make(data)["train"]
    assert reading(rows, 0, None) == Reading(texts=3, words=11, longest=5, longer=0, unread_words=0.0)
    assert reading(rows, 0, 3) == Reading(texts=3, words=11, longest=5, longer=2, unread_words=3 / 11)
    assert reading(rows, 0, 5) == reading(rows, 0, None)
    assert reading(rows, 1, 1) == Reading(texts=1, words=1, longest=1, longer=0, unread_words=0.0)


def test_text_without_a_word_is_read_in_full() -> None:
    data = {"train": Dataset.from_dict({"premise": [" "], "hypothesis": [""], "label": [0]})}
    assert reading(make(data)["train"], 0, 1) == Reading(texts=1, words=0, longest=0, longer=0, unread_words=0.0)
