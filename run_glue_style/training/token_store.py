"""Token ids of texts in a memory-mapped Arrow file: tokenised once, by the first run on a machine that needs them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import datasets
import numpy as np
import pyarrow
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from modeling_dsa.files.hashing import with_length
from modeling_dsa.files.replacing import replaced_file

from .tokenized_examples import token_ids

COLUMN = "input_ids"


def token_cache() -> Path:
    """The folder of the token ids of all runs."""
    return Path(datasets.config.HF_DATASETS_CACHE) / "dsa-tokens"


def tokenize_once(
    tokenizer: PreTrainedTokenizerBase, texts: Iterable[str], folder: Path, progress: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """What `token_ids` gives, from the file in `folder` that an earlier call left, or from a new one.

    Args:
        tokenizer: A fast tokenizer. No special tokens are added.
        texts: Any number of texts, read twice.
        folder: Of the files; each is named after the hash of its tokenizer and its texts. One may be deleted at any
            time, and a broken one is made again.
        progress: Show a bar where there is something to tokenise.

    Returns:
        Ids of all texts, which the system reads from the file as they are needed, (tokens,), and how many each text
        has, (texts,).

    Raises:
        OSError: The folder cannot be written.
    """
    path = folder / f"{_hash(tokenizer, texts)}.arrow"
    try:
        return _read(path)
    except (OSError, StopIteration, pyarrow.ArrowInvalid):  # there is none, or only a part of it
        _write(path, *token_ids(tokenizer.backend_tokenizer, texts, progress))
        return _read(path)


def _hash(tokenizer: PreTrainedTokenizerBase, texts: Iterable[str]) -> str:
    digest = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode())
    for text in texts:
        digest.update(with_length(text))
    return digest.hexdigest()


def _read(path: Path) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    with pyarrow.memory_map(str(path)) as file, pyarrow.ipc.open_stream(file) as reader:
        column = reader.read_next_batch().column(COLUMN)
    return column.values.to_numpy(), np.diff(column.offsets.to_numpy())


def _write(path: Path, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
    offsets = np.concatenate([[0], lengths.cumsum()])
    # One batch, for only within one do the ids of all texts stand one after another.
    batch = pyarrow.record_batch({COLUMN: pyarrow.LargeListArray.from_arrays(offsets, ids)})
    with (
        replaced_file(path) as beside,
        pyarrow.OSFile(str(beside), "wb") as file,
        pyarrow.ipc.new_stream(file, batch.schema) as writer,
    ):
        writer.write_batch(batch)
