"""The function that engines for data on several machines call: a column of sentences in, one of vectors beside it.

Ray Data, Spark and `datasets` bring the machines, the files and the restart of what has died. A worker gets the model's
name and loads it by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modeling_dsa.batching_dsa import BATCH_SIZE, Vectors, VectorType

from .encoder import SentenceEncoder
from .model_hash import model_hash
from .sources import COLUMN
from .vector_files import check_finite

if TYPE_CHECKING:
    from pandas import DataFrame


class ColumnEncoder:
    """Adds the vectors of a column of sentences to batches of rows.

    The class is an actor for Ray Data's `map_batches`; an object is a function for `map(batched=True)` of `datasets`,
    and its method `frames` one for Spark's `mapInPandas`. What is sent to workers, and what `datasets` keeps results
    by, is the model's name, its hash and the options.
    """

    def __init__(
        self,
        model: str,
        *,
        text_column: str = COLUMN,
        vector_column: str = "vector",
        batch_size: int = BATCH_SIZE,
        normalize: bool = False,
        dtype: VectorType = "float32",
    ) -> None:
        """Load the model, so that a mistake comes to light where the work is planned.

        Args:
            model: Hub id, or a folder by a name that every worker finds it under.
            text_column: Holds the sentences; a missing value is an empty one.
            vector_column: The new one.
            batch_size: As for `SentenceEncoder.encode`; it is not that of the engine, which may be much larger.
            normalize: As for `SentenceEncoder.encode`.
            dtype: As for `SentenceEncoder.encode`. Spark has no type for float16.

        Raises:
            ValueError: As in `SentenceEncoder.from_pretrained`.
            OSError: As there.
        """
        self.model = model
        self.text_column = text_column
        self.vector_column = vector_column
        self.batch_size = batch_size
        self.normalize = normalize
        self.dtype: VectorType = dtype
        self._encoder: SentenceEncoder | None = SentenceEncoder.from_pretrained(model)
        self._sha256 = model_hash(self._encoder)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_encoder": None}

    def __call__(self, rows: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """Encode a batch of rows by column, as Ray Data and `datasets` hand them over.

        Args:
            rows: The values of each column.

        Returns:
            The same, and the vectors. (rows, m * d_o)

        Raises:
            ValueError: There is no such column, or already one of that name; a value is no string; a vector is not
                finite in `dtype`; or this worker finds another model under the name.
        """
        return {**rows, self.vector_column: self._encode(list(rows), rows.get(self.text_column, ()))}

    def frames(self, frames: "Iterator[DataFrame]") -> "Iterator[DataFrame]":
        """Encode the frames of a partition, as Spark hands them over.

        Args:
            frames: Parts of a partition.

        Yields:
            Each with the vectors, one array of numbers a row.

        Raises:
            ValueError: As in `__call__`.
        """
        for frame in frames:
            texts = frame.get(self.text_column, ())
            if len(texts):
                texts = texts.astype(object).where(texts.notna(), None)
            yield frame.assign(**{self.vector_column: list(self._encode(list(frame.columns), texts))})

    def _encode(self, columns: Sequence[str], texts: Sequence[Any]) -> Vectors:
        if self.text_column not in columns:
            raise ValueError(f"The rows have no column {self.text_column!r}: they have {', '.join(columns):.500}.")
        if self.vector_column in columns:
            raise ValueError(f"The rows have a column {self.vector_column!r}: give another vector_column.")
        sentences = ["" if text is None else text for text in texts]
        vectors = self._loaded().encode(
            sentences, batch_size=self.batch_size, normalize=self.normalize, dtype=self.dtype
        )
        check_finite(vectors, sentences)
        return vectors

    def _loaded(self) -> SentenceEncoder:
        if self._encoder is None:
            encoder = SentenceEncoder.from_pretrained(self.model)
            if model_hash(encoder) != self._sha256:
                raise ValueError(
                    f"{self.model} is another model on this worker than where the work was planned: bring them in line."
                )
            self._encoder = encoder
        return self._encoder
