"""The nearest sentences of queries, and how many of them another search finds."""

import numpy as np
from numpy.typing import NDArray

from .peers import Vectors

NEAREST = 10
_AT_ONCE = 1000  # queries, so that their cosines fit into memory


def nearest(queries: Vectors, sentences: Vectors, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of the ten sentences nearest to each query, but for its own; vectors at length 1. (queries, 10)"""
    found = np.empty((len(own), NEAREST), np.int64)
    for start in range(0, len(own), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        cosines = queries[part] @ sentences.T  # (part, sentences)
        cosines[np.arange(len(cosines)), own[part]] = -np.inf
        found[part] = np.argpartition(-cosines, NEAREST - 1, axis=1)[:, :NEAREST]
    return found


def recall(expected: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    """Share of what was expected that was found, a mean over the queries."""
    return float(np.mean([len(set(one) & set(other)) / len(one) for one, other in zip(expected, found, strict=True)]))
