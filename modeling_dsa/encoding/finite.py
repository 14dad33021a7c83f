"""Sentence vectors that are numbers."""

from collections.abc import Sequence

import numpy as np

from modeling_dsa.batching_dsa import Vectors


def first_nonfinite(rows: Vectors) -> int | None:
    """The index of the first row with NaN or an infinity; None where there is none. (rows, numbers)"""
    finite = np.isfinite(rows).all(axis=1)  # (rows,)
    return None if finite.all() else int(finite.argmin())


def check_finite(vectors: Vectors, sentences: Sequence[str]) -> None:
    """Refuse vectors with numbers that their type cannot hold: NaN would pass for a correlation of zero.

    Args:
        vectors: (sentences, width).
        sentences: What they are of.

    Raises:
        ValueError: One of them holds NaN or an infinity.
    """
    wrong = first_nonfinite(vectors)
    if wrong is not None:
        remedy = "" if vectors.dtype == np.float32 else "dtype float32, or normalize, or "
        raise ValueError(
            f"The vector of the sentence {sentences[wrong][:80]!r} is not finite as {vectors.dtype}: give {remedy}"
            "another model."
        )
