"""A part of the training examples, held out for validation where the data have no validation split."""

import math

import numpy as np
from datasets import ClassLabel, Dataset

from modeling_dsa.options_dsa import Bound


def is_validation(split: str) -> bool:
    """Whether a split of this name is for validation, as MNLI has two of."""
    return split.startswith(("validation", "dev"))


SIZE = Bound(
    lambda size: 0 < size < 1 or (size >= 1 and float(size).is_integer()),
    "be a share between 0 and 1 or a whole number of examples",
)


def hold_out(examples: Dataset, size: float) -> tuple[Dataset, Dataset]:
    """Split examples into some for training and some for validation, the same ones at every call.

    Each class is held out by its share, as closely as whole examples allow, and none is held out altogether.

    Args:
        examples: With the column `label`, of classes or numbers.
        size: A share between 0 and 1, or a number of examples.

    Returns:
        The examples for training and those for validation, both in their order.

    Raises:
        ValueError: Training would keep too few examples.
    """
    labels = np.asarray(examples["label"][:])
    count = math.ceil(round(size * len(labels), 9)) if size < 1 else int(size)  # 0.07 * 100 is a little above 7
    drawn = np.random.default_rng(0).permutation(len(labels))  # not the run's seed: runs share their validation split
    is_class = isinstance(examples.features["label"], ClassLabel)
    # The rank of an example within its class, as a share of the class: the smallest ones have all classes alike, and
    # the last example of each class, whose share is 1, stays.
    shares = np.empty(len(labels))
    for group in np.unique(labels) if is_class else [None]:
        members = drawn if group is None else drawn[labels[drawn] == group]
        shares[members] = np.arange(1, len(members) + 1) / len(members)
    candidates = drawn[np.argsort(shares[drawn], kind="stable")]
    if count > np.count_nonzero(shares < 1):
        who = "each class" if is_class else "the model"
        raise ValueError(
            f"validation_split {size:g} would hold out {count:,} of {len(labels):,} examples, and {who} needs one for "
            "training: give a smaller one, or more examples"
        )
    held_out = np.zeros(len(labels), bool)
    held_out[candidates[:count]] = True
    return examples.select(np.flatnonzero(~held_out)), examples.select(np.flatnonzero(held_out))
