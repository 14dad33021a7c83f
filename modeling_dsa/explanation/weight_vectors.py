"""The dynamic weight vectors z of many sentences, by routing iteration and head, projected to the plane (Figure 2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Batch, TextTokenizer, Vectors, compute_in_batches
from modeling_dsa.modeling_dsa import DSAModel, DSAPreTrainedModel
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.vectors_dsa import batch_vectors

from .labelled_sentences import LabelledSentences

Method: TypeAlias = Literal["pca", "t-sne"]


@dataclass(frozen=True)
class Projection:
    """Weight vectors in the plane.

    Attributes:
        sentences: Whose they are.
        points: (sentences, iterations, heads, 2)
        method: What projected them.
        variance: The share of the variance that each axis of PCA explains; none of t-SNE. (2,) or ()
    """

    sentences: LabelledSentences
    points: npt.NDArray[np.float64]
    method: Method
    variance: list[float]

    @property
    def axes(self) -> list[str]:
        """What stands at the two axes."""
        if self.method == "pca":
            return [
                f"component {number}: {share:.1%} of variance" for number, share in enumerate(self.variance, start=1)
            ]
        return ["t-SNE 1", "t-SNE 2"]


def weight_vectors(model: DSAPreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> Vectors:
    """The vectors z of sentences: tanh of the sum of the projected tokens under each iteration's weights (Algorithm 1).

    Args:
        model: An encoder or classifier. One without dynamic self-attention has one iteration and one head, whose vector
            is that of the sentence.
        tokenizer: The model's.
        sentences: Not empty.

    Returns:
        (sentences, iterations, heads, width)
    """
    base = cast(DSAModel, model.eval().base_model)
    config = base.config
    is_routed = POOLINGS[config.pooling].is_routed
    shape = (1, 1, config.sentence_embedding_size)
    if is_routed:
        shape = (config.routing_iterations, config.num_attention_heads, config.attention_head_size)

    @torch.inference_mode()
    def vectors(batch: Batch) -> Vectors:
        if not is_routed:
            return batch_vectors(base, batch)
        ids, mask = (torch.from_numpy(array).to(base.device) for array in (batch.input_ids, batch.attention_mask))
        outputs = base(ids, attention_mask=mask, output_tokens=False, output_weight_vectors=True)
        first = [of_iteration[:, 0] for of_iteration in outputs.weight_vectors]  # (batch, heads, d_o) each
        return cast(Vectors, torch.stack(first, 1).flatten(1).float().cpu().numpy())

    of_texts = TextTokenizer(tokenizer.backend_tokenizer)
    return compute_in_batches(of_texts, sentences, vectors, int(np.prod(shape))).reshape(-1, *shape)


def project(sentences: LabelledSentences, vectors: Vectors, method: Method) -> Projection:
    """Project weight vectors to the plane, all iterations and heads together.

    Args:
        sentences: Whose they are, three or more.
        vectors: (sentences, iterations, heads, width)
        method: "pca", whose axes say how much of the variance they explain; or "t-sne", which shows neighbourhoods.

    Raises:
        ValueError: There are too few sentences, or all vectors are equal, by which t-SNE ends the process.
    """
    if len(vectors) < 3:
        raise ValueError(f"There are {len(vectors)} distinct sentences, and a picture of vectors needs 3 or more.")
    rows = vectors.reshape(-1, vectors.shape[-1])  # (sentences * iterations * heads, width)
    if not np.ptp(rows, axis=0).any():
        raise ValueError("All vectors are equal, so there is nothing to draw: give sentences that the model knows.")
    variance: list[float] = []
    if method == "pca":
        pca = PCA(2, random_state=0)
        points = pca.fit_transform(rows)
        variance = pca.explained_variance_ratio_.tolist()
    else:
        points = TSNE(2, perplexity=min(30.0, (len(rows) - 1) / 3), random_state=0).fit_transform(rows)
    return Projection(sentences, points.reshape(*vectors.shape[:3], 2).astype(np.float64), method, variance)
