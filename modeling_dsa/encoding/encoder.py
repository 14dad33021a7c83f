"""Sentences in, their vectors out: `SentenceEncoder`, a model and its tokenizer as one thing."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Self, cast

from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import BATCH_SIZE, Vectors, VectorType, check_token_ids, encode_sentences
from modeling_dsa.command.device import default_device
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.files.loading import load_tokenizer, loading_errors
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.vectors_dsa import batch_vectors

from .caching_tokenizer import text_tokenizer
from .sentence_transformers_files import warn_of_other_vectors

LARGEST_FOLDED_VOCABULARY = 50_000  # the folded tables of single DSA then take half a gigabyte


class SentenceEncoder:
    """Vectors of sentences: the model's `pooler_output`, in bulk and in any order, whatever the batch.

    The same sentence has the same vector each time: a variational model's is that of the prior's mean, also where the
    model predicts from samples (`config.num_prediction_samples`).

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
            ValueError: The tokenizer is none of these, or another model's.
        """
        if not hasattr(tokenizer, "backend_tokenizer"):
            raise ValueError(f"A {type(tokenizer).__name__} is no fast tokenizer: load it with AutoTokenizer.")
        check_token_ids(tokenizer.backend_tokenizer, model.config.vocab_size)
        self.model = cast(PreTrainedModel, model.base_model)
        self.tokenizer = tokenizer
        self._text_tokenizer = text_tokenizer(tokenizer.backend_tokenizer)

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
            ValueError: Its model cannot be loaded or is of another family, or `load_tokenizer` refuses the tokenizer; a
                stranger's regular expression is taken where `trust_remote_code` is true.
            OSError: It holds no config, or cannot be reached.
        """
        source = os.fspath(name_or_path)
        read_config(source)
        with loading_errors(f"{source}: the model"):
            model: Any = AutoModel.from_pretrained(source, trust_remote_code=trust_remote_code)
        tokenizer = load_tokenizer(source, model.config, trusted=trust_remote_code)
        warn_of_other_vectors(source)
        return cls(model.to(device or default_device()), tokenizer)

    @property
    def width(self) -> int:
        """Numbers in a vector, m * d_o."""
        return int(self.model.config.sentence_embedding_size)

    def fold_small_vocabulary(self) -> None:
        """Fold the word table into the first layer, for many sentences (`DSAModel.fold_embeddings`).

        Nothing, where the encoder cannot be folded, or where the vocabulary is so large that the tables would be, too.
        """
        config = self.model.config
        if ENCODERS[config.encoder].can_fold and config.vocab_size <= LARGEST_FOLDED_VOCABULARY:
            self.model.fold_embeddings()  # type: ignore[operator]  # of DSAModel

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

        Args:
            sentences: A sentence, or any number of them. An empty one has the vector that the model gives it. Half of
                a UTF-16 surrogate pair, which is no character, is read as U+FFFD.
            batch_size: Sentences that the model sees at once; fewer where they are longer than 16 tokens. It changes
                the speed and not the vectors. The default is good on a CPU; a GPU likes some thousands.
            normalize: Give each vector the length 1; a vector of zeros stays.
            dtype: Of the result: "float32", "float16" or "int8". With "int8" each vector is multiplied by 127 over its
                largest magnitude and rounded: compare such vectors by their cosine ([`encode_sentences`]).
            progress: Show a bar.

        Returns:
            (m * d_o,) for one sentence, else (sentences, m * d_o).

        Raises:
            ValueError: One of `sentences` is no string, or an option has no such value.
        """
        if self.model.training:  # torch's `eval` goes through all modules
            self.model.eval()
        return encode_sentences(
            self._text_tokenizer,
            sentences,
            partial(batch_vectors, self.model),
            self.width,
            batch_size=batch_size,
            normalize=normalize,
            dtype=dtype,
            progress=progress,
        )
