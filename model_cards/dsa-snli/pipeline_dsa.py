"""The pipeline "sentence-embedding": texts in, the vectors of the model's pooling out."""

from typing import Any, cast

from torch import Tensor
from transformers import Pipeline, PreTrainedTokenizerBase


class SentenceEmbeddingPipeline(Pipeline):
    """Vectors of sentences: `pooler_output`, where transformers' "feature-extraction" gives the words' vectors.

    `pipeline("sentence-embedding", model=..., trust_remote_code=True)(texts, batch_size=64)` returns for one text a
    list of m * d_o numbers, and for a list of texts a list of those. With `return_tensors=True` a vector is a tensor
    (m * d_o,), and with `normalize=True` it has length 1.
    """

    _load_processor = False
    _load_image_processor = False
    _load_feature_extractor = False
    _load_tokenizer = True

    def _sanitize_parameters(
        self, normalize: bool | None = None, return_tensors: bool | None = None
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        options = {"normalize": normalize, "return_tensors": return_tensors}
        return {}, {}, {name: value for name, value in options.items() if value is not None}

    def preprocess(self, input_: str) -> Any:
        """One text, as a row of ids. (1, words)"""
        return cast(PreTrainedTokenizerBase, self.tokenizer)(input_, return_tensors="pt")

    def _forward(self, input_tensors: Any, **_: Any) -> Any:
        return {"vectors": self.model.base_model(**input_tensors).pooler_output}  # a head has logits only

    def postprocess(
        self, model_outputs: dict[str, Tensor], normalize: bool = False, return_tensors: bool = False
    ) -> Tensor | list[float]:
        """The vector of one text, (m * d_o,)."""
        vector = model_outputs["vectors"][0].float()
        if normalize:
            vector = vector / vector.norm().clamp_min(1e-12)
        numbers: list[float] = vector.tolist()
        return vector if return_tensors else numbers
