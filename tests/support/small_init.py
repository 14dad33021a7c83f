"""Small inputs of `dsa init`."""

from pathlib import Path
from typing import NamedTuple

from small_models import small_config

VECTORS = {
    "the": [0.5, -1.0, 0.25],
    ".": [0.125, 2.0, -3.0],
    "a": [1.5, 1.0, 0.75],
    "man": [0.25, 0.5, -0.5],
    "sleeps": [-1.0, -2.0, -0.25],
    "unused": [9.0, 9.0, 9.0],
}


class Inputs(NamedTuple):
    """Paths of word vectors, of texts and of a config."""

    vectors: str
    texts: str
    config: str


def write_inputs(folder: Path) -> Inputs:
    rows = "".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in VECTORS.items())
    (folder / "vectors.txt").write_text(rows)
    (folder / "texts.txt").write_text("A man sleeps.\nThe zqxv sleeps.\n")
    small_config(num_labels=2, hidden_size=7).save_pretrained(folder / "small")
    return Inputs(*(str(folder / name) for name in ("vectors.txt", "texts.txt", "small")))
