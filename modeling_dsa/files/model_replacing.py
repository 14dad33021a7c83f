"""A new model in the folder of an old one: what belongs to the old one goes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from safetensors import SafetensorError

from .model_folder import holds_model
from .replacing import filled_folder

RESULTS, EXAMPLE_SCORES = "all_results.json", "example_scores.npz"  # of the run that trained it

# What describes or repeats a model's weights, whichever of our commands wrote it; all else is the user's own.
_OF_ONE_MODEL = (
    *("onnx", "README.md", RESULTS, "attention.png", "evaluation.json", "evaluation.md", "evaluation.png"),
    *("faithfulness.json", "faithfulness.png", EXAMPLE_SCORES),
    *("model*.safetensors", "model*.safetensors.index.json", "*_dsa.py"),
)


@contextmanager
def replaced_model(folder: Path) -> Iterator[Path]:
    """A fresh folder beside `folder` to save a model into; at the end of the block the model moves to `folder`.

    What an older model left there goes: ONNX files, card, picture, results, weights and code under other names. Files
    that belong to no model stay, and where the folder holds none all do. Where the block fails, `folder` stays as it
    was.
    """
    with filled_folder(folder, last=RESULTS) as beside:  # results tell that a run is complete
        try:
            yield beside
        except SafetensorError as error:  # of a full disk, which names no file
            raise OSError(f"{folder} cannot be written: {error}") from error
        # Before the new files come: a process that is killed in between leaves the old model, and no wrong card.
        for path in {path for pattern in _OF_ONE_MODEL for path in folder.glob(pattern)} if holds_model(folder) else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif not (beside / path.name).exists():
                path.unlink()


def belongs_to_model(name: str) -> bool:
    """Whether a file of a repository, by its path there, is of one model's weights, and so not of those that follow."""
    return any(fnmatch(name.partition("/")[0], pattern) for pattern in _OF_ONE_MODEL)
