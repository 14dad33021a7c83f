"""Word vectors that a teacher makes: of each token of a vocabulary, as if it were a sentence."""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from modeling_dsa.files.replacing import replaced_file
from modeling_dsa.text.special_tokens import SPECIAL_TOKENS
from modeling_dsa.text.tokenization import CONTINUING, WordTokenizer
from modeling_dsa.text.vocabulary import Choose, Size, token_counts
from modeling_dsa.text.word_vectors import WordVectors

from .teacher import load_teacher, teacher_caches, teacher_sha256, teacher_width
from .teacher_characters import characters_of, in_words

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

USUAL_SIZE = Size(words=50_000, pieces=8_000)  # of a vocabulary, where nothing else is said

TEACHER = "teacher:"
_BATCH = 256  # words of a batch


def teacher_name(vectors: Path) -> str | None:
    """The model that `teacher:MODEL` names, or None where it is a file of word vectors.

    Raises:
        ValueError: There is no name.
    """
    mark, found, name = str(vectors).partition(TEACHER)
    if mark or not found:
        return None
    if not name:
        raise ValueError(f"{TEACHER} names no model: give {TEACHER} and a folder or Hub id, such as {TEACHER}org/name.")
    return name


def vocabulary_from_teacher(
    model: str,
    choose: Choose,
    size: int,
    *,
    or_narrower: bool = False,
    frequency_weighting: float | None = None,
    progress: bool = True,
) -> tuple[WordTokenizer, WordVectors]:
    """A tokenizer with the vocabulary that is chosen, and the vectors of all its tokens.

    Texts are lower-cased if the teacher reads capital letters as small ones. An open vocabulary knows the characters of
    other scripts that the teacher knows, too, and emoji.

    Args:
        model: As for `load_teacher`.
        choose: Such as `vocabulary_of_texts` with its texts.
        size: As for `teacher_vectors`.
        or_narrower: Of a teacher whose vectors have fewer numbers take these, and do not refuse it.
        frequency_weighting: As for `teacher_vectors`, with the frequencies of the texts.
        progress: Show a bar.

    Raises:
        ValueError: As in `load_teacher` and `teacher_vectors`, or `choose` refuses what it is given.
    """
    teacher = load_teacher(model)
    capital, small = (np.asarray(teacher.encode([word], show_progress_bar=False)) for word in ("Paris", "paris"))
    vocabulary = choose(lowercase=np.array_equal(capital, small))
    if vocabulary.pieces:
        known = {*vocabulary.words, *vocabulary.pieces}
        others = [char for char in characters_of(teacher, lowercase=vocabulary.lowercase) if char not in known]
        vocabulary = replace(vocabulary, pieces=[*vocabulary.pieces, *others])
    tokenizer = vocabulary.tokenizer()
    counts = None if frequency_weighting is None else token_counts(vocabulary, tokenizer)
    if or_narrower:
        size = min(size, teacher_width(teacher))
    vectors = teacher_vectors(
        teacher, tokenizer, size, counts=counts, frequency_weighting=frequency_weighting, progress=progress
    )
    return tokenizer, vectors


def teacher_vectors(
    teacher: "SentenceTransformer",
    tokenizer: WordTokenizer,
    size: int,
    *,
    counts: Mapping[str, int] | None = None,
    frequency_weighting: float | None = None,
    progress: bool,
) -> WordVectors:
    """The vectors that a teacher gives the tokens of a tokenizer; a piece that continues a word without its `##`,
    an emoji by its name.

    What it computes is kept in `dsa-teacher` in the cache of datasets: the runs of a grid, the processes of a run and
    one that goes on find it there.

    Args:
        teacher: As `load_teacher` gives it.
        tokenizer: Made by `build_tokenizer`.
        size: Numbers in a vector. At the teacher's own number they stay as they are, so that they lie in its space; at
            fewer they are the principal components.
        counts: How often each token occurs, for `frequency_weighting`.
        frequency_weighting: The `a` of smooth inverse frequency: a vector is multiplied by a / (a + p) where the token
            is a share p of all. Small values (0.001) shorten the vectors of the most frequent words.
        progress: Show a bar.

    Raises:
        ValueError: The teacher's vectors have fewer than `size` numbers, or there are fewer tokens.
    """
    width = teacher_width(teacher)
    if size > width:
        raise ValueError(
            f"The teacher's vectors have {width} numbers, so that those of words cannot have {size}: give a config "
            f"whose embedding_size is at most {width}."
        )
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    tokens = [token for token in sorted(vocabulary, key=vocabulary.__getitem__) if token not in SPECIAL_TOKENS]
    text_of = {token: in_words(token.removeprefix(CONTINUING) or token) for token in tokens}
    texts = list(dict.fromkeys(text_of.values()))
    vectors = _components(_encode_once(teacher, texts, progress), size)  # (texts, size)
    index = {text: number for number, text in enumerate(texts)}
    vectors = vectors[[index[text_of[token]] for token in tokens]]  # (tokens, size)
    if frequency_weighting is not None:
        counts = counts or {}
        share = np.array([counts.get(token, 0) for token in tokens]) / max(1, sum(counts.values()))  # (tokens,)
        vectors *= (frequency_weighting / (frequency_weighting + share)).astype(np.float32)[:, None]
    return WordVectors(tokens, vectors)


def _encode_once(teacher: "SentenceTransformer", texts: list[str], progress: bool) -> npt.NDArray[np.float32]:
    """(texts, width)"""
    content = json.dumps([teacher_sha256(teacher), texts])
    name = f"words-{hashlib.sha256(content.encode()).hexdigest()[:16]}.npy"
    file = teacher_caches() / name
    vectors: npt.NDArray[np.float32]
    try:
        vectors = np.load(file)
    except (OSError, EOFError, ValueError):  # there is none, or it is broken
        encoded = teacher.encode(texts, batch_size=_BATCH, show_progress_bar=progress, convert_to_numpy=True)
        vectors = np.asarray(encoded, np.float32)
        try:
            with replaced_file(file) as beside:
                np.save(beside, vectors)
        except OSError as error:
            logger.warning("The teacher's word vectors are not kept for later runs: %s", error)
    return vectors


def _components(vectors: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float32]:
    """Vectors with their first principal components as numbers. (texts, width) -> (texts, size)"""
    count, width = vectors.shape
    if size == width:
        return vectors
    if size > count:
        raise ValueError(f"{count:,} words have no {size} principal components: give more words, or pieces.")
    centred = vectors - vectors.mean(axis=0)
    components = leading_components(np.cov(centred.astype(np.float64), rowvar=False), size)
    reduced: npt.NDArray[np.float32] = (centred @ components).astype(np.float32)  # (texts, size)
    return reduced


def leading_components(moments: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """The directions in which vectors vary most, or are longest, by their covariances or second moments.

    Args:
        moments: (width, width)
        size: How many directions.

    Returns:
        (width, size), orthonormal, the first the one with the most.
    """
    _, components = np.linalg.eigh(moments)  # (width, width), smallest first
    components = components[:, : -size - 1 : -1]  # (width, size)
    # Each component's sign is free: with its largest number positive it is that of any computer.
    components *= np.sign(components[np.abs(components).argmax(axis=0), np.arange(size)])
    return components
