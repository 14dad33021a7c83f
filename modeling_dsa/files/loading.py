"""A model, its config and its tokenizer, loaded, and where it computes; the many kinds of errors with which they
refuse, as one sentence.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from modeling_dsa.batching_dsa import check_token_ids

from .model_folder import find_file, read_config
from .tokenizer_patterns import refuse_unknown_patterns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from modeling_dsa.configuration_dsa import DSAConfig
    from modeling_dsa.modeling_dsa import DSAPreTrainedModel

T = TypeVar("T")


def default_device() -> str:
    """Where a model computes if nobody says it: on a GPU where there is one, that of `LOCAL_RANK`, else on the CPU."""
    import torch

    gpus = torch.cuda.device_count()  # which processes share where they are fewer
    return f"cuda:{int(os.environ.get('LOCAL_RANK', 0)) % gpus}" if gpus else "cpu"


def load_part(what: str, source: str | Path, load: Callable[[str | Path], T]) -> T:
    """Load a part of a saved model.

    Args:
        what: What it is called in the error, such as "tokenizer".
        source: Folder or Hub id.
        load: Such as `AutoTokenizer.from_pretrained`.

    Raises:
        ValueError: It cannot be loaded.
    """
    try:
        return load(source)
    except Exception as error:  # of several libraries: hostile files find an error of every kind in them
        raise ValueError(
            f"{source}: the {what} cannot be loaded ({cause_of(error)}): give a folder or Hub id of a DSA model."
        ) from error


def cause_of(error: Exception) -> str:
    """Why something did not load: the first sentence of what a library says of it, at most 300 characters long."""
    from huggingface_hub.errors import StrictDataclassError

    cause = error.__cause__ if isinstance(error, StrictDataclassError) else error
    if "ignore_mismatched_sizes" in str(cause):  # transformers names the tensors in a table that it logs
        return "weights have other shapes than its config says"
    return (re.split(r"[.:]?\s*\n|\. ", str(cause))[0].rstrip(".") or type(cause).__name__)[:300]


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

    return load_part("config", source, DSAConfig.from_pretrained)


def load_model(source: str | PathLike[str]) -> "DSAPreTrainedModel":
    """Load the classifier of a classifier's folder or repository, or else the encoder.

    Args:
        source: Folder or Hub id.

    Raises:
        OSError: It has no config, or the Hub cannot be reached.
        ValueError: It holds a model of another family, or the model cannot be loaded.
    """
    read_config(source)
    return load_part("model", os.fspath(source), _load_as_saved)


def _load_as_saved(source: str | Path) -> "DSAPreTrainedModel":
    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    config = AutoConfig.from_pretrained(source)
    loader = AutoModelForSequenceClassification if config.is_classifier else AutoModel
    return cast("DSAPreTrainedModel", loader.from_pretrained(source, config=config))


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
            package's, ids that the word table has not, or another separator of pairs than the model.
    """
    from transformers import AutoTokenizer

    if not trusted:
        path = find_file(source, "tokenizer.json")
        if path is not None:
            refuse_unknown_patterns(path)
        _refuse_other_files(source)
    load = partial(AutoTokenizer.from_pretrained, trust_remote_code=trusted)
    tokenizer: PreTrainedTokenizerBase = load_part("tokenizer", source, load)
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError(f"{source}: the tokenizer is no fast tokenizer: give a folder or Hub id of a DSA model.")
    _try_out(source, tokenizer)
    try:
        check_token_ids(tokenizer.backend_tokenizer, config.vocab_size)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
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
