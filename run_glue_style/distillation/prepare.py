"""From the options of a distillation to what the engine trains."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.command.launchers import Process
from modeling_dsa.encoding.sources import open_sentences
from modeling_dsa.encoding.teacher import load_teacher, teacher_caches, teacher_width
from modeling_dsa.encoding.teacher_words import TEACHER
from modeling_dsa.evaluation.similarity import SimilarityPairs, read_named_similarity
from modeling_dsa.files.hashing import describe_files
from run_glue_style.training.closing_words import told_place
from run_glue_style.training.recipe import ModelArguments, RunArguments
from run_glue_style.training.results import SPEARMAN_OF, spearman_of_files
from run_glue_style.training.run import PreparedRun
from run_glue_style.training.token_store import token_cache, tokenize_once
from run_glue_style.training.tokenized_examples import TokenizedExamples, TokenizedTexts, token_ids
from run_glue_style.training.vocabulary import check_vocabulary, vocabulary_facts

from .arguments import LossArguments, TeacherArguments
from .examples import DistillationExamples
from .sentences import Sentences
from .student import make_student
from .teacher_cache import TeacherCache
from .teacher_vectors import TeacherVectors, open_vectors, principal_components
from .vector_objective import Distillation

logger = logging.getLogger(__name__)

_SHOWN = 3  # sentences


def default_metric(teacher: TeacherArguments) -> str:
    """The metric that chooses the best weights where the recipe names none."""
    return "spearman" if teacher.similarity_file else "cosine"


def metric_names(teacher: TeacherArguments) -> list[str]:
    """Names of the metrics of the validation split, but for its loss."""
    files = [f"{SPEARMAN_OF}{_name(path)}" for path in teacher.similarity_file or []]
    return ["cosine", "recall_at_1", *files, *(["spearman"] if files else [])]


def check_arguments(teacher: TeacherArguments, arguments: ModelArguments) -> None:
    """Refuse what cannot be trained, before anything is read.

    Raises:
        ValueError: Something is missing, or options contradict each other.
    """
    if teacher.texts is None:
        raise ValueError("Say what to learn from: --texts, a file of sentences or a data set.")
    if (teacher.teacher is None) == (teacher.teacher_vectors is None):
        raise ValueError("Give either --teacher, a sentence-transformers model, or its --teacher_vectors.")
    if arguments.model_name_or_path is None and arguments.vectors is None and teacher.teacher is None:
        raise ValueError("A fresh student needs word vectors: give --vectors, such as teacher:MODEL.")
    check_vocabulary(with_word_vectors(arguments, teacher))


def with_word_vectors(arguments: ModelArguments, teacher: TeacherArguments) -> ModelArguments:
    """The arguments with the teacher's word vectors, where a fresh student is given no others."""
    if arguments.model_name_or_path is not None or arguments.vectors is not None:
        return arguments
    return replace(arguments, vectors=Path(f"{TEACHER}{teacher.teacher}"))


def prepare_distillation(
    teacher: TeacherArguments,
    losses: LossArguments,
    metric_for_best_model: str,
    arguments: ModelArguments,
    overrides: dict[str, Any],
    run: RunArguments,
    accelerator: Accelerator,
) -> PreparedRun:
    """Read the texts, compute or open the teacher's vectors, and make the student and its objective.

    Args:
        teacher: The teacher and its texts.
        losses: What is minimised.
        metric_for_best_model: Of the validation split.
        arguments: Which student.
        overrides: Fields of DSAConfig in place of the setting's or the model's.
        run: Where and how it runs.
        accelerator: The processes share the teacher's work.

    Raises:
        KeyboardInterrupt: The process was asked to stop while the teacher worked; what is computed stays.
        OSError: A file or model is missing.
        ValueError: Texts, teacher, student and losses do not fit together.
    """
    is_main = accelerator.is_main_process
    similarity = _read_similarity(teacher.similarity_file or [])
    sentences = _open_sentences(teacher, run.max_train_samples, is_main)
    train, held_out = sentences.hold_out(teacher.validation_sentences)
    source = _find_vectors(teacher, sentences, accelerator)
    with accelerator.main_process_first():  # before the teacher's work, which a mistake would cost
        student, tokenizer = make_student(
            arguments, overrides, losses, sentences, source.width, run.seed, show_progress=is_main
        )
    vectors, folder = source.open(), source.folder
    del source  # and the teacher with it
    width, max_tokens = student.config.sentence_embedding_size, student.config.max_sentence_tokens
    with accelerator.local_main_process_first():  # the others of its machine find the files
        ids, lengths = tokenize_once(tokenizer, sentences, token_cache(), progress=is_main)
        components = principal_components(vectors, width, folder) if width < vectors.width else None
    if components is not None:
        logger.info(f"The student learns the first {width:,} principal components of the teacher's {vectors.width:,}.")
    texts = TokenizedTexts(tokenizer, ids, lengths, 1, max_tokens)
    indices = np.arange(len(sentences)).reshape(-1, sentences.per_example)  # (examples, sentences of an example)
    has_tokens: NDArray[np.bool_] = np.all(lengths[indices] > 0, axis=-1)  # (examples,)
    train, held_out = train[has_tokens[train]], held_out[has_tokens[held_out]]  # of some characters there is no token
    shown, targets = sentences.at(held_out), vectors.take(indices[held_out].ravel())
    if not targets.any():
        raise ValueError(
            f"{teacher.teacher or teacher.teacher_vectors}: the vectors of all sentences that are held out have the "
            "length 0: make them again."
        )
    validation = _validation_split(
        tokenizer, max_tokens, [text for example in shown for text in example], targets, similarity
    )
    train_indices = indices[train] if sentences.per_example == 2 else indices[train, 0]
    data = {
        "train": {"examples": len(train), "sha256": sentences.sha256},
        "validation": {"examples": len(held_out), "sha256": sentences.hash_of(held_out)},
    }
    identity = _identity(teacher, losses, data, vectors)
    told = ", ".join(f"{part['examples']:,} {split}" for split, part in identity["data"].items())
    return PreparedRun(
        model=student,
        tokenizer=tokenizer,
        objective=_objective(losses, metric_for_best_model, components, student, similarity, sentences.per_example),
        train_examples=DistillationExamples(texts, vectors, train_indices),
        evaluated={"validation": validation},
        validation=["validation"],
        identity=identity,
        facts=_facts(teacher, arguments, sentences, shown[:_SHOWN]),
        shown_texts=[[example[0]] for example in shown[:_SHOWN]],
        description=f"{sentences.name}, teacher {identity['teacher']['name']}: {told} examples",
        summary=partial(_summary, width),
    )


def _objective(
    losses: LossArguments,
    metric_for_best_model: str,
    components: NDArray[np.float32] | None,
    student: PreTrainedModel,
    similarity: Mapping[str, SimilarityPairs],
    per_example: int,
) -> Distillation:
    return Distillation(
        losses=losses,
        metric_for_best_model=metric_for_best_model,
        components=None if components is None else torch.tensor(components),
        attention_penalty=student.config.attention_penalty,
        similarity={name: pairs.scores for name, pairs in similarity.items()},
        pairs=per_example == 2,
    )


def _identity(
    teacher: TeacherArguments,
    losses: LossArguments,
    data: Mapping[str, Any],
    vectors: TeacherVectors,
) -> dict[str, Any]:
    """What another run in the same folder must share."""
    return {
        "data": data,
        "teacher": {
            "name": teacher.teacher or str(teacher.teacher_vectors),
            "width": vectors.width,
            "sha256": vectors.sha256,
        },
        "losses": asdict(losses),
        "similarity": describe_files(teacher.similarity_file or []),
    }


def _facts(
    teacher: TeacherArguments, arguments: ModelArguments, sentences: Sentences, shown: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """What the results say of the texts beside their identity."""
    return {
        "task": "distillation",
        "source": sentences.name,
        **vocabulary_facts(arguments.vectors, arguments),
        "similarity_files": [path.name for path in teacher.similarity_file or []],
        "shown_examples": shown,
    }


def _open_sentences(teacher: TeacherArguments, max_train_samples: int | None, progress: bool) -> Sentences:
    assert teacher.texts is not None
    columns: Sequence[str | None] = teacher.text_column or [None]
    sources = [open_sentences(teacher.texts, column, teacher.split) for column in columns]
    limit = None if max_train_samples is None else max_train_samples + teacher.validation_sentences
    return Sentences(sources, limit, progress)


def _read_similarity(paths: list[Path]) -> dict[str, SimilarityPairs]:
    similarity = {_name(path): read_named_similarity(path) for path in paths}
    if len(similarity) < len(paths):
        raise ValueError("Two of --similarity_file have the same name before its first dot: rename one.")
    return similarity


def _name(path: Path) -> str:
    """What the pairs of a file are called."""
    return path.name.partition(".")[0]


class _Vectors(NamedTuple):
    """The vectors of all sentences, which a teacher may still have to compute.

    Attributes:
        width: Numbers in a vector.
        folder: For what is made of them.
        open: Gives them, once they are computed. Every process calls it.
    """

    width: int
    folder: Path
    open: Callable[[], TeacherVectors]


def _find_vectors(teacher: TeacherArguments, sentences: Sentences, accelerator: Accelerator) -> _Vectors:
    """The vectors of all sentences."""
    root = teacher.cache_dir or teacher_caches()
    if teacher.teacher is not None:
        model = load_teacher(teacher.teacher).cpu()  # until it works: on a GPU a second one gives the words before
        cache = TeacherCache(root, teacher.teacher, model, sentences)

        def compute() -> TeacherVectors:
            model.to(accelerator.device)
            cache.compute(Process(accelerator.process_index, accelerator.num_processes))
            accelerator.wait_for_everyone()
            return cache.open()

        return _Vectors(teacher_width(model), cache.folder, compute)
    assert teacher.teacher_vectors is not None
    vectors = open_vectors(teacher.teacher_vectors)
    _check_count(teacher.teacher_vectors, len(vectors), sentences)
    return _Vectors(vectors.width, root / f"vectors-{vectors.sha256[:16]}", lambda: vectors)


def _check_count(path: Path, vectors: int, sentences: Sentences) -> None:
    """Refuse a number of vectors that is neither that of the sentences that are read nor that of the whole texts."""
    if vectors == len(sentences):
        return
    whole = sentences.count_whole()
    if whole is None and vectors > len(sentences):
        logger.warning(
            f"{sentences.name} does not say how many sentences it has: see that the first {len(sentences):,} of the "
            f"{vectors:,} vectors in {path} are theirs."
        )
    elif vectors != whole:
        there = f"at least {len(sentences):,}" if whole is None else f"{whole:,}"
        raise ValueError(
            f"{path} holds {vectors:,} vectors, and {sentences.name} {there} sentences: give the vectors of these "
            "texts, in their order."
        )


def _validation_split(
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int | None,
    held_out: list[str],
    vectors: NDArray[np.float32],
    similarity: Mapping[str, SimilarityPairs],
) -> TokenizedExamples:
    """The sentences that are held out with the teacher's vectors, and then those of the similarity files."""
    texts = [*held_out, *(text for pairs in similarity.values() for text in (*pairs.first, *pairs.second))]
    labels = np.zeros((len(texts), vectors.shape[1]), np.float32)
    labels[: len(held_out)] = vectors
    tokenized = TokenizedTexts(tokenizer, *token_ids(tokenizer.backend_tokenizer, texts), 1, max_tokens)
    return TokenizedExamples(tokenized, [np.arange(len(texts))], labels)


def _summary(width: int, results: Mapping[str, Any], output_dir: Path) -> str:
    """What a run says of itself at its end."""
    metrics = results["metrics"]["validation"]
    lines = [
        f"validation: mean cosine with the teacher {metrics['cosine']:.4f}; of all the teacher's vectors the "
        f"sentence's own is the nearest for {metrics['recall_at_1']:.1%}"
    ]
    lines += [f"{file}: Spearman {value:.4f}" for file, value in spearman_of_files(metrics).items()]
    return "\n".join(
        [
            "",
            *lines,
            told_place(output_dir),
            "from modeling_dsa import SentenceEncoder; "
            f"print(SentenceEncoder.from_pretrained({str(output_dir)!r}).encode('A man is asleep.').shape)"
            f"  # ({width},)",
        ]
    )
