"""Teachers: the sentence-transformers models whose vectors a model of this family learns from."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def load_teacher(model: str) -> "SentenceTransformer":
    """Load a sentence-transformers model: on a GPU where there is one, ready to encode.

    Args:
        model: A folder or Hub id.

    Raises:
        ValueError: sentence-transformers is not installed, or there is no such model, or it cannot be loaded.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError as error:
        if error.name != "sentence_transformers":
            raise
        raise ValueError(
            'A teacher needs sentence-transformers: pip install "dsa-transformers[sentence-transformers]".'
        ) from error
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        return SentenceTransformer(model)
    except (OSError, ValueError, RuntimeError, KeyError, StrictDataclassError, SafetensorError) as error:
        first_sentence = re.split(r"[.:]?\s*\n|\. ", str(error))[0].rstrip(".")
        raise ValueError(
            f"The teacher {model} cannot be loaded ({first_sentence}): give a folder or Hub id of a "
            "sentence-transformers model."
        ) from error
