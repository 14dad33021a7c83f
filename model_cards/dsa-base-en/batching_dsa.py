"""Texts to batches of token ids and back to one result a text: the one way of torch, ONNX, the pipeline and bulk.

It needs no torch. It goes to the Hub with the model, whose pipeline uses it there.
"""

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from tokenizers import Encoding, Tokenizer
from tqdm.auto import tqdm

Text: TypeAlias = str | tuple[str, str]
VectorType: TypeAlias = Literal["float32", "float16", "int8"]
Vectors: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
Integers: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]

DTYPES: tuple[str, ...] = get_args(VectorType)
BATCH_SIZE = 256  # Measured on two cores with 2 MB of cache: from 192 to 384 there is no difference.
_USUAL_TOKENS = 16  # With more tokens a batch is made of fewer sentences, so that it stays in the cache.
_TOKENIZED_AT_ONCE = 4096  # A token costs some hundred bytes until only its id is left.


@dataclass(frozen=True)
class Batch:
    """Distinct texts of similar lengths.

    Attributes:
        index: Which of the distinct texts these are. (batch,)
        text_count: How many texts they are with their copies.
        input_ids: Token ids, padded with 0 on the right. (batch, tokens)
        attention_mask: True for tokens, False for padding. (batch, tokens)
        token_type_ids: 1 for the tokens of a pair's second text, else 0. (batch, tokens)
    """

    index: Integers
    text_count: int
    input_ids: Integers
    attention_mask: Integers
    token_type_ids: Integers


class TextTokenizer:
    """A tokenizer for many texts, of which it keeps what is small in memory: the ids of their tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a tokenizer.

        Args:
            tokenizer: The model's. Its padding and truncation are switched off.
        """
        self.tokenizer = tokenizer

    def tokens(
        self,
        texts: Iterable[Text],
        *,
        with_types: bool = False,
        add_special_tokens: bool = True,
        progress: bool = False,
    ) -> tuple[Integers, Integers | None, Integers]:
        """Tokenise texts.

        Args:
            texts: Strings, or pairs of them, read once. Half of a UTF-16 surrogate pair, which is no character, is read
                as U+FFFD.
            with_types: Also give the types, which differ in pairs alone.
            add_special_tokens: Add what the tokenizer puts around a text. Those in a text are read in any case.
            progress: Show a bar.

        Returns:
            Ids of all texts one after another, (tokens,), int32; their types, the same, or None; and how many each text
            has, (texts,), int64.
        """
        ids, types, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        remaining = iter(texts)
        total = operator.length_hint(texts) or None
        # One that is switched off takes a tenth of the time of a single sentence.
        with tqdm(total=total, desc="tokenising", unit=" texts") if progress else nullcontext() as bar:
            while part := list(itertools.islice(remaining, _TOKENIZED_AT_ONCE)):
                of_ids, of_types = self.rows(part, with_types, add_special_tokens)
                lengths.append(np.array([len(row) for row in of_ids], np.int64))
                ids.append(_flat(of_ids, int(lengths[-1].sum())))
                types.append(_flat(of_types, len(ids[-1]) if with_types else 0))
                if bar is not None:
                    bar.update(len(part))
        return np.concatenate(ids), np.concatenate(types) if with_types else None, np.concatenate(lengths)

    def rows(
        self, texts: list[Text], with_types: bool, add_special_tokens: bool
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Ids of each text and, where they are wanted, its types; all at once, for few texts."""
        encodings = self._encode(texts, add_special_tokens)
        return [each.ids for each in encodings], [each.type_ids for each in encodings] if with_types else []

    def _encode(self, texts: Sequence[Text], add_special_tokens: bool) -> list[Encoding]:
        # What an earlier call of the tokenizer asked for stays with it.
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = False  # those in a text are read as such
        try:
            return self.tokenizer.encode_batch_fast(texts, add_special_tokens=add_special_tokens)
        except TypeError:  # it takes every string but those with half a surrogate pair
            whole: list[Text] = [
                replace_surrogates(text)
                if isinstance(text, str)
                else (replace_surrogates(text[0]), replace_surrogates(text[1]))
                for text in texts
            ]
            return self.tokenizer.encode_batch_fast(whole, add_special_tokens=add_special_tokens)


class TextBatches:
    """Batches of the distinct texts of a list, the longest first; `len` and an index give them one by one."""

    def __init__(
        self, tokenizer: TextTokenizer, texts: Sequence[Text], batch_size: int = BATCH_SIZE, *, at_a_time: int = 1
    ) -> None:
        """Tokenise texts, each distinct one once.

        Args:
            tokenizer: The model's.
            texts: As for the tokenizer.
            batch_size: Texts of a batch; fewer where they are longer than 16 tokens.
            at_a_time: How many batches will be computed at a time: none has more than its share of the texts.

        Raises:
            ValueError: One of `texts` is neither a string nor a pair.
        """
        self.copy_of, distinct = _distinct(texts)
        self.copies = np.bincount(self.copy_of, minlength=len(distinct))
        pairs = any(isinstance(text, tuple) for text in distinct)
        self.ids, self.types, self.lengths = tokenizer.tokens(distinct, with_types=pairs)
        self.starts = self.lengths.cumsum() - self.lengths
        # The longest first: what does not fit in memory fails at once, and no thread ends with the longest batch.
        self.order = np.argsort(-self.lengths, kind="stable")
        self.bounds = list(self._bounds(min(batch_size, -(-len(distinct) // at_a_time)), batch_size * _USUAL_TOKENS))

    def _bounds(self, most_texts: int, most_tokens: int) -> Iterator[tuple[int, int]]:
        """First and end of each batch in the order of lengths."""
        first = 0
        while first < len(self.order):
            width = max(1, int(self.lengths[self.order[first]]))
            end = first + max(1, min(most_texts, most_tokens // width))
            yield first, min(end, len(self.order))
            first = end

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, number: int) -> Batch:
        index = self.order[slice(*self.bounds[number])]  # (batch,)
        position = np.arange(max(1, int(self.lengths[index[0]])))  # (tokens,)
        mask = position < self.lengths[index, None]  # (batch, tokens)
        ids, types = np.zeros(mask.shape, np.int64), np.zeros(mask.shape, np.int64)
        flat = (self.starts[index, None] + position)[mask]
        ids[mask] = self.ids[flat]
        if self.types is not None:
            types[mask] = self.types[flat]
        return Batch(index, int(self.copies[index].sum()), ids, mask, types)

    def restore(self, results: Vectors) -> Vectors:
        """Results of the distinct texts as those of the texts that came in. (distinct, ...) -> (texts, ...)"""
        return results if len(results) == len(self.copy_of) else results[self.copy_of]


def compute_in_batches(
    tokenizer: TextTokenizer,
    texts: Sequence[Text],
    compute: Callable[[Batch], Vectors],
    width: int,
    dtype: str = "float32",
    *,
    batch_size: int = BATCH_SIZE,
    threads: int = 1,
    progress: bool = False,
) -> Vectors:
    """Compute a vector for each text, each distinct one once.

    Args:
        tokenizer: The model's.
        texts: As for the tokenizer.
        compute: Gives the vectors of a batch. (batch, width)
        width: Numbers in a vector.
        dtype: Of the result.
        batch_size: As for `TextBatches`.
        threads: How many batches are computed at a time.
        progress: Show a bar.

    Returns:
        (texts, width), in the order of the texts.

    Raises:
        ValueError: One of `texts` is neither a string nor a pair, or `batch_size` is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
    if len(texts) == 1 and not progress:
        return compute(_batch_of_one(tokenizer, *texts)).astype(dtype, copy=False)
    batches = TextBatches(tokenizer, texts, batch_size, at_a_time=threads)
    found: Vectors = np.empty((len(batches.lengths), width), dtype)

    def compute_one(number: int) -> tuple[Batch, Vectors]:
        batch = batches[number]
        return batch, compute(batch)

    # One that is switched off takes a tenth of the time of a single sentence.
    with tqdm(total=len(batches.copy_of), unit=" sentences") if progress else nullcontext() as bar:
        for batch, vectors in _mapped(compute_one, range(len(batches)), threads):
            found[batch.index] = vectors
            if bar is not None:
                bar.update(batch.text_count)
    return batches.restore(found)


def encode_sentences(
    tokenizer: TextTokenizer,
    sentences: str | Iterable[str],
    compute: Callable[[Batch], Vectors],
    width: int,
    *,
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    dtype: VectorType = "float32",
    threads: int = 1,
    progress: bool = False,
) -> Vectors:
    """Compute the vectors of sentences, each distinct one once.

    With "int8" each vector is multiplied by 127 over its largest magnitude and rounded. That keeps its direction and
    not its length, so such vectors are compared by their cosine, which needs no scale and no calibration:
    `a @ b / (norm(a) * norm(b))` in integers that do not overflow (int32) or in floating point. `a / norm(a)` is the
    normalised vector again, each of its numbers to within about 1/254 of its largest one.

    Args:
        tokenizer: The model's.
        sentences: A sentence, or any number of them. An empty one has the vector that the model gives it. Half of a
            UTF-16 surrogate pair, which is no character, is read as U+FFFD.
        compute: Gives the model's vectors of a batch. (batch, width)
        width: Numbers in a vector, m * d_o.
        batch_size: Sentences that the model sees at once; fewer where they are longer than 16 tokens.
        normalize: Give each vector the length 1; a vector of zeros stays.
        dtype: Of the result: "float32", "float16" or "int8".
        threads: How many batches are computed at a time.
        progress: Show a bar.

    Returns:
        (m * d_o,) for one sentence, else (sentences, m * d_o).

    Raises:
        ValueError: One of `sentences` is no string, or an option has no such value.
    """
    if dtype not in DTYPES:
        raise ValueError(f"There are no vectors of dtype {dtype!r}: give one of {', '.join(DTYPES)}.")
    check_ordered(sentences)
    try:
        texts = [sentences] if isinstance(sentences, str) else list(sentences)
    except TypeError as error:
        raise ValueError(f"Sentences are a string or several of them, got {sentences!r}.") from error
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"The sentence at index {index} is {text!r}, which is no string.")
    vectors = compute_in_batches(
        tokenizer,
        texts,
        lambda batch: _converted(compute(batch), normalize, dtype),
        width,
        dtype,
        batch_size=batch_size,
        threads=threads,
        progress=progress,
    )
    return vectors[0] if isinstance(sentences, str) else vectors


def check_ordered(sentences: object) -> None:
    """Refuse what gives other than its sentences, or in any order, where they are read one by one.

    Args:
        sentences: What is to be read.

    Raises:
        ValueError: It is a dict, which gives its keys, a table, which gives its columns, or a set.
    """
    if isinstance(sentences, Mapping | Set) or hasattr(sentences, "columns"):
        raise ValueError(f"Sentences are a string or a list of them, got a {type(sentences).__name__}.")


def check_token_ids(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Refuse a tokenizer with ids that a model's word table does not have.

    Args:
        tokenizer: The model's.
        vocab_size: Rows of its word table.

    Raises:
        ValueError: There is such an id.
    """
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if largest >= vocab_size:
        raise ValueError(
            f"The tokenizer has ids up to {largest}, but the model's word table {vocab_size} rows: they are not of one "
            "model."
        )


def replace_surrogates(text: str) -> str:
    """Read half of a UTF-16 surrogate pair, which is no character and which no tokenizer takes, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unit_vectors(vectors: Vectors) -> Vectors:
    """Give each vector the length 1; one of zeros stays. (..., width) -> the same"""
    # In float64, as the squares of float32's largest numbers are infinite in it, and those of the smallest 0.
    lengths = np.linalg.norm(vectors.astype(np.float64, copy=False), axis=-1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(vectors.dtype, copy=False)


def softmax(scores: Vectors) -> Vectors:
    """Scores as probabilities, which sum to 1 over the last axis. (..., classes) -> the same"""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities: Vectors = powers / powers.sum(axis=-1, keepdims=True)
    return probabilities


def _batch_of_one(tokenizer: TextTokenizer, text: Text) -> Batch:
    """A text alone: to sort and to count several takes a third of the time of a small model."""
    _check(text, 0)
    (ids,), types = tokenizer.rows([text], isinstance(text, tuple), True)
    input_ids = np.array([ids or [0]], np.int64)  # (1, tokens)
    token_type_ids = np.array(types, np.int64) if ids and types else np.zeros_like(input_ids)  # (1, tokens)
    return Batch(np.zeros(1, np.int64), 1, input_ids, np.full(input_ids.shape, bool(ids)), token_type_ids)


def _check(text: Text, index: int) -> None:
    if not isinstance(text, str) and not (
        isinstance(text, tuple) and len(text) == 2 and all(isinstance(part, str) for part in text)
    ):
        raise ValueError(f"The text at index {index} is {text!r}, which is neither a string nor a pair of strings.")


def _distinct(texts: Sequence[Text]) -> tuple[Integers, list[Text]]:
    """Which distinct text each text is, (texts,), and the distinct ones."""
    index_of: dict[Text, int] = {}
    copy_of = np.empty(len(texts), np.int64)
    for index, text in enumerate(texts):
        _check(text, index)
        copy_of[index] = index_of.setdefault(text, len(index_of))
    return copy_of, list(index_of)


def _flat(rows: Iterable[list[int]], count: int) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return np.fromiter(itertools.chain.from_iterable(rows), np.int32, count)


def _mapped(
    compute: Callable[[int], tuple[Batch, Vectors]], numbers: range, threads: int
) -> Iterator[tuple[Batch, Vectors]]:
    if threads == 1 or len(numbers) < 2:
        yield from map(compute, numbers)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(compute, numbers)


def _converted(vectors: Vectors, normalize: bool, dtype: VectorType) -> Vectors:
    """Vectors as they are asked for. (batch, width) -> the same"""
    if normalize:
        vectors = unit_vectors(vectors)
    if dtype == "int8":
        largest = np.abs(vectors).max(axis=1, keepdims=True)  # (batch, 1)
        if not np.isfinite(largest).all():
            raise ValueError("A vector is not finite, which int8 cannot say: give dtype float32, or another model.")
        vectors = (vectors / np.where(largest > 0, largest, 1) * 127).round()
    return vectors
