"""Configuration of the DSA model family: one config for every encoder and every pooling."""

import difflib
import math
from dataclasses import fields
from typing import Any, Literal, cast

from transformers.utils import logging

from .compatibility_dsa import PreTrainedConfig, strict

logger = logging.get_logger(__name__)

_RATES = ("embedding_dropout", "word_dropout", "hidden_dropout", "classifier_dropout")
_PAIR_FEATURES = ("first", "second", "difference", "product", "cosine")
_POSITIVE = ("word_norm", "batch_norm_eps")
_NOT_NEGATIVE = ("unknown_init_range", "attention_penalty", "kl_weight", "kl_warmup_steps", "num_prediction_samples")
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
    "latent_size",
    "num_training_samples",
)


@strict
class DSAConfig(PreTrainedConfig):
    r"""Configuration of [`DSAModel`] and its heads: word vectors -> encoder -> pooling -> sentence vector.

    The defaults are *single DSA on SNLI* of Yoon, Lee and Lee, "Dynamic Self-Attention: Computing Attention over Words
    Dynamically for Sentence Embedding" (2018). Every encoder goes with every pooling, unless the reason that the error
    gives forbids it. The papers' symbols stand in brackets.

    Args:
        vocab_size: Rows of the word table.
        embedding_size: Width of a word vector [d_0].
        freeze_embeddings: Keep the word table out of training (also after `from_pretrained` and a resize).
        unknown_init_range: Words without a pre-trained vector are drawn from U(-a, a) [a].
        embedding_dropout: Dropout rate on the word vectors.
        word_dropout: Rate at which words of the vocabulary are left out of a training batch, wherever they stand in it.
        max_sentence_words: Words of a sentence that the model reads, from its first; None reads all.
        encoder: Name of the encoder, a key of `encoders_dsa.ENCODERS`: "none" (words as they are), "dense_cnn",
            "kim_cnn", "bilstm" or "pairwise" (self-attention).
        hidden_size: Width of an encoded word [d_c; 2u for a BiLSTM; all feature maps of Kim's CNN together]. With
            encoder "none" it is `embedding_size`, and this field is not read.
        hidden_dropout: Dropout rate in every layer of the encoder.
        kernel_sizes: Kernel size of each densely connected branch [k_1, k_2], odd numbers; or those of Kim's CNN.
        num_hidden_layers: Dense layers of a branch after its first layer (L = 4 counts like this: see the README);
            layers of a BiLSTM or of pairwise self-attention.
        first_layer_size: Channels of a dense branch's first layer, whose kernel is 1 [d_1].
        growth_size: Channels of each dense layer [d_l].
        normalize_words: L2-normalise every encoded word x_i^c.
        word_norm: Length of a normalised word (1 in the paper). It sets the scale that enters the pooling.
        pooling: Name of the pooling, a key of `poolings_dsa.POOLINGS`: "mean", "max", "last", "static", "structured",
            "dynamic", "pairwise" (self-attention) or "variational" (VSAM, whose deterministic twin is the former).
        num_attention_heads: Attentions over one sentence [m; hops r of structured self-attention].
        attention_head_size: Width of one attention's output, dynamic and static [d_o].
        routing_iterations: Iterations of dynamic self-attention [r].
        routing_scale: Factor on the agreement x_hat . z before it is added to the logits q (1 in the paper).
        attention_hidden_size: Width inside the attention: of tanh(W x) in static (Eq. 1) and structured self-attention
            [d_v, d_a], of pi in pairwise and variational self-attention.
        attention_penalty: Structured self-attention: coefficient of ||A A^T - I||_F^2 in the loss (0.3 in its paper).
        latent: What has a latent variable z: each "word", or each "sentence" (the paper's wording taken literally: W_z
            has one row a position, so sentences need a longest length, `max_sentence_words`).
        latent_size: Width of z.
        kl_weight: Factor on KL(q || p) in the loss; 1 is the evidence lower bound.
        kl_warmup_steps: Training batches in which that factor rises from 0.
        num_training_samples: Samples of the posterior for each sentence in training [L].
        num_prediction_samples: Samples of the prior at prediction; 0 takes its mean instead.
        sentences_per_row: 1 for a classifier of sentences, 2 for one of pairs.
        pair_features: What the classifier sees of a pair [p, h], in this order: "first" (p), "second" (h), "difference"
            (|p - h|), "product" (p * h) (these four are heuristic matching), "cosine" (of p and h as a whole and, with
            several heads, of each head's part of them).
        classifier_hidden_sizes: Widths of the classifier's hidden layers.
        classifier_dropout: Dropout rate on the input of each hidden layer of the classifier; without any, on that of
            its last layer.
        batch_norm_eps: What the classifier's batch normalisation adds to a variance.
        negative_slope: Slope of every LeakyReLU below zero.
        initializer_scaling: The He initialisation of a layer is multiplied by the square root of its keep probability
            ("keep_prob"), of its dropout rate ("dropout_rate", the paper's wording taken literally) or by 1 ("none").
            A layer without dropout is never scaled.
        deduplicate_sentences: Encode a sentence that stands several times in a batch once. In training its copies then
            share one dropout mask, and those with one label share the samples of their latent variables.
        fold_embeddings: `from_pretrained` calls `fold_embeddings()`, which makes prediction faster and takes memory.

    Unknown keys are kept as attributes, as in every transformers config, but a warning names those that look like a
    misspelt field.
    """

    model_type = "dsa"
    keys_to_ignore_at_inference = [  # noqa: RUF012  (a Trainer adds a list to what its metrics do not ask for)
        "reconstruction_loss",
        "kl",
        "kl_weight",
        "attention_penalty",
        "probabilities_std",
        "attentions_std",
    ]

    vocab_size: int = 30000
    pad_token_id: int | None = 0
    sep_token_id: int | None = 2
    tie_word_embeddings: bool = False

    embedding_size: int = 300
    freeze_embeddings: bool = True
    unknown_init_range: float | int = 0.005
    embedding_dropout: float | int = 0.3
    word_dropout: float | int = 0.0
    max_sentence_words: int | None = None

    encoder: Literal["none", "dense_cnn", "kim_cnn", "bilstm", "pairwise"] = "dense_cnn"
    hidden_size: int = 300
    hidden_dropout: float | int = 0.2
    kernel_sizes: list[int] | tuple[int, ...] = (3, 5)
    num_hidden_layers: int = 4
    first_layer_size: int = 150
    growth_size: int = 75
    normalize_words: bool = True
    word_norm: float | int = 1.0

    pooling: Literal["mean", "max", "last", "static", "structured", "dynamic", "pairwise", "variational"] = "dynamic"
    num_attention_heads: int = 1
    attention_head_size: int = 600
    routing_iterations: int = 2
    routing_scale: float | int = 1.0
    attention_hidden_size: int = 600
    attention_penalty: float | int = 0.0
    latent: Literal["word", "sentence"] = "word"
    latent_size: int = 100
    kl_weight: float | int = 1.0
    kl_warmup_steps: int = 0
    num_training_samples: int = 1
    num_prediction_samples: int = 0

    sentences_per_row: Literal[1, 2] = 1
    pair_features: list[str] | tuple[str, ...] = ("first", "second", "difference", "product")
    classifier_hidden_sizes: list[int] | tuple[int, ...] = (300, 300)
    classifier_dropout: float | int = 0.3
    batch_norm_eps: float | int = 1e-5

    negative_slope: float | int = 0.01
    initializer_scaling: Literal["keep_prob", "dropout_rate", "none"] = "keep_prob"
    deduplicate_sentences: bool = True
    fold_embeddings: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        """Warn of keys that look like a misspelt field."""
        super().__post_init__(**kwargs)
        self.architectures = self.architectures or []  # AutoModel searches it, also before any model was saved
        if self.label2id is None and self.id2label is not None:  # zero-shot classification looks labels up by name
            self.label2id = {str(name): int(number) for number, name in self.id2label.items()}
        known = {field.name for field in fields(self)}
        for name in set(vars(self)) - known:
            guess = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            if name in kwargs and guess:
                logger.warning(f"DSAConfig has no field '{name}'; did you mean '{guess[0]}'? It is kept but not used.")

    @property
    def is_classifier(self) -> bool:
        """Whether the model that was saved with this config has classes, and not vectors alone."""
        return any(name.startswith("DSAFor") for name in self.architectures or ())

    @property
    def classifier_input_size(self) -> int:
        """Width of what the classifier sees of a row."""
        size, heads = self.sentence_embedding_size, self.num_attention_heads
        if self.sentences_per_row == 1:
            return size
        cosines = 1 + heads if heads > 1 else 1
        return sum(cosines if name == "cosine" else size for name in self.pair_features)

    @property
    def encoded_size(self) -> int:
        """Width of an encoded word [d_c]."""
        return self.embedding_size if self.encoder == "none" else self.hidden_size

    @property
    def sentence_embedding_size(self) -> int:
        """Width of a sentence vector: m * d_o, or m * d_c for the poolings that sum the encoded words themselves."""
        projected = self.pooling in ("static", "dynamic")
        return self.num_attention_heads * (self.attention_head_size if projected else self.encoded_size)

    @property
    def projection_dim(self) -> int:
        """`sentence_embedding_size`, under the name by which sentence-transformers asks for it."""
        return self.sentence_embedding_size

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
        for name in _NOT_NEGATIVE:
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}.")
        for name in ("routing_scale", "negative_slope"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be a finite number, got {getattr(self, name)}.")
        if self.max_sentence_words is not None and self.max_sentence_words < 1:
            raise ValueError(f"max_sentence_words must be at least 1, or none, got {self.max_sentence_words}.")
        if not all(size >= 1 for size in self.classifier_hidden_sizes):
            raise ValueError(f"classifier_hidden_sizes must be positive, got {list(self.classifier_hidden_sizes)}.")

    def validate_pair_features(self) -> None:
        """A pair has features, all of them known."""
        unknown = [name for name in self.pair_features if name not in _PAIR_FEATURES]
        if unknown or not self.pair_features:
            what = f"'{unknown[0]}'" if unknown else "none"
            raise ValueError(f"pair_features must be some of {', '.join(_PAIR_FEATURES)}, got {what}.")

    def validate_encoder(self) -> None:
        """The encoder's widths and kernels fit together."""
        kernels = list(self.kernel_sizes)
        if self.encoder == "dense_cnn" and not (kernels and all(size >= 1 and size % 2 == 1 for size in kernels)):
            raise ValueError(f"kernel_sizes must be one or more odd numbers, got {kernels}.")
        if self.encoder == "kim_cnn":
            if not (kernels and all(size >= 1 for size in kernels)):
                raise ValueError(f"kernel_sizes must be one or more numbers from 1, got {kernels}.")
            if self.hidden_size % len(kernels):
                raise ValueError(
                    f"hidden_size is shared out over the {len(kernels)} kernel_sizes of encoder 'kim_cnn', and "
                    f"{self.hidden_size} cannot be."
                )
        if self.encoder == "bilstm" and self.hidden_size % 2:
            raise ValueError(f"hidden_size is both directions of encoder 'bilstm' and even, got {self.hidden_size}.")

    def validate_pooling(self) -> None:
        """The pooling fits its heads, the encoder and the kind of labels."""
        if self.pooling == "last" and self.encoder != "bilstm":
            raise ValueError(
                f"pooling 'last' takes the last states of encoder 'bilstm'; encoder '{self.encoder}' has no states."
            )
        if self.pooling in ("mean", "max", "last") and self.num_attention_heads != 1:
            raise ValueError(
                f"pooling '{self.pooling}' has no attention heads: leave num_attention_heads at 1, got "
                f"{self.num_attention_heads}."
            )
        pairwise = self.pooling in ("pairwise", "variational")
        if pairwise and self.latent == "sentence" and self.max_sentence_words is None:
            raise ValueError("latent 'sentence' has one weight a position: set max_sentence_words, the longest length.")
        if self.pooling == "variational":
            if self.problem_type not in (None, "single_label_classification"):
                raise ValueError(
                    "pooling 'variational' has a posterior that reads one class a row; problem_type "
                    f"'{self.problem_type}' has none."
                )
            if cast(int, self.num_labels) < 2:
                raise ValueError(
                    "pooling 'variational' has a posterior that reads one class a row: num_labels must be at least 2, "
                    f"got {self.num_labels}."
                )


__all__ = ["DSAConfig"]
