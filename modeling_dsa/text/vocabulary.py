"""Which words a model knows, and which pieces of the others: chosen from texts or from a list of words."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol

from modeling_dsa.files.lines import read_lines

from .pieces import learn_pieces
from .tokenization import WordTokenizer, build_tokenizer, count_words, split_texts

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Size:
    """How large a vocabulary is.

    Attributes:
        words: How many words at most, the most frequent ones or the first of a list; None takes all.
        pieces: How many pieces are learnt for the other words; 0 leaves the vocabulary closed.
    """

    words: int | None = None
    pieces: int = 0

    def changed(self, words: int | None, pieces: int | None) -> "Size":
        """Another one where something else is asked for."""
        return Size(self.words if words is None else words, self.pieces if pieces is None else pieces)


@dataclass(frozen=True)
class Vocabulary:
    """Words, pieces, and how often they occur.

    Attributes:
        words: Distinct words, the most frequent ones or the first of a list at the front.
        pieces: The pieces of other words, and characters of other scripts; without any the vocabulary is closed.
        lowercase: Whether texts are lower-cased.
        counts: How often each word of the texts occurs, those that are not among `words` too; empty for a list.
    """

    words: Sequence[str]
    pieces: Sequence[str] = ()
    lowercase: bool = True
    counts: Mapping[str, int] = field(default_factory=dict)

    def tokenizer(self) -> WordTokenizer:
        """A tokenizer that knows these words and pieces."""
        logger.info("Texts are lower-cased." if self.lowercase else "Texts keep their capital letters.")
        return build_tokenizer(self.words, lowercase=self.lowercase, pieces=self.pieces)


class Choose(Protocol):
    """What chooses a vocabulary once it is known whether texts are lower-cased."""

    def __call__(self, *, lowercase: bool) -> Vocabulary:
        """The vocabulary."""


def vocabulary_of_texts(texts: Iterable[str], size: Size, *, lowercase: bool) -> Vocabulary:
    """Choose the most frequent words of texts, and learn pieces from all of their words.

    Args:
        texts: Any number of texts.
        size: How large it is.
        lowercase: Whether texts are lower-cased. Texts without a capital letter lose nothing, so they always are: a
            word of theirs is then known at the start of a sentence too.

    Raises:
        ValueError: The texts hold no word.
    """
    counts = count_words(texts, lowercase=lowercase, open_vocabulary=bool(size.pieces))
    if not counts:
        raise ValueError("There is no word in the texts: give texts to take the vocabulary from.")
    return _vocabulary(counts, size, lowercase, counts)


def vocabulary_of_list(path: Path, size: Size) -> Choose:
    """Read a list, of which the first words are taken, and pieces learnt from all of them.

    Args:
        path: A UTF-8 file with one word a line, also with `.gz` behind. A line that is several words for the tokenizer
            (`well-known`) gives each of them.
        size: How large the vocabulary is.

    Returns:
        What chooses it; it raises ValueError where the file holds no word.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no word list {path}: give a file with one word a line.")
    lines = [line for _, line in read_lines(path)]  # now: a mistake is told before a teacher is loaded

    def choose(*, lowercase: bool) -> Vocabulary:
        split = split_texts(lines, lowercase=lowercase, open_vocabulary=bool(size.pieces))
        words = dict.fromkeys(chain.from_iterable(split), 1)
        if not words:
            raise ValueError(f"There is no word in {path}: give a list with one word a line.")
        return _vocabulary(words, size, lowercase, {})

    return choose


def token_counts(vocabulary: Vocabulary, tokenizer: WordTokenizer) -> Counter[str]:
    """How often each token occurs in the texts of a vocabulary, with the pieces that other words are split into."""
    known = set(vocabulary.words)
    counts = Counter({word: count for word, count in vocabulary.counts.items() if word in known})
    others = [word for word in vocabulary.counts if word not in known]
    split = tokenizer.backend_tokenizer.encode_batch(others, add_special_tokens=False)
    for word, encoding in zip(others, split, strict=True):
        for token in encoding.tokens:
            counts[token] += vocabulary.counts[word]
    return counts


def is_lower(words: Iterable[str]) -> bool:
    """Whether no word has a capital letter."""
    return all(word == word.lower() for word in words)


def _vocabulary(occurring: Mapping[str, int], size: Size, lowercase: bool, counts: Mapping[str, int]) -> Vocabulary:
    words = list(occurring)[: size.words]
    pieces = learn_pieces(occurring, size.pieces, words=words) if size.pieces else []
    return Vocabulary(words, pieces, lowercase or is_lower(occurring), counts)
