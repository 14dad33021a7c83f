"""Tokenised examples that hold each distinct text once: a batch is put together when it is read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import TextTokenizer
from run_glue_style.tasks.class_shares import ClassShares
from run_glue_style.tasks.distinct_texts import Indices

from .training_batches import label_array


def token_ids(
    tokenizer: Tokenizer, texts: Iterable[str], progress: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Tokenise texts to what is small in memory. Special tokens are read, and none added.

    Args:
        tokenizer: Its padding and truncation are switched off.
        texts: As for [`TextTokenizer.tokens`].
        progress: Show a bar.

    Returns:
        Ids of all texts one after another, (tokens,), and how many each text has, (texts,).
    """
    ids, _, lengths = TextTokenizer(tokenizer).tokens(texts, add_special_tokens=False, progress=progress)
    return ids, lengths


class TokenizedTexts:
    """The token ids of texts, and the tokenizer's template that makes examples of them."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        ids: NDArray[np.int32],
        lengths: Indices,
        sentences_per_example: int,
        max_tokens: int | None = None,
    ) -> None:
        """Set up texts.

        Args:
            tokenizer: A tokenizer of this package's models.
            ids: What `token_ids` or `tokenize_once` made of the texts. (tokens of all texts,)
            lengths: How many of them each text has. (texts,)
            sentences_per_example: 1, or 2 for pairs.
            max_tokens: Examples hold so many tokens of a text, where the model reads no more of them.
        """
        self.ids, self.lengths, self.ends = ids, lengths, lengths.cumsum()
        self.kept = self.lengths  # (texts,) how many of its tokens an example holds
        if max_tokens is not None:
            # Padding and separators are no tokens of a sentence, and a text with a separator may be a pair.
            special = np.isin(self.ids, [tokenizer.pad_token_id, tokenizer.sep_token_id])  # (tokens of all texts,)
            with_special = np.searchsorted(self.ends, np.flatnonzero(special), "right")
            self.kept = self.lengths.clip(max=max_tokens)
            self.kept[with_special] = self.lengths[with_special]
        # A sample of one token a sentence shows which special tokens stand around the sentences.
        sample = tokenizer(*["a"] * sentences_per_example)
        self.template = list(
            zip(sample.sequence_ids(0), sample["input_ids"], sample["token_type_ids"], strict=True)
        )  # (sentence or None, id, token type) of each token

    def document_frequencies(self, texts: Indices, vocab_size: int) -> NDArray[np.int64]:
        """In how many of these texts each token of a vocabulary stands. (texts,) -> (vocab_size,)"""
        frequencies = np.zeros(vocab_size, np.int64)
        for text in texts:
            start = self.ends[text] - self.lengths[text]
            frequencies[np.unique(self.ids[start : start + self.kept[text]])] += 1
        return frequencies

    def padded(self, columns: Sequence[Indices], pad_token_id: int) -> dict[str, NDArray[np.int64]]:
        """The examples of these texts in one array each, padded on the right, without a loop over examples or tokens.

        With the template `sentence [SEP]` and texts of 2 and 1 tokens, the first part of the template writes at the
        offsets 0, 1 of example 0 and at 0 of example 1, which moves their cursors to [2, 1]; the second writes there,
        and moves them to [3, 2], the examples' lengths.

        Args:
            columns: The index of each example's text, for each sentence of an example. (batch,)
            pad_token_id: The padding of `input_ids`; that of all else is 0.

        Returns:
            `input_ids`, `token_type_ids` and `attention_mask`. (batch, tokens)
        """
        starts = [self.ends[column] - self.lengths[column] for column in columns]  # (batch,) of each sentence
        lengths = [self.kept[column] for column in columns]  # (batch,) of each sentence
        cursor = np.zeros(len(columns[0]), np.int64)  # (batch,) where the template's next part begins
        special = sum(sentence is None for sentence, _, _ in self.template)
        shape = (len(cursor), special + int(sum(lengths, cursor).max(initial=0)))
        ids, types = np.full(shape, pad_token_id, np.int64), np.zeros(shape, np.int64)  # (batch, tokens)
        for sentence, token, token_type in self.template:
            count = lengths[sentence] if sentence is not None else np.ones_like(cursor)  # (batch,) tokens of the part
            example = np.repeat(np.arange(len(cursor)), count)  # (tokens of all parts,)
            offset = np.arange(len(example)) - np.repeat(count.cumsum() - count, count)  # (tokens of all parts,)
            target = example, cursor[example] + offset
            ids[target] = token if sentence is None else self.ids[starts[sentence][example] + offset]
            types[target] = token_type
            cursor += count
        mask = (np.arange(shape[1]) < cursor[:, None]).astype(np.int64)  # (batch, tokens)
        return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}


class TokenizedExamples:
    """The examples of a split, which make batches of themselves."""

    def __init__(
        self, tokenized: TokenizedTexts, texts: Sequence[Indices], labels: Any, shares: ClassShares | None = None
    ) -> None:
        """Set up examples.

        Args:
            tokenized: The texts.
            texts: Which text stands in each example, for each sentence of an example. (examples,)
            labels: The class, the number or the vector of each example. (examples, ...)
            shares: Of the classes, for a loss that must know how frequent they are.
        """
        self.tokenized, self.texts, self.labels, self.shares = tokenized, texts, label_array(labels), shares

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, examples: slice) -> "TokenizedExamples":
        """The examples of a slice."""
        return self._chosen(examples)

    def __getitems__(self, indices: Sequence[int]) -> "TokenizedExamples":
        """The examples of these indices; torch's loaders ask for a batch by this name."""
        return self._chosen(np.asarray(indices, np.int64))

    def padded(self, pad_token_id: int) -> dict[str, NDArray[Any]]:
        """All examples as one batch: see `TokenizedTexts.padded`, `labels` (batch, ...), perhaps `log_class_shares`.

        Returns:
            The last of these (batch, classes).
        """
        batch = self.tokenized.padded(self.texts, pad_token_id) | {"labels": self.labels}
        return batch if self.shares is None else batch | {"log_class_shares": self.shares.of_examples()}

    def without_shares(self) -> "TokenizedExamples":
        """The same examples for a model that is measured and not trained."""
        return TokenizedExamples(self.tokenized, self.texts, self.labels)

    def sorted_by(self, groups: Indices) -> "TokenizedExamples":
        """The same examples, those of a group (examples,) next to each other, the group of the first example first."""
        _, first, of_example = np.unique(groups, return_index=True, return_inverse=True)
        return self._chosen(first[of_example].argsort(kind="stable"))

    def document_frequencies(self, vocab_size: int) -> tuple[NDArray[np.int64], int]:
        """In how many of their distinct texts each token of a vocabulary stands (vocab_size,), and how many there are.

        A token stands in a text as far as the examples hold it.
        """
        texts = np.unique(np.concatenate(self.texts))
        return self.tokenized.document_frequencies(texts, vocab_size), len(texts)

    def _chosen(self, indices: Indices | slice) -> "TokenizedExamples":
        shares = None if self.shares is None else self.shares.chosen(indices)
        columns = [column[indices] for column in self.texts]
        return TokenizedExamples(self.tokenized, columns, self.labels[indices], shares)


@dataclass(frozen=True)
class TruncationStats:
    """How much of the distinct texts of a column a model reads.

    Attributes:
        texts: How many there are.
        tokens: How many tokens they have in all.
        longest: Tokens of the longest one.
        truncated: How many are longer than the model reads.
        unread_share: Share of all their tokens that the model does not read.
    """

    texts: int
    tokens: int
    longest: int
    truncated: int
    unread_share: float


def truncation_stats(examples: TokenizedExamples, sentence: int, max_tokens: int | None) -> TruncationStats:
    """How much a model reads that sees the first `max_tokens` tokens of each text; None reads all.

    Args:
        examples: A split with one example or more.
        sentence: Which sentence of an example, from 0.
        max_tokens: The most tokens.
    """
    lengths = examples.tokenized.lengths[np.unique(examples.texts[sentence])]  # (distinct texts,)
    unread = (lengths - max_tokens).clip(0) if max_tokens is not None else np.zeros_like(lengths)
    return TruncationStats(
        texts=len(lengths),
        tokens=int(lengths.sum()),
        longest=int(lengths.max()),
        truncated=int((unread > 0).sum()),
        unread_share=float(unread.sum() / max(lengths.sum(), 1)),
    )
