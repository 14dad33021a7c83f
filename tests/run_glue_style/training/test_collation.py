"""Padded batches, against those of transformers."""

import numpy as np
import pytest
import torch
from small_runs import small_tokenizer, tokenized
from transformers import DataCollatorWithPadding

from run_glue_style.training.collation import PadRows


@pytest.mark.parametrize("kind", [list, np.asarray])
def test_batches_are_those_of_transformers(kind: type) -> None:
    tokenizer = small_tokenizer()
    rows = tokenized("train", 40)
    rows[7] = {name: [] for name in rows[7]} | {"labels": 2}  # a text without words
    expected = DataCollatorWithPadding(tokenizer)(rows)
    given = [{name: kind(value) if name != "labels" else value for name, value in row.items()} for row in rows]
    batch = PadRows(tokenizer.pad_token_id)(given)
    assert batch.keys() == expected.keys()
    for name in expected:
        assert batch[name].dtype == torch.long
        assert torch.equal(batch[name], expected[name].long())


def test_padding_is_that_of_the_tokenizer() -> None:
    rows = [
        {"input_ids": [1, 2], "attention_mask": [1, 1], "labels": 0},
        {"input_ids": [3], "attention_mask": [1], "labels": 1},
    ]
    batch = PadRows(9)(rows)
    assert batch["input_ids"].tolist() == [[1, 2], [3, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]
    assert batch["labels"].tolist() == [0, 1]
