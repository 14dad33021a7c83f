"""The vocabulary of a model with fresh weights and its word vectors: those of a file, or what a teacher gives words."""

import signal
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from modeling_dsa import DSAConfig
from modeling_dsa.encoding.teacher_words import USUAL_SIZE, teacher_name, vocabulary_from_teacher
from modeling_dsa.files.hashing import describe_files, file_hash
from modeling_dsa.text.building import vocabulary_from_texts
from modeling_dsa.text.tokenization import WordTokenizer
from modeling_dsa.text.vocabulary import Choose, vocabulary_of_list, vocabulary_of_texts
from modeling_dsa.text.word_vectors import WordVectors, vectors_file
from run_glue_style.tasks.task import Task

from .interruption import handled_stops
from .recipe import ModelArguments


def check_vocabulary(arguments: ModelArguments) -> None:
    """Refuse options of a vocabulary that the word vectors do not leave open, before anything is read.

    Raises:
        ValueError: There is one.
    """
    has_teacher = arguments.vectors is not None and teacher_name(arguments.vectors) is not None
    for name in () if has_teacher else arguments.vocabulary:
        raise ValueError(
            f"--{name} is for words whose vectors a teacher gives: give --vectors teacher:MODEL, or leave it out."
        )
    if arguments.frequency_weighting is not None and arguments.word_list is not None:
        raise ValueError("--frequency_weighting counts the words of the texts: leave it or --word_list out.")


def vocabulary_facts(path: Path | None, arguments: ModelArguments) -> dict[str, Any]:
    """What a run's results say of its file of word vectors and of the vocabulary that was asked for."""
    asked = arguments.vocabulary
    facts: dict[str, Any] = {"vectors": None if path is None else path.name}
    if path is not None and teacher_name(path) is None:
        facts["vectors_sha256"] = file_hash(vectors_file(path)[0])
    if arguments.word_list is not None:
        asked["word_list"] = describe_files([arguments.word_list])[0]
    return facts | ({"vocabulary": asked} if asked else {})


def vectors_path(task: Task, arguments: ModelArguments) -> Path | None:
    """The file of word vectors that a fresh model takes; None for a saved model, which has its own.

    Raises:
        ValueError: None were given, and none ship for these data.
    """
    if arguments.model_name_or_path is not None:
        return None
    path = arguments.vectors or task.default_vectors
    if path is None:
        raise ValueError(
            "These data need word vectors: give --vectors, such as glove.840B.300d.zip, or --model_name_or_path "
            "dsa-base-en, which has its own."
        )
    return path


def fresh_vocabulary(
    path: Path,
    arguments: ModelArguments,
    texts: Iterable[str],
    config: DSAConfig,
    overrides: dict[str, Any],
    show_progress: bool,
) -> tuple[WordTokenizer, WordVectors]:
    """The tokenizer of a fresh model and its word vectors: every word of the texts for those of a file, and the
    vocabulary that is asked for or the usual one, with pieces of other words, for those of a teacher.

    Args:
        path: A file of word vectors, or `teacher:MODEL`.
        arguments: Which vocabulary, with a teacher.
        texts: Those of all splits: a word of the others that nothing trains has its vector too, as in use it would not.
        config: Gives a teacher's vectors their width, unless that was not asked for and the teacher has fewer numbers.
        overrides: Fields of the config that were asked for.
        show_progress: Show a bar.

    Raises:
        KeyboardInterrupt: The process was asked to stop while a teacher worked.
        OSError: There is no such file.
        ValueError: The vectors cannot be read, have another width than was asked for, or the texts hold no word.
    """
    teacher = teacher_name(path)
    if teacher is not None:
        with handled_stops(signal.default_int_handler):
            return vocabulary_from_teacher(
                teacher,
                _choice(arguments, texts),
                config.embedding_size,
                or_narrower="embedding_size" not in overrides,
                frequency_weighting=arguments.frequency_weighting,
                progress=show_progress,
            )
    vocabulary, vectors = vocabulary_from_texts(path, texts, progress=show_progress)
    if overrides.get("embedding_size", vectors.dimension) != vectors.dimension:
        raise ValueError(f"{path} has vectors of {vectors.dimension} numbers, not {overrides['embedding_size']}.")
    return vocabulary, vectors


def _choice(arguments: ModelArguments, texts: Iterable[str]) -> Choose:
    """What chooses the vocabulary whose vectors a teacher gives."""
    size = USUAL_SIZE.changed(arguments.vocabulary_size, arguments.pieces)
    if arguments.word_list is not None:
        return vocabulary_of_list(arguments.word_list, size)
    return partial(vocabulary_of_texts, texts, size)
