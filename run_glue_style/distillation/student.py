"""The student: a setting with fresh weights, or a saved model, whose vectors are as wide as they are to be."""

from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.files.loading import load_tokenizer, loading_errors
from modeling_dsa.loading_dsa import refuse_missing_weights
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.building import build_model
from modeling_dsa.text.tokenization import portable
from run_glue_style.training.model import refuse_other_encoder, starting_config
from run_glue_style.training.recipe import ModelArguments
from run_glue_style.training.vocabulary import fresh_vocabulary

from .arguments import LossArguments
from .sentences import Sentences

DEFAULT_SETTING = "dsa-base-en"  # as wide as its teacher

# Weights that a saved model gets anew where an option asks for them.
_DRAWN = {"projection_size": "projection.", "word_shortcut": "shortcut."}


def student_config(arguments: ModelArguments, overrides: dict[str, Any]) -> DSAConfig:
    """The student's config; the teacher, the vocabulary and the word vectors set the rest.

    Raises:
        OSError: There is no such model.
        ValueError: Setting or model and overrides do not fit together.
    """
    config = starting_config(arguments, DSAModel, {"sentences_per_example": 1, **overrides})
    if config.projection_size is not None:  # else the teacher may still give one
        with loading_errors(str(arguments.source), has_options=True):
            config.validate()  # how the fields fit together
    if POOLINGS[config.pooling].learns_from_classes:
        raise ValueError(
            f"A part of pooling '{config.pooling}' learns from the class of each example, and a teacher's vectors have "
            "none: give another --pooling."
        )
    return config


def make_student(
    arguments: ModelArguments,
    overrides: dict[str, Any],
    losses: LossArguments,
    sentences: Sentences,
    teacher_width: int,
    seed: int,
    show_progress: bool,
) -> tuple[DSAModel, PreTrainedTokenizerBase]:
    """The encoder that is trained, and its tokenizer.

    Args:
        arguments: A setting or a saved model, a classifier's too.
        overrides: Fields of its config in place of the setting's or the model's.
        losses: Some ask for a width.
        sentences: A fresh student's vocabulary is theirs.
        teacher_width: Numbers in the teacher's vectors. A fresh student for which no `projection_size` is asked gets as
            many if it is of the default setting, or if its own vectors have more numbers or no projection.
        seed: Seed of the weights that are drawn.
        show_progress: Show a bar while vectors are read.

    Raises:
        OSError: There is no such model, or no such file of word vectors.
        ValueError: Model, vectors, overrides and teacher do not fit together.
    """
    start = arguments.model_name_or_path
    config = _fitted_config(arguments, overrides, losses, teacher_width)
    if start is not None:
        with loading_errors(start, has_options=True):
            drawn = tuple(prefix for option, prefix in _DRAWN.items() if option in overrides)
            refuse_other_encoder(start, config, overrides, drawn)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)  # for a projection that the model does not have
                model, info = DSAModel.from_pretrained(start, config=config, output_loading_info=True)
            missing = [name for name in info["missing_keys"] if not name.startswith(drawn)]
            refuse_missing_weights(start, missing)
            return model, portable(load_tokenizer(start, config))
    assert arguments.vectors is not None
    vocabulary, vectors = fresh_vocabulary(arguments.vectors, arguments, sentences, config, overrides, show_progress)
    if vectors.dimension != config.embedding_size:  # without an encoder the sentence's width is another one, too
        config = _fitted_config(arguments, overrides | {"embedding_size": vectors.dimension}, losses, teacher_width)
    return build_model(DSAModel, config, vocabulary, vectors, seed), vocabulary


def _fitted_config(
    arguments: ModelArguments, overrides: dict[str, Any], losses: LossArguments, teacher_width: int
) -> DSAConfig:
    """The student's config with vectors that can be compared with the teacher's."""
    config = student_config(arguments, overrides)
    with loading_errors(str(arguments.source), has_options=True):
        if arguments.model_name_or_path is None and overrides.get("projection_size") is None:
            is_default = setting_folder(arguments.setting or "").resolve() == setting_folder(DEFAULT_SETTING).resolve()
            has_own = config.projection_size is not None and not is_default
            width = config.sentence_embedding_size
            if width > teacher_width or (width < teacher_width and not has_own):
                config.projection_size = teacher_width
        config.validate()  # how the fields fit together
        _check_width(config, losses, teacher_width)
    return config


def _check_width(config: DSAConfig, losses: LossArguments, teacher_width: int) -> None:
    width = config.sentence_embedding_size
    if width > teacher_width or (width < teacher_width and config.projection_size is None):
        raise ValueError(
            f"The student's vectors have {width:,} numbers and the teacher's {teacher_width:,}: give "
            f"--projection_size {teacher_width}, or a smaller one for the teacher's principal components."
        )
    for size in losses.matryoshka or ():
        if size >= width:
            raise ValueError(f"--matryoshka {size}: the student's vectors have only {width:,} numbers.")
