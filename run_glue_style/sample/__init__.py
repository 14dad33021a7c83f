"""Real data that ship with the package: SNLI pairs and the GloVe vectors of their words (see README.md here)."""

import json
from pathlib import Path

_FOLDER = Path(__file__).parent

SAMPLE_FILES = {name: _FOLDER / f"snli_{name}.parquet" for name in ("train", "validation", "test")}
SAMPLE_VECTORS = _FOLDER / "glove.6B.100d.sample.zip"
_BASELINE = _FOLDER / "baseline.json"


def baseline_line() -> str:
    """What static self-attention, the paper's baseline, reached on these pairs, and with which recipe."""
    baseline = json.loads(_BASELINE.read_text(encoding="utf-8"))
    accuracy = f"{baseline['validation_accuracy']:.1%}"
    return f"{baseline['setting']} with recipe {baseline['recipe']}: {accuracy}, mean of {baseline['results']}"
