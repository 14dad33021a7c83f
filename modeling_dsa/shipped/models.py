"""Trained models that ship in a checkout, found by name; a wheel has none."""

import os
from pathlib import Path

from .files import MODEL_CARDS


def model_source(name: str) -> str:
    """What a saved model is loaded from.

    Args:
        name: A folder, the name alone of a model in the checkout's `model_cards`, or an id on the Hub.

    Returns:
        The folder of a model that is named alone, from the working directory; anything else as it is.
    """
    folder = MODEL_CARDS / name
    if Path(name).exists() or Path(name).name != name or not (folder / "config.json").is_file():
        return name
    return os.path.relpath(folder)
