"""The sentences that a student learns from: read from the first whenever they are needed, never held all at once."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.encoding.sources import SentenceSource
from modeling_dsa.files.hashing import with_length
from modeling_dsa.files.lines import STANDARD_INPUT
from modeling_dsa.files.remote_paths import parse_path

_KEY_BYTES = 8


class Sentences:
    """Examples of one sentence each, or of the two sentences of a pair. Iterating gives all sentences, pair by pair.

    Sentence j of example i has the index `i * per_example + j`.

    Attributes:
        name: Of the source.
        per_example: 1, or 2 for pairs.
        sha256: Hash of all sentences.
        keys: A hash of each example: copies have the same. (examples,)
        sentence_keys: The same of each sentence. (examples, per_example)
        are_blank: Whether one of an example's sentences has nothing but blanks. (examples,)
    """

    def __init__(self, sources: Sequence[SentenceSource], limit: int | None = None, progress: bool = False) -> None:
        """Read all sentences once.

        Args:
            sources: One, or one for each sentence of a pair.
            limit: Read only so many examples.
            progress: Show a bar.

        Raises:
            ValueError: The source can be read only once, the data are broken, or there is no sentence.
        """
        if any(source.name == STANDARD_INPUT for source in sources):
            raise ValueError("The texts are read several times, and standard input only once: give a file.")
        self._sources, self._limit = sources, limit
        self.name, self.per_example = sources[0].name, len(sources)
        total, keys, sentence_keys, are_blank = hashlib.sha256(), bytearray(), bytearray(), bytearray()
        count = sources[0].count if limit is None else limit
        for example in tqdm(self._examples(), total=count, desc="reading", unit=" examples", disable=not progress):
            parts = [with_length(sentence) for sentence in example]
            total.update(b"".join(parts))
            keys += _key(b"".join(parts))
            if self.per_example > 1:
                sentence_keys += b"".join(map(_key, parts))
            are_blank.append(any(not sentence.strip() for sentence in example))
        if not keys:
            raise ValueError(f"{self.name} holds no sentence: give texts to learn from.")
        self.sha256 = total.hexdigest()
        self.keys: NDArray[np.uint64] = np.frombuffer(keys, np.uint64)
        self.sentence_keys = np.frombuffer(sentence_keys or keys, np.uint64).reshape(-1, self.per_example)
        self.are_blank: NDArray[np.bool_] = np.frombuffer(are_blank, np.bool_)

    def __len__(self) -> int:
        return len(self.keys) * self.per_example

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self._examples())

    def count_whole(self) -> int | None:
        """How many sentences the texts have, also those behind the limit; a file that does not say so is read for it.

        Returns:
            Their number, or None of a data set of the Hub that does not say so: all of it would have to be fetched.

        Raises:
            ValueError: The data behind the limit are broken.
        """
        if self._limit is None or len(self.keys) < self._limit:
            return len(self)
        source = self._sources[0]
        count = source.count
        if count is None and parse_path(source.name).exists():  # else it is the Hub's
            count = sum(1 for _ in source.read())
            source.require_unchanged()
        return None if count is None else count * self.per_example

    def hold_out(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Split the examples into those for training and `count` distinct ones for validation.

        The same ones whatever their order and the seed of a run: those whose hashes are the smallest. Their copies are
        in neither part, nor are pairs one of whose sentences is held out, nor what is blank, which teaches and tells
        nothing.

        Returns:
            Indices of both, in their order. (examples,) twice

        Raises:
            ValueError: Fewer than two distinct examples would be left for training.
        """
        written = np.flatnonzero(~self.are_blank)
        distinct, first = np.unique(self.keys[written], return_index=True)
        held_out = np.sort(written[first[:count]])
        is_held_out = np.isin(self.sentence_keys, self.sentence_keys[held_out]).any(1)  # (examples,)
        train = np.flatnonzero(~is_held_out & ~self.are_blank)
        if len(np.unique(self.keys[train])) < 2:
            raise ValueError(
                f"--validation_sentences {count:,} leaves nothing to train on: {self.name} has {len(distinct):,} "
                f"distinct examples{', which share sentences' if self.per_example > 1 else ''}. Give fewer, or more "
                "texts."
            )
        return train, held_out

    def hash_of(self, examples: NDArray[np.int64]) -> str:
        """What tells some examples, in their order, from others. (examples,)"""
        return hashlib.sha256(self.keys[examples].tobytes()).hexdigest()

    def at(self, examples: NDArray[np.int64]) -> list[list[str]]:
        """The sentences of examples, whose indices ascend. (examples, sentences of an example)"""
        wanted, found = iter(examples.tolist()), []
        following = next(wanted, None)
        for index, example in enumerate(self._examples()):
            if index == following:
                found.append(list(example))
                following = next(wanted, None)
                if following is None:
                    break
        return found

    def _examples(self) -> Iterator[tuple[str, ...]]:
        columns = zip(*(source.read() for source in self._sources), strict=True)
        for example in itertools.islice(columns, self._limit):
            yield tuple(map(replace_surrogates, example))
        for source in self._sources:
            source.require_unchanged()


def _key(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_KEY_BYTES).digest()
