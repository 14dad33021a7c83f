"""A grid and its finished runs, made up, for the tests of grids."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from small_results import results

GRID = """\
title: Does it matter?
script: run_nli
options: {setting: dsa-small-snli}
base:
  routing_scale: 8
changes:
  static: {pooling: static}
  two-heads:
    num_attention_heads: 2
metrics: [validation.accuracy, test.macro_f1]
seeds: [0, 1, 2]
"""


def write_grid(folder: Path, *changes: tuple[str, str]) -> Path:
    """The grid above, with some texts replaced."""
    text = GRID
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "small.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def write_run(folder: Path, row: str, seed: int, correct: np.ndarray) -> None:
    """A record with the validation accuracy of these examples, and their scores beside it."""
    (folder / row).mkdir(parents=True, exist_ok=True)
    record = results(row, seed, float(correct.mean()), data={"validation": {"examples": len(correct), "sha256": "a"}})
    (folder / row / f"seed-{seed}.json").write_text(json.dumps(record), encoding="utf-8")
    arrays: dict[str, Any] = {"validation.accuracy": correct}
    np.savez_compressed(folder / row / f"seed-{seed}.npz", **arrays)
