"""Tokenised rows that hold each distinct text once: a row is put together when it is read.

The 49,972 pairs of the Fake News Challenge are 22 million words, but 1,683 bodies and 1,648 headlines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from run_glue_style.tasks.distinct_texts import Indices

Row: TypeAlias = dict[str, Any]


class TokenizedTexts:
    """The token ids of texts, and the tokenizer's template that makes rows of them."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        ids: NDArray[np.int32],
        lengths: Indices,
        sentences_per_row: int,
        max_words: int | None = None,
    ) -> None:
        """Set up texts.

        Args:
            tokenizer: A tokenizer of this package's models.
            ids: What `token_ids` or `tokenize_once` made of the texts. (tokens of all texts,)
            lengths: How many of them each text has. (texts,)
            sentences_per_row: 1, or 2 for pairs.
            max_words: Rows hold so many words of a text, where the model reads no more of them.
        """
        self.ids, self.lengths, self.ends = ids, lengths, lengths.cumsum()
        self.read = self.lengths  # (texts,) how many of its tokens a row holds
        if max_words is not None:
            marks = [tokenizer.pad_token_id, tokenizer.sep_token_id]  # no words, and a text with one may be a pair
            marked = np.searchsorted(self.ends, np.flatnonzero(np.isin(self.ids, marks)), "right")
            self.read = self.lengths.clip(max=max_words)
            self.read[marked] = self.lengths[marked]
        # One word in the place of each sentence shows which special tokens stand around them.
        sample = tokenizer(*["a"] * sentences_per_row)
        self.template = list(
            zip(sample.sequence_ids(0), sample["input_ids"], sample["token_type_ids"], strict=True)
        )  # (sentence or None, id, token type) of each place

    def row(self, *texts: int) -> Row:
        """The row of these texts, by number: what the tokenizer gives for them."""
        ids, types = [], []
        for sentence, token, token_type in self.template:
            part = np.asarray([token], np.int32)
            if sentence is not None:
                number = texts[sentence]
                start = self.ends[number] - self.lengths[number]
                part = self.ids[start : start + self.read[number]]
            ids.append(part)
            types.append(np.full_like(part, token_type))
        row = {"input_ids": np.concatenate(ids), "token_type_ids": np.concatenate(types)}  # (words,), (words,)
        return {**row, "attention_mask": np.ones_like(row["input_ids"])}

    def padded(self, columns: Sequence[Indices], pad_token_id: int) -> dict[str, NDArray[np.int64]]:
        """The rows of these texts in one array each, padded on the right, without a loop over rows or words.

        Args:
            columns: The number of each row's text, for each sentence of a row. (rows,)
            pad_token_id: The padding of `input_ids`; that of all else is 0.

        Returns:
            `input_ids`, `token_type_ids` and `attention_mask`. (rows, words)
        """
        starts = [self.ends[column] - self.lengths[column] for column in columns]  # (rows,) of each sentence
        lengths = [self.read[column] for column in columns]
        used = np.zeros(len(columns[0]), np.int64)  # (rows,)
        special = sum(sentence is None for sentence, _, _ in self.template)
        shape = (len(used), special + int(sum(lengths, used).max(initial=0)))
        ids, types = np.full(shape, pad_token_id, np.int64), np.zeros(shape, np.int64)
        for sentence, token, token_type in self.template:
            count = lengths[sentence] if sentence is not None else np.ones_like(used)  # tokens of each row
            row = np.repeat(np.arange(len(used)), count)  # (tokens of all rows,)
            within = np.arange(len(row)) - np.repeat(count.cumsum() - count, count)
            place = row, used[row] + within
            ids[place] = token if sentence is None else self.ids[starts[sentence][row] + within]
            types[place] = token_type
            used += count
        mask = (np.arange(shape[1]) < used[:, None]).astype(np.int64)
        return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}


class TextRows(Sequence[Row]):
    """The rows of a split: `input_ids`, `token_type_ids` and `attention_mask` (words,), and `labels`, a number."""

    def __init__(self, tokenized: TokenizedTexts, numbers: Sequence[Indices], labels: Sequence[int] | Indices) -> None:
        """Set up rows.

        Args:
            tokenized: The texts.
            numbers: Which text stands in each row, for each sentence of a row. (rows,)
            labels: The class of each row. (rows,)
        """
        self.tokenized, self.numbers, self.labels = tokenized, numbers, np.asarray(labels)

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "TextRows": ...
    def __getitem__(self, index: int | slice) -> "Row | TextRows":
        """The row of this number, or the rows of a slice."""
        if isinstance(index, slice):
            return TextRows(self.tokenized, [column[index] for column in self.numbers], self.labels[index])
        return self.tokenized.row(*(column[index] for column in self.numbers)) | {"labels": self.labels[index]}

    def __getitems__(self, indices: Sequence[int]) -> "TextRows":
        """The rows of these numbers; torch's loaders ask for a batch by this name."""
        chosen = np.asarray(indices, np.int64)
        return TextRows(self.tokenized, [column[chosen] for column in self.numbers], self.labels[chosen])

    def padded(self, pad_token_id: int) -> dict[str, NDArray[np.int64]]:
        """All rows as one batch: see `TokenizedTexts.padded`, and `labels` (rows,)."""
        return self.tokenized.padded(self.numbers, pad_token_id) | {"labels": self.labels}

    def sorted_by(self, groups: Indices) -> "TextRows":
        """The same rows, those of a group next to each other. (rows,)"""
        order = groups.argsort(kind="stable")
        return self.__getitems__(order.tolist())


@dataclass(frozen=True)
class Reading:
    """How much of the distinct texts of a column a model reads.

    Attributes:
        texts: How many there are.
        words: How many words they have in all.
        longest: Words of the longest one.
        longer: How many are longer than the model reads.
        unread_words: Share of all their words that the model does not read.
    """

    texts: int
    words: int
    longest: int
    longer: int
    unread_words: float


def reading(rows: TextRows, column: int, limit: int | None) -> Reading:
    """How much a model reads that sees the first `limit` words of each text; None reads all.

    Args:
        rows: A split with one row or more.
        column: Which sentence of a row, from 0.
        limit: The most words.
    """
    lengths = rows.tokenized.lengths[np.unique(rows.numbers[column])]  # (distinct texts,)
    unread = (lengths - limit).clip(0) if limit is not None else np.zeros_like(lengths)
    return Reading(
        texts=len(lengths),
        words=int(lengths.sum()),
        longest=int(lengths.max()),
        longer=int((unread > 0).sum()),
        unread_words=float(unread.sum() / max(lengths.sum(), 1)),
    )
