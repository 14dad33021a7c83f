"""The function that engines for data on several machines call: a column of sentences in, one of vectors beside it.

Ray Data, Spark and `datasets` bring the machines, the files and the restart of what has died. A worker gets the model's
name and loads it by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from modeling_dsa.batching_dsa import BATCH_SIZE, Vectors, VectorType

from .encoder import SentenceEncoder
from .finite import check_finite
from .model_hash import model_hash
from .sources import COLUMN

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import RecordBatch, Table


class ColumnEncoder:
    """Adds the vectors of a column of sentences to batches of rows.

    The class is an actor for Ray Data's `map_batches`; an object is a function for `map(batched=True)` of `datasets`,
    and its methods `record_batches` and `frames` are those for Spark's `mapInArrow` and `mapInPandas`. What is sent to
    workers, and what `datasets` keeps results by, is the model's name, its hash and the options.

    Attributes:
        sha256: The model's hash.
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
        device: str | None = None,
        sha256: str | None = None,
    ) -> None:
        """Load the model, so that a mistake comes to light where the work is planned.

        Args:
            model: Hub id, or a folder by a name that every worker finds it under.
            text_column: Holds the sentences; a missing value is an empty one.
            vector_column: The new one.
            batch_size: As for `SentenceEncoder.encode`; it is not that of the engine, which may be much larger.
            normalize: As for `SentenceEncoder.encode`.
            dtype: As for `SentenceEncoder.encode`. Spark has no type for float16.
            device: As for `SentenceEncoder.from_pretrained`, on each worker. Give "cpu" where workers are forked, which
                cannot use a GPU that their parent has used.
            sha256: The hash that the model must have: the attribute of the `ColumnEncoder` where the work is planned,
                for an engine that makes one on each worker by itself. Default: whatever is found.

        Raises:
            ValueError: As in `SentenceEncoder.from_pretrained`, or the model's hash is another one.
            OSError: As there.
        """
        self.model = model
        self.text_column = text_column
        self.vector_column = vector_column
        self.batch_size = batch_size
        self.normalize = normalize
        self.dtype: VectorType = dtype
        self.device = device
        self._encoder: SentenceEncoder | None
        self._encoder, self.sha256 = _load(model, sha256, device)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_encoder": None}

    @overload
    def __call__(self, rows: Mapping[str, Sequence[Any]]) -> dict[str, Any]: ...

    @overload
    def __call__(self, rows: "Table") -> "Table": ...

    def __call__(self, rows: Any) -> Any:
        """Encode a batch of rows by column, as Ray Data and `datasets` hand them over.

        Args:
            rows: The values of each column; or a `pyarrow.Table`, which keeps whole numbers beside missing ones.

        Returns:
            The same, and the vectors: an array (rows, m * d_o), or a column of lists.

        Raises:
            ValueError: They are something else; there is no such column, or already one of that name; it is a row and
                no batch; a value is no string; a vector is not finite in `dtype`; or this worker finds another model
                under the name.
        """
        if isinstance(rows, Mapping):
            vectors = self._encode(list(rows), rows.get(self.text_column, ()))
            # Not {**rows}: `datasets` hands over more than a dict, and would take all of a dict's columns for new ones,
            # which it decodes, and keeps although `remove_columns` names them.
            return rows | {self.vector_column: vectors}  # type: ignore[operator]  # which all that engines give have
        if not hasattr(rows, "schema") or not hasattr(rows, "append_column"):
            raise ValueError(
                f"Rows come by column in a mapping or as a pyarrow.Table, got {type(rows).__name__}: give a data set "
                "with_format(None) or 'arrow'."
            )
        return self._with_vectors(rows)

    def record_batches(self, batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        """Encode the batches of a partition, as Spark's `mapInArrow` hands them over; other columns stay as they are.

        Args:
            batches: Parts of a partition.

        Yields:
            Each with the vectors, one list of numbers a row.

        Raises:
            ValueError: As in `__call__`.
        """
        for batch in batches:
            yield self._with_vectors(batch)

    def frames(self, frames: "Iterator[DataFrame]") -> "Iterator[DataFrame]":
        """Encode the frames of a partition, as Spark's `mapInPandas` hands them over.

        It is right where no whole number is missing: pandas makes float64 of such a column, and of `2**53 + 1` another
        number. `record_batches` keeps it.

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

    def _with_vectors(self, rows: Any) -> Any:
        """A table or batch of pyarrow and the vectors as its last column."""
        import pyarrow

        columns = rows.schema.names
        texts = rows.column(self.text_column).to_pylist() if self.text_column in columns else ()
        vectors = self._encode(columns, texts)
        # Spark cannot read lists of fixed size.
        offsets = pyarrow.array(np.arange(len(vectors) + 1) * vectors.shape[1], pyarrow.int32())
        lists = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(vectors.reshape(-1)))
        return rows.append_column(self.vector_column, lists)

    def _encode(self, columns: Sequence[str], texts: Sequence[Any]) -> Vectors:
        if self.text_column not in columns:
            raise ValueError(f"The rows have no column {self.text_column!r}: they have {', '.join(columns):.500}.")
        if list(columns).count(self.text_column) > 1:
            raise ValueError(f"The rows have two columns {self.text_column!r}: give one of them another name.")
        if self.vector_column in columns:
            raise ValueError(f"The rows have a column {self.vector_column!r}: give another vector_column.")
        if isinstance(texts, str):
            raise ValueError(
                f"{self.text_column!r} holds one text, and batches of rows are encoded: give map(..., batched=True)."
            )
        sentences = ["" if text is None else text for text in texts]
        vectors = self._loaded().encode(
            sentences, batch_size=self.batch_size, normalize=self.normalize, dtype=self.dtype
        )
        check_finite(vectors, sentences)
        return vectors

    def _loaded(self) -> SentenceEncoder:
        if self._encoder is None:
            self._encoder, _ = _load_once(self.model, self.sha256, self.device)
        return self._encoder


def _load(model: str, sha256: str | None, device: str | None) -> tuple[SentenceEncoder, str]:
    """A model, folded as `dsa encode` folds it, and its hash, which must be `sha256` where that is given."""
    encoder = SentenceEncoder.from_pretrained(model, device=device)
    found = model_hash(encoder)
    if sha256 not in (None, found):
        raise ValueError(
            f"{model} is another model on this worker than where the work was planned: bring them in line."
        )
    encoder.fold_small_vocabulary()
    return encoder, found


# Spark unpickles the function for each partition, and a process that it reuses should load a model once.
_load_once = lru_cache(maxsize=1)(_load)
