"""A model, its config and its tokenizer, loaded; the many kinds of errors with which they refuse, as one sentence."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, cast

from modeling_dsa.batching_dsa import check_token_ids
from modeling_dsa.command.messages import cause_of

from .model_folder import find_file, read_config
from .tokenizer_patterns import refuse_unknown_patterns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from modeling_dsa.configuration_dsa import DSAConfig
    from modeling_dsa.modeling_dsa import DSAPreTrainedModel


@contextmanager
def loading_errors(what: str, *, has_options: bool = False) -> Iterator[None]:
    """Tell in one sentence why something of a saved model does not load in this block.

    Args:
        what: What it is called in the error, such as "mine: the tokenizer".
        has_options: Whether it is loaded with options of a command, which may be what is wrong: an error of values is
            then told without blaming the model.

    Raises:
        ValueError: It does not load.
    """
    from huggingface_hub.errors import StrictDataclassError

    try:
        yield
    except Exception as error:  # of several libraries: hostile files find an error of every kind in them
        if has_options and isinstance(error, ValueError):
            raise
        if has_options and isinstance(error, StrictDataclassError):
            raise ValueError(f"{cause_of(error)}.") from error
        raise ValueError(
            f"{what} cannot be loaded ({cause_of(error)}): give a folder or Hub id of a DSA model."
        ) from error


def load_config(source: str | Path) -> "DSAConfig":
    """Load the config of a model of this family.

    Args:
        source: Folder or Hub id.

    Raises:
        OSError: There is none, or the Hub cannot be reached.
        ValueError: It is that of a model of another family, or cannot be loaded.
    """
    read_config(source)

    from modeling_dsa.configuration_dsa import DSAConfig

    with loading_errors(f"{source}: the config"):
        config: DSAConfig = DSAConfig.from_pretrained(source)
        return config


def load_model(source: str | PathLike[str]) -> "DSAPreTrainedModel":
    """Load the classifier of a classifier's folder or repository, or else the encoder.

    Args:
        source: Folder or Hub id.

    Raises:
        OSError: It has no config, or the Hub cannot be reached.
        ValueError: It holds a model of another family, or the model cannot be loaded.
    """
    read_config(source)

    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    with loading_errors(f"{source}: the model"):
        config = AutoConfig.from_pretrained(os.fspath(source))
        loader = AutoModelForSequenceClassification if config.is_classifier else AutoModel
        return cast("DSAPreTrainedModel", loader.from_pretrained(os.fspath(source), config=config))


def load_model_and_tokenizer(source: str | Path) -> "tuple[DSAPreTrainedModel, PreTrainedTokenizerBase]":
    """Load what a folder or repository holds: its classifier, or else its encoder, and its tokenizer.

    Args:
        source: Folder or Hub id.

    Raises:
        OSError: As in `load_model`.
        ValueError: As there and in `load_tokenizer`.
    """
    model = load_model(source)
    return model, load_tokenizer(source, model.config)


def load_tokenizer(source: str | Path, config: "DSAConfig", *, trusted: bool = False) -> "PreTrainedTokenizerBase":
    """Load the tokenizer of a model.

    Args:
        source: Folder or Hub id.
        config: The model's.
        trusted: Whether it may run code of its own, and have any regular expressions.

    Raises:
        ValueError: It cannot be loaded, does not work, is no fast tokenizer, has a regular expression that is not this
            package's, ids that the word table has not, another separator of pairs than the model, or splits special
            tokens.
    """
    from transformers import AutoTokenizer

    if not trusted:
        _refuse_other_files(source)
        path = find_file(source, "tokenizer.json")
        if path is None:
            raise ValueError(f"{source} has no tokenizer.json that can be read: save the model's tokenizer there, too.")
        refuse_unknown_patterns(path)
    with loading_errors(f"{source}: the tokenizer"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source, trust_remote_code=trusted)
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError(f"{source}: the tokenizer is no fast tokenizer: give a folder or Hub id of a DSA model.")
    _try_out(source, tokenizer)
    try:
        check_token_ids(tokenizer.backend_tokenizer, config.vocab_size)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    if getattr(tokenizer, "split_special_tokens", False):
        raise ValueError(
            f"{source}: the tokenizer splits special tokens that stand in a text, which are read as such here: save it "
            "without split_special_tokens."
        )
    separator = tokenizer.sep_token_id
    if config.sentences_per_example == 2 and separator is not None and separator != config.sep_token_id:
        raise ValueError(
            f"{source}: the tokenizer separates pairs by the id {separator}, but the model by {config.sep_token_id}: "
            "they are not of one model."
        )
    return tokenizer


def _refuse_other_files(source: str | Path) -> None:
    """Refuse a tokenizer of which transformers would load another file than the one that was looked into."""
    path = find_file(source, "tokenizer_config.json")
    if path is not None and b"fast_tokenizer_files" in path.read_bytes():
        raise ValueError(f"{path} names other files than tokenizer.json (fast_tokenizer_files): take that out.")


def _try_out(source: str | Path, tokenizer: "PreTrainedTokenizerBase") -> None:
    """Refuse a tokenizer whose parts do not fit together, which comes to light with the first texts."""
    try:
        tokenizer("a")
        tokenizer("a", "a")
    except BaseException as error:
        # PanicException is Rust code's; it cannot be imported, and is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(
            f"{source}: the tokenizer does not work ({error!s:.300}): save or download the model again."
        ) from error
