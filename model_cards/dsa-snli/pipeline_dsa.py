"""The pipeline "sentence-embedding": texts in, the vectors of the model's pooling out."""

from collections.abc import Iterable, Sized
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import Pipeline, PreTrainedModel, PreTrainedTokenizerBase

from .batching_dsa import (
    BATCH_SIZE,
    TextTokenizer,
    check_ordered,
    check_token_ids,
    encode_sentences,
    replace_surrogates,
    unit_vectors,
)
from .vectors_dsa import batch_vectors


class SentenceEmbeddingPipeline(Pipeline):
    """Vectors of sentences: `pooler_output`, where transformers' "feature-extraction" gives the tokens' vectors.

    `pipeline("sentence-embedding", model=..., trust_remote_code=True)(texts)` returns for one text a list of m * d_o
    numbers, and for a list of texts a list of those. With `return_tensors=True` a vector is a tensor (m * d_o,), and
    with `normalize=True` it has length 1. An iterator or data set is read while the vectors come out.
    """

    _load_processor = False
    _load_image_processor = False
    _load_feature_extractor = False
    _load_tokenizer = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As every pipeline.

        Raises:
            ValueError: The tokenizer is another model's.
        """
        super().__init__(*args, **kwargs)
        tokenizer = cast(PreTrainedTokenizerBase, self.tokenizer)
        check_token_ids(tokenizer.backend_tokenizer, self.model.config.vocab_size)

    def __call__(
        self,
        inputs: Any,
        *args: Any,
        num_workers: int | None = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> Any:
        """Encode texts.

        Args:
            inputs: A text, a list or column of texts, or what gives texts one by one.
            *args: As for every pipeline.
            num_workers: As for every pipeline, for a data set; a list needs none.
            batch_size: Texts that the model sees at once; it changes the speed and not the vectors.
            **options: `normalize` and `return_tensors`.

        Raises:
            ValueError: One of a list is no string, they are a dict, a table or a set, or there is no such option.
        """
        check_ordered(inputs)
        if self.model.training:  # as after a training; dropout would give other vectors each time
            self.model.eval()
        if isinstance(inputs, Sized) and not isinstance(inputs, str | Dataset):
            inputs = list(cast(Iterable[Any], inputs))
        elif isinstance(inputs, Iterable) and not isinstance(inputs, str | Dataset):
            inputs = (text for text in inputs)  # a generator transformers knows
        if not isinstance(inputs, str | list):
            return super().__call__(inputs, *args, num_workers=num_workers, batch_size=batch_size, **options)
        wanted = self._postprocess_params | self._sanitize_parameters(**options)[2]
        base = cast(PreTrainedModel, self.model.base_model)
        vectors = encode_sentences(
            TextTokenizer(cast(PreTrainedTokenizerBase, self.tokenizer).backend_tokenizer),
            inputs,
            partial(batch_vectors, base),
            int(base.config.sentence_embedding_size),
            batch_size=next(size for size in (batch_size, self._batch_size, BATCH_SIZE) if size is not None),
            normalize=bool(wanted.get("normalize")),
        )
        if not wanted.get("return_tensors"):
            return vectors.tolist()
        return torch.from_numpy(vectors) if isinstance(inputs, str) else list(torch.from_numpy(vectors))

    def _sanitize_parameters(
        self, normalize: bool | None = None, return_tensors: bool | None = None, **others: Any
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        if others:
            raise ValueError(f"This pipeline has no option {', '.join(map(repr, others))}: leave it out.")
        options = {"normalize": normalize, "return_tensors": return_tensors}
        return {}, {}, {name: value for name, value in options.items() if value is not None}

    def preprocess(self, input_: str) -> Any:
        """One text, as a row of ids. (1, tokens)"""
        if not isinstance(input_, str):
            raise ValueError(f"{input_!r} is no string, but a text is needed.")
        return cast(PreTrainedTokenizerBase, self.tokenizer)(replace_surrogates(input_), return_tensors="pt")

    def _forward(self, input_tensors: Any, **_: Any) -> Any:
        # A head has logits only.
        ids, mask = input_tensors["input_ids"].long(), input_tensors["attention_mask"].long()
        return {"vectors": cast(Any, self.model.base_model).sentence_vectors(ids, mask)}

    def postprocess(
        self, model_outputs: dict[str, Tensor], normalize: bool = False, return_tensors: bool = False
    ) -> Tensor | list[float]:
        """The vector of one text, (m * d_o,)."""
        vector = model_outputs["vectors"][0].float()
        if normalize:
            vector = torch.from_numpy(unit_vectors(vector.numpy()))
        numbers: list[float] = vector.tolist()
        return vector if return_tensors else numbers
