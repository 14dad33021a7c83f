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
    folder = os.path.relpath(MODEL_CARDS / name)
    ships = Path(name).name == name and os.path.isfile(f"{folder}/config.json")  # noqa: PTH113  (as below)
    # pathlib's fails for what is too long for a name, such as a text in the wrong place.
    return folder if ships and not os.path.exists(name) else name  # noqa: PTH110
