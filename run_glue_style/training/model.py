"""The model of a run and its tokenizer: a setting with fresh weights, or a saved model."""

import copy
import logging
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAConfig, DSAForSequenceClassification, DSAModel
from modeling_dsa.files.loading import load_tokenizer, loading_errors
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.modeling_dsa import DSAPreTrainedModel
from modeling_dsa.poolings_dsa import POOLINGS, ReinforcedPooling
from modeling_dsa.text.building import build_model
from modeling_dsa.text.tokenization import portable
from modeling_dsa.variational_dsa import VariationalSelfAttention
from run_glue_style.tasks.distinct_texts import DistinctTexts
from run_glue_style.tasks.task import Task

from .objective import last_layer
from .recipe import ModelArguments, RunArguments, TrainingRecipe
from .vocabulary import check_vocabulary, fresh_vocabulary, vectors_path

logger = logging.getLogger(__name__)

_ONE_CLASS = "single_label_classification"  # also what a saved model is that does not say
_WIDENED = ("projection.weight", "shortcut.projection.weight")  # which a wider sentence vector gives further rows


def check_model_arguments(task: Task, arguments: ModelArguments, recipe: TrainingRecipe) -> None:
    """Refuse what cannot be trained, before anything is read.

    Raises:
        ValueError: There is neither a setting nor a model, the setting is another task's, word vectors are missing,
            fresh weights would be frozen, or as in `check_vocabulary`.
    """
    check_vocabulary(arguments)
    if arguments.model_name_or_path is None:
        if recipe.encoder_learning_rate == 0:
            raise ValueError(
                "--encoder_learning_rate 0 freezes the encoder of a saved model, and that of a setting would stay as "
                "it was drawn: give --model_name_or_path, or leave it out."
            )
        if arguments.setting is None:
            raise ValueError("Say what to train: --setting NAME, or --model_name_or_path for a saved model.")
        task.check_setting(arguments.setting)
        vectors_path(task, arguments)


def check_recipe(config: DSAConfig, recipe: TrainingRecipe, run: RunArguments) -> None:
    """Refuse options that mean nothing to a model, before anything is read.

    Raises:
        ValueError: There is one.
    """
    if recipe.embedding_learning_rate is not None and config.freeze_embeddings:
        raise ValueError(
            "--embedding_learning_rate is for a word table that is trained: give --freeze_embeddings false, or leave "
            "it out."
        )
    if recipe.soft_attention_ratio and not issubclass(POOLINGS[config.pooling], ReinforcedPooling):
        raise ValueError("--soft_attention_ratio is for pooling 'reinforced': leave it out.")
    if run.record_attention and not POOLINGS[config.pooling].has_attention:
        raise ValueError(f"--record_attention: pooling '{config.pooling}' has no attention over the tokens.")


def starting_config(
    arguments: ModelArguments, model_class: type[DSAPreTrainedModel], changed: Mapping[str, Any]
) -> DSAConfig:
    """The config of a setting or a saved model as training begins with it, each of its fields checked alone.

    Args:
        arguments: Which setting or model.
        model_class: Of the model that is trained.
        changed: Fields in place of its own.

    Raises:
        OSError: There is no such model.
        ValueError: It is of another family, or a field cannot have such a value.
    """
    read_config(arguments.source)  # of another family's model it says so
    with loading_errors(str(arguments.source), has_options=True):
        config: DSAConfig = DSAConfig.from_pretrained(arguments.source, **changed)
    config.architectures = [model_class.__name__]  # records tell by it what was trained
    if arguments.model_name_or_path is not None:
        config.dtype = torch.float32  # as a fresh one: in half precision small updates are lost
    return config


def make_config(task: Task, arguments: ModelArguments, overrides: dict[str, Any]) -> DSAConfig:
    """The config of the model that is trained; a fresh model's vocabulary and word vectors set the rest.

    Raises:
        OSError: There is no such model.
        ValueError: Setting or model, overrides and task do not fit together.
    """
    config = starting_config(arguments, task.model_class, {**_labels(task), **overrides})
    with loading_errors(str(arguments.source), has_options=True):
        config.validate()  # how the fields fit together
    if arguments.model_name_or_path is not None:
        refuse_other_encoder(arguments.model_name_or_path, config, overrides, widened=_WIDENED)
    return config


def make_model(
    task: Task,
    arguments: ModelArguments,
    overrides: dict[str, Any],
    texts: DistinctTexts,
    seed: int,
    show_progress: bool,
) -> tuple[DSAForSequenceClassification, PreTrainedTokenizerBase]:
    """The model that is trained, with a head for the task's labels, and its tokenizer.

    Args:
        task: Its head and its labels.
        arguments: A setting or a saved model.
        overrides: Fields of its config in place of the setting's or the model's.
        texts: A fresh model's vocabulary is theirs.
        seed: Seed of the weights that are drawn.
        show_progress: Show a bar while vectors are read.

    Raises:
        OSError: There is no such model, or no such file of vectors.
        ValueError: Model, vectors, overrides and task do not fit together.
    """
    start = arguments.model_name_or_path
    config = make_config(task, arguments, overrides)
    if start is not None:
        with loading_errors(start, has_options=True):
            return _saved_model(task, arguments, config, seed), portable(load_tokenizer(start, config))
    path = vectors_path(task, arguments)
    assert path is not None
    vocabulary, vectors = fresh_vocabulary(path, arguments, texts.all(), config, overrides, show_progress)
    return build_model(task.model_class, config, vocabulary, vectors, seed), vocabulary


def refuse_other_encoder(
    start: str,
    config: DSAConfig,
    overrides: Mapping[str, Any],
    drawn: tuple[str, ...] = (),
    widened: tuple[str, ...] = (),
) -> None:
    """Refuse options that would make another encoder of a saved one, whose weights would not fit.

    Args:
        start: The saved model.
        config: What the options make of its config.
        overrides: The options.
        drawn: Beginnings of the names of weights that the encoder may lack.
        widened: Names of weights that may get further rows.

    Raises:
        ValueError: Weights are missing or have another shape.
    """
    stored = DSAConfig.from_pretrained(start)
    changed = [f"--{name} {value}" for name, value in overrides.items() if getattr(stored, name) != value]
    if not changed:
        return
    there = _encoder_shapes(stored)

    def fits(name: str, shape: torch.Size) -> bool:
        if name not in there:
            return name.startswith(drawn)
        rows, width = there[name][:1], there[name][1:]
        return width == shape[1:] and (rows == shape[:1] or (name in widened and rows < shape[:1]))

    if not all(fits(name, shape) for name, shape in _encoder_shapes(config).items()):
        raise ValueError(
            f"{start} has an encoder of other parts or sizes than {', '.join(changed)} would give it: leave these out, "
            "or train a --setting with them from fresh weights."
        )


def has_fresh_head(start: str | None, config: DSAConfig) -> bool:
    """Whether the head is drawn: there is no saved model, or its head has other labels, reads something else or has
    other layers.

    Args:
        start: The saved model.
        config: That of the model that is trained.
    """
    return start is None or not _has_head_for(DSAConfig.from_pretrained(start), config)


def _has_head_for(stored: DSAConfig, config: DSAConfig) -> bool:
    return stored.is_classifier and not (
        sorted(stored.class_names) != sorted(config.class_names)
        or stored.sentences_per_example != config.sentences_per_example
        or (stored.problem_type or _ONE_CLASS) != (config.problem_type or _ONE_CLASS)
        or (config.sentences_per_example == 2 and list(stored.pair_features) != list(config.pair_features))
        or _head_shapes(stored) != _head_shapes(config)
    )


def _head_shapes(config: DSAConfig) -> dict[str, torch.Size]:
    with torch.device("meta"):
        tensors = DSAForSequenceClassification(config).state_dict()
    return {name: tensor.shape for name, tensor in tensors.items() if not name.startswith("dsa.")}


def _encoder_shapes(config: DSAConfig) -> dict[str, torch.Size]:
    with torch.device("meta"):
        return {name: tensor.shape for name, tensor in DSAModel(config).state_dict().items()}


def _saved_model(task: Task, arguments: ModelArguments, config: DSAConfig, seed: int) -> DSAForSequenceClassification:
    """A saved model, with a fresh head where its own does not fit the task."""
    start = arguments.model_name_or_path
    assert start is not None
    stored = DSAConfig.from_pretrained(start)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # for a head that the model does not have
        if _has_head_for(stored, config):
            saved: DSAForSequenceClassification = task.model_class.from_pretrained(start, config=config)
            _reorder_classes(saved, [stored.class_names.index(name) for name in config.class_names])
            return saved
        model = task.model_class(config)
        as_saved = copy.deepcopy(config)
        as_saved.projection_size = stored_size = stored.projection_size
        _begin_with(model.dsa, DSAModel.from_pretrained(start, config=as_saved).state_dict())
    wider = ""
    if stored_size is not None and config.projection_size is not None and config.projection_size > stored_size:
        wider = f", its vectors' {stored_size} numbers and {config.projection_size - stored_size} that are drawn"
    logger.info(
        f"The encoder is that of {start}{wider}; the head is a new one, as its own is for other labels, features or "
        "layers."
    )
    return model


@torch.no_grad()
def _begin_with(encoder: DSAModel, saved: Mapping[str, torch.Tensor]) -> None:
    """Give an encoder saved weights; rows that a wider sentence vector adds are drawn, as large as those there are."""
    for name, weights in encoder.state_dict().items():
        given = saved[name]
        if given.shape == weights.shape:
            weights.copy_(given)
        else:
            weights.normal_(0, given.std().item())
            weights[: len(given)] = given


@torch.no_grad()
def _reorder_classes(model: DSAForSequenceClassification, order: list[int]) -> None:
    """Give each class the weights of that which stood at its place in `order` before."""
    last = last_layer(model)
    last.weight.copy_(last.weight[order])
    last.bias.copy_(last.bias[order])
    if isinstance(model.dsa.pooling, VariationalSelfAttention):
        seen = model.dsa.pooling.class_vectors.weight  # (width, classes)
        seen.copy_(seen[:, order])


def _labels(task: Task) -> dict[str, Any]:
    """What a config says of the task's examples and labels."""
    sentences = {"sentences_per_example": len(task.text_columns)}
    if task.is_regression:
        label = "LABEL_0"  # what transformers calls the one output of a regression
        return {"id2label": {0: label}, "label2id": {label: 0}, "problem_type": "regression", **sentences}
    return {
        "id2label": dict(enumerate(task.class_names)),
        "label2id": {name: index for index, name in enumerate(task.class_names)},
        "problem_type": _ONE_CLASS,
        **sentences,
    }
