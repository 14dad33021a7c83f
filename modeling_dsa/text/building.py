"""From word vectors and a vocabulary to a model with its tokenizer."""

import copy
import logging
from collections.abc import Iterable
from functools import partial
from os import PathLike
from typing import TypeVar, cast

import numpy as np
import torch

from modeling_dsa.configuration_dsa import DSAConfig
from modeling_dsa.modeling_dsa import DSAPreTrainedModel

from .special_tokens import SPECIAL_TOKENS
from .tokenization import WordTokenizer
from .vocabulary import Choose, Size, Vocabulary, is_lower, vocabulary_of_texts
from .word_vectors import WordVectors, read_vectors

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=DSAPreTrainedModel)

_FIRST_WORDS = 10_000  # frequent words tell whether a file is cased; one odd word far down must not
_ROWS_AT_ONCE = 1 << 13  # rows of the word table that are copied at once


def vocabulary_from_texts(
    path: str | PathLike[str], texts: Iterable[str], progress: bool = True
) -> tuple[WordTokenizer, WordVectors]:
    """A tokenizer that knows every word of `texts`, and the vectors of those that the file has.

    Args:
        path: As for `vocabulary_from_file`.
        texts: Any number of texts.
        progress: Show a progress bar.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The texts hold no word, the file has none of their words, or `read_vectors` refuses the file.
    """
    return vocabulary_from_file(path, partial(vocabulary_of_texts, texts, Size()), progress)


def vocabulary_from_file(
    path: str | PathLike[str], choose: Choose, progress: bool = True
) -> tuple[WordTokenizer, WordVectors]:
    """A tokenizer with the vocabulary that is chosen, and the vectors of those words and pieces that the file has.

    The file decides whether texts are lower-cased: they are if none of its first 10,000 words has a capital letter
    (GloVe 6B, 42B, twitter), and keep their letters otherwise (840B).

    Args:
        path: A file that `read_vectors` reads.
        choose: Such as `vocabulary_of_texts` with its texts.
        progress: Show a progress bar.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file has none of the words, `read_vectors` refuses it, or `choose` refuses what it reads.
    """
    vocabulary = choose(lowercase=is_lower(read_vectors(path, max_words=_FIRST_WORDS, progress=False).words))
    tokenizer = vocabulary.tokenizer()
    return tokenizer, read_vectors(path, words=tokenizer.get_vocab(), progress=progress)


def vocabulary_from_vectors(
    path: str | PathLike[str], max_words: int | None = None, progress: bool = True
) -> tuple[WordTokenizer, WordVectors]:
    """A tokenizer that knows the first `max_words` words of a file (the most frequent ones), and their vectors.

    Texts will be lower-cased if none of the first 10,000 of these words has a capital letter.

    Args:
        path: A file that `read_vectors` reads.
        max_words: How many words; None takes all.
        progress: Show a progress bar.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: `read_vectors` refuses the file.
    """
    vectors = read_vectors(path, max_words=max_words, progress=progress)
    words = [word for word in vectors.words if word not in SPECIAL_TOKENS]
    return Vocabulary(words, lowercase=is_lower(words[:_FIRST_WORDS])).tokenizer(), vectors


def build_model(
    model_class: type[Model], config: DSAConfig, tokenizer: WordTokenizer, vectors: WordVectors, seed: int
) -> Model:
    """A model with fresh weights whose word table holds the vectors.

    Words without a vector, and `[UNK]`, stay as they were drawn, from U(-a, a); the padding's row is 0. The same
    arguments give the same model, whatever torch's random state is, and that state stays as it is.

    Args:
        model_class: Such as `DSAForNLI`.
        config: Stays as it is; the model gets a copy whose `vocab_size`, `embedding_size` and token ids fit tokenizer
            and vectors.
        tokenizer: Made by `build_tokenizer`; gives each word its row.
        vectors: The word vectors; those of words that the tokenizer does not know are left out.
        seed: Seed of everything that is drawn.

    Raises:
        ValueError: No word of the tokenizer has a vector, or config and class do not fit.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    rows = np.fromiter((vocabulary.get(word, -1) for word in vectors.words), np.int64, len(vectors.words))
    known = np.flatnonzero(rows >= len(SPECIAL_TOKENS))
    if not len(known):
        raise ValueError(
            f"None of the tokenizer's {len(vocabulary) - len(SPECIAL_TOKENS):,} words is among the "
            f"{len(vectors.words):,} words with a vector: take vectors of the same language and case."
        )
    config = copy.deepcopy(config)
    config.vocab_size, config.embedding_size = len(vocabulary), vectors.dimension
    config.pad_token_id, config.sep_token_id = tokenizer.pad_token_id, tokenizer.sep_token_id
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would also reset the generators of all GPUs
        model = model_class(config)
    table = cast(torch.Tensor, model.get_input_embeddings().weight)  # (vocabulary, d_0)
    with torch.no_grad():
        for start in range(0, len(known), _ROWS_AT_ONCE):
            part = known[start : start + _ROWS_AT_ONCE]
            table[torch.from_numpy(rows[part])] = torch.from_numpy(vectors.vectors[part])  # (part, d_0)
    logger.info(f"{len(known):,} of {len(vocabulary) - len(SPECIAL_TOKENS):,} words have a vector.")
    return model
