"""Rows as padded batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence
from transformers import BatchEncoding


@runtime_checkable
class PaddableRows(Protocol):
    """Rows that make a padded batch of themselves, faster than row by row."""

    def padded(self, pad_token_id: int) -> dict[str, NDArray[Any]]:
        """All rows, padded on the right: arrays (batch, words), and `labels` (batch,)."""


@dataclass(frozen=True)
class PadRows:
    """Makes a batch of rows, padded on the right to the longest one.

    It does what `DataCollatorWithPadding` does with a tokenizer of this package, which pads lists in Python: at 256
    pairs of a headline and a body of news that takes longer than the update of a small model.

    Attributes:
        pad_token_id: The padding of `input_ids`; that of all else is 0.
    """

    pad_token_id: int

    def __call__(self, rows: Sequence[Mapping[str, Any]] | PaddableRows) -> BatchEncoding:
        """Join rows of numbers: a list or array (words,) becomes (batch, words), `labels` becomes (batch,)."""
        if isinstance(rows, PaddableRows):
            arrays = rows.padded(self.pad_token_id)
            return BatchEncoding({name: torch.from_numpy(array) for name, array in arrays.items()})
        batch = {
            name: pad_sequence(
                [torch.as_tensor(row[name], dtype=torch.long) for row in rows],
                batch_first=True,
                padding_value=self.pad_token_id if name == "input_ids" else 0,
            )
            for name in rows[0]
            if name != "labels"
        }
        return BatchEncoding({**batch, "labels": torch.tensor([row["labels"] for row in rows])})
