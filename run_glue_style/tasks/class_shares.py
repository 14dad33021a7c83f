"""How frequent the classes are in each file of a task's training examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from .distinct_texts import Indices

FILE = "file"  # the column of a training split of several files: the index of each example's


@dataclass(frozen=True)
class ClassShares:
    """The shares of the classes in the file of each example.

    Attributes:
        log_shares: The logarithm of each class's share; a class that a file lacks counts as one example.
            (files, classes)
        files: Which file each example is of. (examples,)
    """

    log_shares: NDArray[np.float32]
    files: Indices

    def chosen(self, indices: Indices | slice) -> "ClassShares":
        """Those of some examples."""
        return ClassShares(self.log_shares, self.files[indices])

    def identity(self) -> dict[str, Any]:
        """What tells them from others, as JSON."""
        shares = np.exp(self.log_shares.astype(np.float64)).round(6).tolist()
        return {"class_shares": shares, "examples_of_files": np.bincount(self.files).tolist()}

    def of_examples(self) -> NDArray[np.float32]:
        """(examples, classes)"""
        return self.log_shares[self.files]


def class_shares(train: Dataset, classes: int) -> ClassShares:
    """Count the classes.

    Args:
        train: Training examples: the column `label`, and `file` where they are of several files.
        classes: How many there are.
    """
    labels = np.asarray(train["label"][:], np.int64)  # (examples,)
    files = np.asarray(train[FILE][:] if FILE in train.column_names else np.zeros_like(labels), np.int64)
    counts = np.zeros((files.max() + 1, classes))  # (files, classes)
    np.add.at(counts, (files, labels), 1)
    counts = counts.clip(1)
    return ClassShares(np.log(counts / counts.sum(1, keepdims=True)).astype(np.float32), files)
