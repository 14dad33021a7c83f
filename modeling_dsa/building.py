"""From word vectors and a vocabulary to a model with its tokenizer."""

import logging
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import torch

from .configuration_dsa import DSAConfig
from .modeling_dsa import DSAPreTrainedModel
from .tokenization import SPECIAL_TOKENS, PreTrainedTokenizerFast, build_tokenizer, count_words
from .vectors import WordVectors, read_vectors

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=DSAPreTrainedModel)


def vocabulary_from_texts(
    path: str | PathLike[str], texts: Sequence[str], progress: bool = True
) -> tuple[PreTrainedTokenizerFast, WordVectors]:
    """A tokenizer that knows every word of `texts`, and the vectors of those that the file has.

    The texts are lower-cased if no word of the file that they use has a capital letter (GloVe 6B, 42B, twitter), and
    left as they are otherwise (840B).

    Args:
        path: A file that `read_vectors` reads.
        texts: Any number of texts.
        progress: Show a progress bar.
    """
    cased = count_words(texts, lowercase=False)
    wanted = set(cased)
    lowered = count_words(texts, lowercase=True)
    vectors = read_vectors(path, words=wanted | set(lowered), progress=progress)
    lowercase = not any(word != word.lower() for word in vectors.words)
    return build_tokenizer(lowered if lowercase else cased, lowercase=lowercase), vectors


def vocabulary_from_vectors(
    path: str | PathLike[str], max_words: int | None = None, progress: bool = True
) -> tuple[PreTrainedTokenizerFast, WordVectors]:
    """A tokenizer that knows the first `max_words` words of a file (the most frequent ones), and their vectors.

    Texts will be lower-cased if no such word has a capital letter.
    """
    vectors = read_vectors(path, max_words=max_words, progress=progress)
    lowercase = not any(word != word.lower() for word in vectors.words)
    words = [word for word in vectors.words if word and word not in SPECIAL_TOKENS]
    return build_tokenizer(words, lowercase=lowercase), vectors


def build_model(
    model_class: type[Model], config: DSAConfig, tokenizer: PreTrainedTokenizerFast, vectors: WordVectors, seed: int
) -> Model:
    """A model with fresh weights whose word table holds the vectors.

    Words without a vector stay as they were drawn, from U(-a, a).

    Args:
        model_class: Such as `DSAForNLI`.
        config: Its `vocab_size`, `embedding_size` and token ids are set to what tokenizer and vectors need.
        tokenizer: Gives each word its row.
        vectors: The word vectors.
        seed: Seed of everything that is drawn.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    settings: dict[str, Any] = config.to_dict() | {
        "vocab_size": len(vocabulary),
        "embedding_size": vectors.dimension,
        "pad_token_id": tokenizer.pad_token_id,
        "sep_token_id": tokenizer.sep_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = model_class(type(config)(**settings))
    known = [(vocabulary[word], row) for row, word in enumerate(vectors.words) if word in vocabulary]
    rows, sources = (torch.tensor(column) for column in zip(*known, strict=True))
    with torch.no_grad():
        model.get_input_embeddings().weight[rows] = torch.from_numpy(np.asarray(vectors.vectors))[sources]
    logger.info(f"{len(known):,} of {len(vocabulary) - len(SPECIAL_TOKENS):,} words have a vector.")
    return model
