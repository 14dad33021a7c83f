"""Sentences in, their vectors out: `SentenceEncoder`, a model and its tokenizer as one thing."""

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self, TypeAlias, cast, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.files.model_folder import read_config

VectorType: TypeAlias = Literal["float32", "float16", "int8"]
Vectors: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]

DTYPES: tuple[str, ...] = get_args(VectorType)
BATCH_SIZE = 256  # Measured on two cores with 2 MB of cache: from 192 to 384 there is no difference.
_WORDS_PER_SENTENCE = 16  # With more words a batch is made of fewer sentences, so that it stays in the cache.
_TOKENIZED_AT_ONCE = 4096  # A word costs some hundred bytes until only its id is left.


def token_ids(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], progress: bool = False
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Tokenise sentences, on all cores, to what is small in memory. Special tokens are read, and none added.

    Args:
        tokenizer: One of the `tokenizers` library. Its padding and truncation are switched off.
        sentences: Any number of them. Half of a UTF-16 surrogate pair, which is no character, is read as U+FFFD.
        progress: Show a bar.

    Returns:
        Ids of all sentences one after another, (tokens,), and how many each sentence has, (sentences,).
    """
    backend = tokenizer.backend_tokenizer
    # What an earlier call of the tokenizer asked for stays with it.
    backend.no_padding()
    backend.no_truncation()
    ids, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    with tqdm(total=len(sentences), desc="tokenising", unit=" texts", disable=not progress) as bar:
        for start in range(0, len(sentences), _TOKENIZED_AT_ONCE):
            part = list(sentences[start : start + _TOKENIZED_AT_ONCE])
            try:
                encodings = backend.encode_batch_fast(part, add_special_tokens=False)
            except TypeError:  # it takes every string but those with half a surrogate pair
                whole = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in part]
                encodings = backend.encode_batch_fast(whole, add_special_tokens=False)
            rows = [encoding.ids for encoding in encodings]
            lengths.append(np.array([len(row) for row in rows], np.int64))
            count = int(lengths[-1].sum())
            ids.append(np.fromiter(itertools.chain.from_iterable(rows), np.int32, count))
            bar.update(len(part))
    return np.concatenate(ids), np.concatenate(lengths)


class SentenceEncoder:
    """Vectors of sentences: the model's `pooler_output`, in bulk and in any order, whatever the batch.

    Attributes:
        model: The sentence encoder, without a classifier.
        tokenizer: Its tokenizer.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Take a model that is loaded.

        Args:
            model: A [`DSAModel`] or a classifier around one. It stays on its device, in its precision.
            tokenizer: Its tokenizer, which must be one of the `tokenizers` library.

        Raises:
            ValueError: The tokenizer is none of these.
        """
        if not hasattr(tokenizer, "backend_tokenizer"):
            raise ValueError(f"A {type(tokenizer).__name__} is no fast tokenizer: load it with AutoTokenizer.")
        self.model = cast(PreTrainedModel, model.base_model)
        self.tokenizer = tokenizer

    @classmethod
    def from_pretrained(
        cls, name_or_path: str | os.PathLike[str], *, trust_remote_code: bool = False, device: str | None = None
    ) -> Self:
        """Load the encoder of a folder or a repository, a classifier's too.

        Args:
            name_or_path: A folder or Hub id.
            trust_remote_code: Run the repository's own code in place of this package's.
            device: Where to compute; default: a GPU where there is one (that of `LOCAL_RANK`), else the CPU.

        Raises:
            ValueError: It holds a model of another family.
            OSError: It holds no model, or cannot be reached.
        """
        options = {"trust_remote_code": trust_remote_code}
        read_config(name_or_path)
        model = AutoModel.from_pretrained(name_or_path, **options)
        if device is None:
            device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"
        return cls(model.to(device), AutoTokenizer.from_pretrained(name_or_path, **options))

    @property
    def width(self) -> int:
        """Numbers in a vector, m * d_o."""
        return int(self.model.config.sentence_embedding_size)

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        batch_size: int = BATCH_SIZE,
        normalize: bool = False,
        dtype: VectorType = "float32",
        progress: bool = False,
    ) -> Vectors:
        """Encode sentences, each distinct one once.

        With "int8" each vector is multiplied by 127 over its largest magnitude and rounded. That keeps its direction
        and not its length, so such vectors are compared by their cosine, which needs no scale and no calibration:
        `a @ b / (norm(a) * norm(b))` in integers that do not overflow (int32) or in floating point. `a / norm(a)` is
        the normalised vector again, each of its numbers to within about 1/254 of its largest one.

        Args:
            sentences: A sentence, or any number of them. An empty one has the vector that the model gives it. Half of
                a UTF-16 surrogate pair, which is no character, is read as U+FFFD.
            batch_size: Sentences that the model sees at once; fewer where they are longer than 16 words. It changes
                the speed and not the vectors. The default is good on a CPU; a GPU likes some thousands.
            normalize: Give each vector the length 1; a vector of zeros stays.
            dtype: Of the result: "float32", "float16" or "int8".
            progress: Show a bar.

        Returns:
            (m * d_o,) for one sentence, else (sentences, m * d_o).

        Raises:
            ValueError: One of `sentences` is no string, or an option has no such value.
        """
        if dtype not in DTYPES:
            raise ValueError(f"There are no vectors of dtype {dtype!r}: give one of {', '.join(DTYPES)}.")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        if isinstance(sentences, str):
            vector: Vectors = self.encode(
                [sentences], batch_size=batch_size, normalize=normalize, dtype=dtype, progress=progress
            )[0]
            return vector
        number_of: dict[str, int] = {}
        copy_of = np.empty(len(sentences), np.int64)
        for place, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise ValueError(f"The sentence at position {place} is {sentence!r}, which is no string.")
            copy_of[place] = number_of.setdefault(sentence, len(number_of))
        copies = np.bincount(copy_of, minlength=len(number_of))

        ids, lengths = token_ids(self.tokenizer, list(number_of))
        vectors: Vectors = np.empty((len(number_of), self.width), dtype)
        if self.model.training:  # torch's `eval` goes through all modules
            self.model.eval()
        with tqdm(total=len(sentences), unit=" sentences", disable=not progress) as bar:
            for batch, rows, inside in _batches(ids, lengths, batch_size):
                vectors[batch] = self._vectors(rows, inside, normalize, dtype)
                bar.update(int(copies[batch].sum()))
        return vectors if len(number_of) == len(sentences) else vectors[copy_of]

    @torch.inference_mode()
    def _vectors(self, rows: Vectors, inside: Vectors, normalize: bool, dtype: VectorType) -> Vectors:
        """(batch, words) twice -> (batch, m * d_o)"""
        device = self.model.device
        ids, mask = torch.from_numpy(rows).to(device), torch.from_numpy(inside).to(device)
        vectors: Tensor = self.model(ids, attention_mask=mask, output_words=False).pooler_output.float()
        if normalize:
            vectors = F.normalize(vectors)
        if dtype == "int8":
            largest = vectors.abs().amax(1, keepdim=True)  # (batch, 1)
            vectors = torch.where(largest > 0, vectors / largest * 127, 0.0).round()
        return vectors.to(getattr(torch, dtype)).cpu().numpy()


def _batches(ids: Vectors, lengths: Vectors, batch_size: int) -> Iterator[tuple[Vectors, Vectors, Vectors]]:
    """Batches of sentences of similar lengths, the longest first.

    (words,), (sentences,) -> which sentences, (batch,), their ids, (batch, words), and which of these are words,
    (batch, words)
    """
    starts = lengths.cumsum() - lengths
    order = np.argsort(-lengths, kind="stable")  # the longest first: what does not fit in memory fails at once
    first = 0
    while first < len(order):
        width = max(1, int(lengths[order[first]]))
        most = max(1, min(batch_size, batch_size * _WORDS_PER_SENTENCE // width))
        batch = order[first : first + most]
        first += most
        place = np.arange(width)
        inside = place < lengths[batch, None]  # (batch, words)
        rows = np.zeros(inside.shape, np.int64)
        rows[inside] = ids[(starts[batch, None] + place)[inside]]
        yield batch, rows, inside
