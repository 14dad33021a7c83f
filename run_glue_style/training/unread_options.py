"""Options of the config that a model does not read, so that a run without them would be the same."""

from collections.abc import Callable, Collection
from typing import Any

from modeling_dsa import DSAConfig
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.options_dsa import option_help
from modeling_dsa.poolings_dsa import POOLINGS

from .recipe import ModelArguments, TrainingRecipe

_OF_PAIRS = (lambda config: config.sentences_per_example == 2, "of pairs of texts, and these examples have one")
_WHERE: dict[str, tuple[Callable[[DSAConfig], bool], str]] = {
    "token_norm": (
        lambda config: config.normalize_tokens,
        "the length of normalised tokens, and these are as they come",
    ),
    "pair_features": _OF_PAIRS,
    "gated_size": (
        lambda config: config.sentences_per_example == 2 and "gated" in config.pair_features,
        "of the pair feature 'gated', which is not asked for",
    ),
    "classifier_batch_norm": (lambda config: bool(config.classifier_hidden_sizes), "of hidden layers: there is none"),
    "batch_norm_eps": (
        lambda config: config.classifier_batch_norm and bool(config.classifier_hidden_sizes),
        "of the classifier's batch normalisation: there is none",
    ),
}
_OF_FRESH_WEIGHTS = ("unknown_init_range", "initializer_scaling")
_OF_CLASSIFIERS = {name for name in option_help(DSAConfig) if name.startswith("classifier_")} | {
    "pair_features",
    "gated_size",
    "batch_norm_eps",
}


def refuse_unread(
    config: DSAConfig, arguments: ModelArguments, given: Collection[str], *, has_classifier: bool = True
) -> None:
    """Refuse options that change a field to no effect.

    Args:
        config: What they make of the config.
        arguments: The setting or the saved model whose config it was.
        given: Names of the command line's own options. A recipe's are for many settings, and each reads of them what
            it can.
        has_classifier: Whether the model has one.

    Raises:
        ValueError: Says which is not read, and what would read it.
    """
    stored = DSAConfig.from_pretrained(arguments.source)
    for name in option_help(DSAConfig).keys() & given:
        is_changed = _plain(getattr(stored, name)) != _plain(getattr(config, name))
        if is_changed and name in _OF_FRESH_WEIGHTS and arguments.model_name_or_path is not None:
            raise ValueError(
                f"--{name} would change nothing: it is of fresh weights, and these are saved. Leave it out."
            )
        if is_changed and (reason := why_unread(config, name, has_classifier=has_classifier)):
            raise ValueError(f"--{name} would change nothing: it is {reason}. Leave it out.")


def refuse_unread_of_recipe(
    config: DSAConfig, recipe: TrainingRecipe, given: Collection[str], *, has_classifier: bool = True
) -> None:
    """Refuse options of the recipe that this training does not read.

    Args:
        config: Of the model that is trained.
        recipe: With these options.
        given: Names of the command line's own options, as for `refuse_unread`.
        has_classifier: Whether the model has one.

    Raises:
        ValueError: Says which is not read, and why.
    """
    is_plateau = recipe.schedule == "plateau"
    has_batch_norm = has_classifier and config.classifier_batch_norm and bool(config.classifier_hidden_sizes)
    unread = {
        "plateau_patience": (not is_plateau, "of --schedule plateau"),
        "plateau_threshold": (not is_plateau, "of --schedule plateau"),
        "warmup_ratio": (is_plateau and recipe.warmup_ratio > 0, "not of --schedule plateau"),
        "batch_norm_batches": (
            recipe.batch_norm_batches > 0 and not has_batch_norm,
            "of the classifier's batch normalisation: there is none",
        ),
    }
    if recipe.encoder_learning_rate == 0 and "freeze_embeddings" in given and not config.freeze_embeddings:
        raise ValueError("--encoder_learning_rate 0 freezes the word table too: leave --freeze_embeddings out.")
    for name, (is_unread, reason) in unread.items():
        if is_unread and name in given:
            raise ValueError(f"--{name} would change nothing: it is {reason}. Leave it out.")


def why_unread(config: DSAConfig, name: str, *, has_classifier: bool = True) -> str | None:
    """Why a model does not read an option; None if it does, or if that is no field of its config."""
    if name in _OF_CLASSIFIERS and not has_classifier:
        return "a classifier's, and an encoder is trained alone"
    encoders = [key for key, encoder in ENCODERS.items() if name in encoder.own_fields]
    poolings = [key for key, pooling in POOLINGS.items() if name in pooling.own_fields]
    if (encoders or poolings) and config.encoder not in encoders and config.pooling not in poolings:
        readers = [
            f"{kind} {_listed(names)}" for kind, names in (("encoder", encoders), ("pooling", poolings)) if names
        ]
        return f"read by {' and '.join(readers)}, and not by encoder '{config.encoder}' with pooling '{config.pooling}'"
    is_read, reason = _WHERE.get(name, (lambda _: True, None))
    return None if is_read(config) else reason


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _plain(value: Any) -> Any:
    """A saved list is a tuple where it is a default."""
    return list(value) if isinstance(value, tuple) else value
