"""Training examples: the tokens of sentences, and the teacher's vectors of them as labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from run_glue_style.training.tokenized_examples import TokenizedTexts

from .teacher_vectors import TeacherVectors


class DistillationExamples:
    """Examples of one sentence or of the two of a pair; tokens and vectors stay in their files until they are read.

    A batch has each sentence in a row of its own, the two of a pair after each other.
    """

    def __init__(self, texts: TokenizedTexts, vectors: TeacherVectors, sentences: NDArray[np.int64]) -> None:
        """Set up examples.

        Args:
            texts: All sentences.
            vectors: Of all sentences, in the same order.
            sentences: Which of them each example has. (examples,) or, of pairs, (examples, 2)
        """
        self.texts, self.vectors, self.sentences = texts, vectors, sentences

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitems__(self, indices: Sequence[int]) -> "DistillationExamples":
        """The examples of these indices; torch's loaders ask for a batch by this name."""
        return DistillationExamples(self.texts, self.vectors, self.sentences[np.asarray(indices, np.int64)])

    def padded(self, pad_token_id: int) -> dict[str, NDArray[Any]]:
        """All examples as one batch: see `TokenizedTexts.padded`, and `labels`. (examples, width) or (..., 2, width)"""
        batch: dict[str, NDArray[Any]] = self.texts.padded([self.sentences.ravel()], pad_token_id)
        return batch | {"labels": self.vectors.take(self.sentences)}
