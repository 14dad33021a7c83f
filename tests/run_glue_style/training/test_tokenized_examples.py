"""Batches that are put together from distinct texts: the tokenizer's own, to the last id."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from small_models import small_config
from small_runs import pairs, small_tokenizer
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding

from modeling_dsa import DSAForNLI
from run_glue_style.tasks.distinct_texts import distinct_texts
from run_glue_style.training.tokenized_examples import (
    TokenizedExamples,
    TokenizedTexts,
    TruncationStats,
    token_ids,
    truncation_stats,
)
from run_glue_style.training.training_batches import PaddingCollator

ODD = ["", " ", "\u200b", "A man.", "a [SEP] b", "[PAD] zzzunknown", "“Curly” – it's 1,000…", "A man."]
COLUMNS = ("premise", "hypothesis")


def make(
    data: dict[str, Dataset], columns: Sequence[str] = COLUMNS, max_tokens: int | None = None
) -> dict[str, TokenizedExamples]:
    texts = distinct_texts(data, columns)
    tokenizer = small_tokenizer()
    tokenized = TokenizedTexts(
        tokenizer, *token_ids(tokenizer.backend_tokenizer, texts.texts), len(columns), max_tokens
    )
    return {
        name: TokenizedExamples(tokenized, [texts.indices[name][column] for column in columns], split["label"][:])
        for name, split in data.items()
    }


@pytest.mark.parametrize("max_tokens", [None, 2])
def test_document_frequencies_are_of_distinct_texts_and_of_what_examples_hold(
    data: dict[str, Dataset], max_tokens: int | None
) -> None:
    tokenizer = small_tokenizer()
    texts = {text for column in COLUMNS for text in data["train"][column]}
    expected = Counter(
        token
        for text in texts
        for ids in [tokenizer(text, add_special_tokens=False)["input_ids"]]
        for token in set(ids if tokenizer.sep_token_id in ids or tokenizer.pad_token_id in ids else ids[:max_tokens])
    )
    found, documents = make(data, max_tokens=max_tokens)["train"].document_frequencies(len(tokenizer))
    assert documents == len(texts)
    assert found.tolist() == [expected[token] for token in range(len(tokenizer))]


def as_rows(examples: TokenizedExamples) -> list[tuple[list[int], int]]:
    """The token ids and the label of each example."""
    batch = examples.padded(0)
    return [
        (ids[mask == 1].tolist(), int(label))
        for ids, mask, label in zip(batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True)
    ]


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    odd = [{"premise": first, "hypothesis": second, "label": 1} for first in ODD for second in ODD]
    train = Dataset.from_list([*pairs("train"), *odd])
    return {"train": train.select(range(len(train) - 1, -1, -1)), "test": Dataset.from_list(pairs("validation"))}


@pytest.mark.parametrize("columns", [COLUMNS, ("hypothesis",)], ids=["pairs", "sentences"])
def test_batches_are_those_of_the_tokenizer(data: dict[str, Dataset], columns: tuple[str, ...]) -> None:
    tokenizer, examples = small_tokenizer(), make(data, columns)["train"]
    # In a batch, for a single pair whose second text is empty counts as one text.
    encoded = tokenizer(*(data["train"][column][:] for column in columns))
    encoded["labels"] = data["train"]["label"][:]
    rows = [dict(zip(encoded, row, strict=True)) for row in zip(*encoded.values(), strict=True)]
    wordless = [n for n, example in enumerate(data["train"]) if example["premise"] == example["hypothesis"] == ""]
    for chosen in ([5], wordless, [7, 3, 3, *range(0, len(examples), 3)], list(range(len(examples)))):
        expected = DataCollatorWithPadding(tokenizer)([rows[n] for n in chosen])
        found = PaddingCollator(9)(examples.__getitems__(chosen))
        expected["input_ids"] = expected["input_ids"].masked_fill(expected["attention_mask"] == 0, 9)
        assert found.keys() == expected.keys()
        for name in expected:
            assert found[name].dtype == torch.long
            assert torch.equal(found[name], expected[name].long())


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_examples_without_the_tokens_that_a_model_does_not_read_give_the_same(
    data: dict[str, Dataset], limit: int
) -> None:
    settings: dict[str, Any] = {
        "sentences_per_example": 2,
        "max_sentence_tokens": limit,
        "vocab_size": len(small_tokenizer()),
    }
    model = DSAForNLI(small_config(**settings)).eval()
    whole, cut = make(data)["train"], make(data, max_tokens=limit)["train"]
    assert cut.padded(0)["attention_mask"].sum() < whole.padded(0)["attention_mask"].sum()
    collate = PaddingCollator(small_tokenizer().pad_token_id)
    with torch.no_grad():
        expected, logits = (model(**collate(examples)).logits for examples in (whole, cut))
    torch.testing.assert_close(logits, expected)
    assert truncation_stats(cut, 0, limit) == truncation_stats(whole, 0, limit)


def test_loaders_fetch_whole_batches(data: dict[str, Dataset]) -> None:
    examples: Any = make(data)["train"]
    batches = list(DataLoader(examples, 16, collate_fn=type))
    assert set(batches) == {TokenizedExamples}
    assert len(batches) == -(-len(examples) // 16)


def test_slices_and_sorting(data: dict[str, Dataset]) -> None:
    examples = make(data)["test"]
    rows = as_rows(examples)
    assert as_rows(examples[3:9:2]) == rows[3:9:2]
    together = examples[:7].sorted_by(np.asarray([5, 1, 2, 5, 1, 2, 5]))
    assert as_rows(together) == [rows[index] for index in (0, 3, 6, 1, 4, 2, 5)]


def test_truncation_stats_count_distinct_texts() -> None:
    texts = ["a b c d e", "a b", "a b c d e", "a b c d"]
    data = {"train": Dataset.from_dict({"premise": texts, "hypothesis": ["a"] * 4, "label": [0] * 4})}
    examples = make(data)["train"]
    assert truncation_stats(examples, 0, None) == TruncationStats(
        texts=3, tokens=11, longest=5, truncated=0, unread_share=0.0
    )
    assert truncation_stats(examples, 0, 3) == TruncationStats(
        texts=3, tokens=11, longest=5, truncated=2, unread_share=3 / 11
    )
    assert truncation_stats(examples, 0, 5) == truncation_stats(examples, 0, None)
    assert truncation_stats(examples, 1, 1) == TruncationStats(
        texts=1, tokens=1, longest=1, truncated=0, unread_share=0.0
    )


def test_text_without_a_token_is_read_in_full() -> None:
    data = {"train": Dataset.from_dict({"premise": [" "], "hypothesis": [""], "label": [0]})}
    assert truncation_stats(make(data)["train"], 0, 1) == TruncationStats(
        texts=1, tokens=0, longest=0, truncated=0, unread_share=0.0
    )
