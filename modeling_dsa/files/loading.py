"""The many kinds of errors with which a model, config or tokenizer refuses to load, as one sentence."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def load_part(what: str, source: str | Path, load: Callable[[str | Path], T]) -> T:
    """Load a part of a saved model.

    Args:
        what: What it is called in the error, such as "tokenizer".
        source: Folder or Hub id.
        load: Such as `AutoTokenizer.from_pretrained`.

    Raises:
        ValueError: It cannot be loaded.
    """
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        return load(source)
    except (OSError, ValueError, RuntimeError, StrictDataclassError, SafetensorError) as error:
        cause = error.__cause__ if isinstance(error, StrictDataclassError) else error
        first_sentence = re.split(r"[.:]?\s*\n|\. ", str(cause))[0].rstrip(".")
        raise ValueError(
            f"{source}: the {what} cannot be loaded ({first_sentence}): give a folder or Hub id of a DSA model."
        ) from error
