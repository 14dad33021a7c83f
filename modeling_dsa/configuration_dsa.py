"""Configuration of the DSA model family: one config for every encoder and every pooling."""

import difflib
import math
from dataclasses import fields
from typing import Any, Literal

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig
from transformers.utils import logging

logger = logging.get_logger(__name__)

_RATES = ("embedding_dropout", "hidden_dropout", "classifier_dropout")
_POSITIVE = ("word_norm", "batch_norm_eps")
_COUNTS = (
    "vocab_size",
    "embedding_size",
    "hidden_size",
    "num_hidden_layers",
    "first_layer_size",
    "growth_size",
    "num_attention_heads",
    "attention_head_size",
    "routing_iterations",
    "attention_hidden_size",
)


@strict
class DSAConfig(PreTrainedConfig):
    r"""Configuration of [`DSAModel`] and its heads: word vectors -> encoder -> pooling -> sentence vector.

    The defaults are *single DSA on SNLI* of Yoon, Lee and Lee, "Dynamic Self-Attention: Computing Attention over Words
    Dynamically for Sentence Embedding" (2018). The paper's symbols stand in brackets.

    Args:
        vocab_size: Rows of the word table.
        embedding_size: Width of a word vector [d_0].
        freeze_embeddings: Keep the word table out of training (also after `from_pretrained` and a resize).
        unknown_init_range: Words without a pre-trained vector are drawn from U(-a, a) [a].
        embedding_dropout: Dropout rate on the word vectors.
        encoder: Name of the encoder, a key of `encoders_dsa.ENCODERS`.
        hidden_size: Width of an encoded word [d_c].
        hidden_dropout: Dropout rate in every convolution layer h.
        kernel_sizes: Kernel size of each densely connected branch [k_1, k_2]; odd numbers.
        num_hidden_layers: Dense layers of a branch after its first layer (L = 4 counts like this: see the README).
        first_layer_size: Channels of a branch's first layer, whose kernel is 1 [d_1].
        growth_size: Channels of each dense layer [d_l].
        normalize_words: L2-normalise every encoded word x_i^c.
        word_norm: Length of a normalised word (1 in the paper). It sets the scale that enters the pooling.
        pooling: Name of the pooling, a key of `poolings_dsa.POOLINGS`.
        num_attention_heads: Attentions over one sentence [m].
        attention_head_size: Width of one attention's output [d_o].
        routing_iterations: Iterations of dynamic self-attention [r].
        routing_scale: Factor on the agreement x_hat . z before it is added to the logits q (1 in the paper).
        attention_hidden_size: Width of tanh(W x) in static self-attention, Eq. 1 [d_v].
        sentences_per_row: 1 for a classifier of sentences, 2 for one of pairs (heuristic matching).
        classifier_hidden_sizes: Widths of the classifier's hidden layers.
        classifier_dropout: Dropout rate on the input of each hidden layer of the classifier.
        batch_norm_eps: What the classifier's batch normalisation adds to a variance.
        negative_slope: Slope of every LeakyReLU below zero.
        initializer_scaling: The He initialisation of a layer is multiplied by the square root of its keep probability
            ("keep_prob"), of its dropout rate ("dropout_rate", the paper's wording taken literally) or by 1 ("none").
            A layer without dropout is never scaled.
        deduplicate_sentences: Encode a sentence that stands several times in a batch once. In training its copies then
            share one dropout mask.

    Unknown keys are kept as attributes, as in every transformers config, but a warning names those that look like a
    misspelt field.
    """

    model_type = "dsa"

    vocab_size: int = 30000
    pad_token_id: int | None = 0
    sep_token_id: int | None = 2
    tie_word_embeddings: bool = False

    embedding_size: int = 300
    freeze_embeddings: bool = True
    unknown_init_range: float | int = 0.005
    embedding_dropout: float | int = 0.3

    encoder: Literal["dense_cnn"] = "dense_cnn"
    hidden_size: int = 300
    hidden_dropout: float | int = 0.2
    kernel_sizes: list[int] | tuple[int, ...] = (3, 5)
    num_hidden_layers: int = 4
    first_layer_size: int = 150
    growth_size: int = 75
    normalize_words: bool = True
    word_norm: float | int = 1.0

    pooling: Literal["dynamic", "static"] = "dynamic"
    num_attention_heads: int = 1
    attention_head_size: int = 600
    routing_iterations: int = 2
    routing_scale: float | int = 1.0
    attention_hidden_size: int = 600

    sentences_per_row: Literal[1, 2] = 1
    classifier_hidden_sizes: list[int] | tuple[int, ...] = (300, 300)
    classifier_dropout: float | int = 0.3
    batch_norm_eps: float | int = 1e-5

    negative_slope: float | int = 0.01
    initializer_scaling: Literal["keep_prob", "dropout_rate", "none"] = "keep_prob"
    deduplicate_sentences: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        """Warn of keys that look like a misspelt field."""
        super().__post_init__(**kwargs)
        known = {field.name for field in fields(self)}
        for name in set(vars(self)) - known:
            guess = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            if name in kwargs and guess:
                logger.warning(f"DSAConfig has no field '{name}'; did you mean '{guess[0]}'? It is kept but not used.")

    @property
    def sentence_embedding_size(self) -> int:
        """Width of a sentence vector: m * d_o."""
        return self.num_attention_heads * self.attention_head_size

    def validate_sizes(self) -> None:
        """Every count and width is at least 1 and every rate lies in [0, 1)."""
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        for name in _RATES:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}.")
        for name in _POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number greater than 0, got {getattr(self, name)}.")
        for name in ("routing_scale", "negative_slope"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be a finite number, got {getattr(self, name)}.")
        if not 0 <= self.unknown_init_range < math.inf:
            raise ValueError(f"unknown_init_range must not be negative, got {self.unknown_init_range}.")
        if not all(size >= 1 for size in self.classifier_hidden_sizes):
            raise ValueError(f"classifier_hidden_sizes must be positive, got {list(self.classifier_hidden_sizes)}.")

    def validate_kernels(self) -> None:
        """'Same' padding needs odd kernels, and the encoder needs a branch at least."""
        if not self.kernel_sizes or not all(size >= 1 and size % 2 == 1 for size in self.kernel_sizes):
            raise ValueError(f"kernel_sizes must be one or more odd numbers, got {list(self.kernel_sizes)}.")

    def validate_pooling(self) -> None:
        """Eq. 1 has one weight vector v, so static self-attention has one head."""
        if self.pooling == "static" and self.num_attention_heads != 1:
            raise ValueError(f"pooling 'static' has one head, got num_attention_heads={self.num_attention_heads}.")


__all__ = ["DSAConfig"]
