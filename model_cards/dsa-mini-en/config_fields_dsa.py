"""The fields of the family's config: each declared once, with its help, its bounds, its size and its default.

What an encoder or a pooling makes of them is said by its class; `configuration_dsa.DSAConfig` asks it.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from .compatibility_dsa import PreTrainedConfig, strict
from .options_dsa import (
    COUNT,
    COUNT_OR_NONE,
    COUNTS,
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    RATE,
    check_bounds,
    option,
)

OVERLAPS = ("overlap", "idf_overlap")  # what compares the tokens of two texts, and not their vectors
PAIR_FEATURES = ("first", "second", "difference", "signed_difference", "product", "cosine", "gated", *OVERLAPS)


class Size(NamedTuple):
    """How large the number of a field, or each number of its list, may make a model that a config asks for.

    Attributes:
        most: The highest that anybody computes with.
        weight: Of it and the config: numbers in a weight that has it as a side.
    """

    most: int = 2**31 - 1  # torch counts with these
    weight: Callable[[int, "DSAConfigFields"], int] = lambda *_: 0


ANY_SIZE = Size()
ROWS = Size(weight=lambda rows, config: rows * config.embedding_size)
WIDTH = Size(weight=lambda width, _: width**2)
POSITIONS = Size(
    weight=lambda positions, config: (
        positions * config.num_attention_heads * config.latent_size if config.latent == "sentence" else 0
    )
)
KERNEL = Size(most=10_000)
REPEATS = Size(most=10_000)  # heads, iterations or samples: each is an object of Python
LAYERS = Size(most=1_000)  # making ten thousand takes a minute


@strict
class DSAConfigFields(PreTrainedConfig):
    """The fields of [`DSAConfig`], which encoders, poolings and layers read. The papers' symbols stand in brackets."""

    vocab_size: int = option(30000, "Rows of the word table.", COUNT, size=ROWS)
    pad_token_id: int | None = 0
    sep_token_id: int | None = 2
    tie_word_embeddings: bool = False

    embedding_size: int = option(300, "Width of a word vector [d_0].", COUNT, size=WIDTH)
    freeze_embeddings: bool = option(
        True, "Keep the word table out of training (also after `from_pretrained` and a resize)."
    )
    unknown_init_range: float | int = option(
        0.005, "Tokens without a pre-trained word vector are drawn from U(-a, a) [a].", NOT_NEGATIVE
    )
    embedding_dropout: float | int = option(0.3, "Dropout rate on the word vectors.", RATE)
    token_dropout: float | int = option(
        0.0,
        "Rate at which tokens of the vocabulary are left out of a training batch, wherever they stand in it; an "
        "overlap in `pair_features` reads them.",
        RATE,
    )
    max_sentence_tokens: int | None = option(
        None,
        "Tokens of a sentence that the model reads, from its first; None reads all.",
        COUNT_OR_NONE,
        size=POSITIONS,
    )

    encoder: str = option(
        "dense_cnn", "Name of the encoder, a key of `encoders_dsa.ENCODERS`, which says what each is."
    )
    hidden_size: int = option(
        300,
        "Width of an encoded token [d_c]: both directions (2u for a BiLSTM), all feature maps of Kim's CNN. With "
        'encoder "none" it is `embedding_size`, and this field is not read.',
        COUNT,
        size=WIDTH,
    )
    hidden_dropout: float | int = option(0.2, "Dropout rate in every layer of the encoder.", RATE)
    kernel_sizes: list[int] | tuple[int, ...] = option(
        (3, 5),
        "Kernel size of each densely connected branch [k_1, k_2], odd numbers; or those of Kim's CNN.",
        size=KERNEL,
    )
    num_hidden_layers: int = option(
        4,
        "Dense layers of a branch after its first layer (so the paper counts L = 4); layers of "
        "any other encoder with layers.",
        COUNT,
        size=LAYERS,
    )
    first_layer_size: int = option(
        150, "Channels of a dense branch's first layer, whose kernel is 1 [d_1].", COUNT, size=WIDTH
    )
    growth_size: int = option(75, "Channels of each dense layer [d_l].", COUNT, size=WIDTH)
    encoder_attention_heads: int = option(5, 'Heads in each direction of encoder "distance" [h].', COUNT, size=REPEATS)
    distance_weight: float | int = option(
        1.5, 'Encoder "distance": what a score loses for each token between two [alpha].', NOT_NEGATIVE
    )
    feedforward_size: int = option(
        1200, 'Width inside the feed-forward network of encoder "distance" [d_ff].', COUNT, size=WIDTH
    )
    normalize_tokens: bool = option(True, "L2-normalise every encoded token x_i^c.")
    token_norm: float | int = option(
        1.0, "Length of a normalised token (1 in the paper). It sets the scale that enters the pooling.", POSITIVE
    )

    pooling: str = option("dynamic", "Name of the pooling, a key of `poolings_dsa.POOLINGS`, which says what each is.")
    num_attention_heads: int = option(
        1, "Attentions over one sentence [m; hops r of structured self-attention].", COUNT, size=REPEATS
    )
    attention_head_size: int = option(
        600,
        "Width of one attention's output, dynamic and static; of both directions of reinforced [d_o].",
        COUNT,
        size=WIDTH,
    )
    routing_iterations: int = option(2, "Iterations of dynamic self-attention [r].", COUNT, size=REPEATS)
    routing_scale: float | int = option(
        1.0, "Factor on the agreement x_hat . z before it is added to the logits q (1 in the paper).", FINITE
    )
    attention_hidden_size: int = option(
        600,
        "Width inside the attention: of tanh(W x) in static (Eq. 1) and structured self-attention [d_v, "
        "d_a], of pi in pairwise and variational self-attention, of what scores a token in reinforced self-attention.",
        COUNT,
        size=WIDTH,
    )
    attention_penalty: float | int = option(
        0.0, "Structured self-attention: coefficient of ||A A^T - I||_F^2 in the loss (0.3 in its paper).", NOT_NEGATIVE
    )
    soft_attention_steps: int = option(
        0, "Reinforced self-attention: training batches in which all tokens are chosen, from the first.", NOT_NEGATIVE
    )
    choice_penalty: float | int = option(
        0.02, "Reinforced self-attention: what choosing all tokens adds to a choice's cost [lambda].", NOT_NEGATIVE
    )
    tree_size: int = option(600, 'Width of a node of pooling "gumbel_tree" [D_h].', COUNT, size=WIDTH)
    gumbel_temperature: float | int = option(
        1.0, 'Temperature of the Gumbel-softmax of pooling "gumbel_tree".', POSITIVE
    )
    latent: Literal["token", "sentence"] = option(
        "token",
        'What has a latent variable z: each "token", or each "sentence" (the paper\'s wording taken '
        "literally: W_z has one row for each position, so sentences need a longest length, `max_sentence_tokens`).",
    )
    latent_size: int = option(100, "Width of z.", COUNT, size=WIDTH)
    kl_weight: float | int = option(
        1.0, "Factor on KL(q || p) in the loss; 1 is the evidence lower bound.", NOT_NEGATIVE
    )
    kl_warmup_steps: int = option(0, "Training batches in which that factor rises from 0.", NOT_NEGATIVE)
    num_training_samples: int = option(
        1, "Samples of the posterior for each sentence in training [L].", COUNT, size=REPEATS
    )
    num_prediction_samples: int = option(
        0, "Samples of the prior at prediction; 0 takes its mean instead.", NOT_NEGATIVE, size=REPEATS
    )

    projection_size: int | None = option(
        None,
        "Width of the sentence vector behind a linear layer without bias; None leaves the layer out, and the vector is "
        "the pooling's.",
        COUNT_OR_NONE,
        size=WIDTH,
    )
    word_shortcut: bool = option(
        False,
        "Add to the projected vector a linear map of a weighted mean of the sentence's word vectors, whose weights are "
        "the softmax of a learnt linear score of each word vector. It needs `projection_size`.",
    )

    sentences_per_example: Literal[1, 2] = option(1, "1 for a classifier of sentences, 2 for one of pairs.")
    pair_features: list[str] | tuple[str, ...] = option(
        ("first", "second", "difference", "product"),
        'What the classifier sees of a pair [p, h], in this order: "first" (p), "second" (h), '
        '"difference" (|p - h|), "product" (p * h) (these four are heuristic matching), "signed_difference" '
        '(p - h), "cosine" (of p and h as a whole and, with several heads and no projection, of each head\'s part of '
        'them), "gated" (a gated encoder: the product of two linear maps, of each head\'s part of p and of h), '
        '"overlap" (how much of each text stands in the other: the five numbers of `overlap_dsa.TokenOverlap`) or '
        '"idf_overlap" (the same, tokens weighing more that stand in few of the texts which the training scripts '
        "count).",
    )
    gated_size: int = option(600, 'Width of the feature "gated" for each head.', COUNT, size=WIDTH)
    classifier_hidden_sizes: list[int] | tuple[int, ...] = option(
        (300, 300), "Widths of the classifier's hidden layers.", COUNTS, size=WIDTH
    )
    classifier_dropout: float | int = option(
        0.3,
        "Dropout rate on the input of each hidden layer of the classifier; without any, on that of its last layer.",
        RATE,
    )
    classifier_batch_norm: bool = option(
        True, "Batch normalisation of the input of each hidden layer of the classifier."
    )
    classifier_highway: bool = option(
        False, "A highway layer, as wide as the last hidden layer of the classifier, behind it."
    )
    batch_norm_eps: float | int = option(
        1e-5, "What the classifier's batch normalisation adds to a variance.", POSITIVE
    )

    negative_slope: float | int = option(
        0.01, "Slope of every LeakyReLU below zero; 0 makes it a ReLU, 1 leaves it out.", FINITE
    )
    initializer_scaling: Literal["keep_prob", "dropout_rate", "none"] = option(
        "keep_prob",
        "The He initialisation of a layer is multiplied by the square root of its keep probability "
        '("keep_prob"), of its dropout rate ("dropout_rate", the paper\'s wording taken literally) or by '
        '1 ("none"). A layer without dropout is never scaled.',
    )
    deduplicate_sentences: bool = option(
        True,
        "Encode a sentence that stands several times in a batch once. In training its copies then share one "
        "dropout mask, and those with one label share the samples of their latent variables.",
    )
    fold_embeddings: bool = option(
        False, "`from_pretrained` calls `fold_embeddings()`, which makes prediction faster and takes memory."
    )

    def validate_bounds(self) -> None:
        """Every field lies within its bounds."""
        check_bounds(self)

    def validate_projection(self) -> None:
        """The shortcut leads to the projected vector."""
        if self.word_shortcut and self.projection_size is None:
            raise ValueError("word_shortcut adds to the projected sentence vector: set projection_size, its width.")

    def validate_classifier(self) -> None:
        """A highway layer is as wide as the hidden layer before it."""
        if self.classifier_highway and not self.classifier_hidden_sizes:
            raise ValueError("classifier_highway is as wide as the last of classifier_hidden_sizes: there is none.")

    def validate_pair_features(self) -> None:
        """A pair has features, all of them known."""
        unknown = [name for name in self.pair_features if name not in PAIR_FEATURES]
        if unknown or not self.pair_features:
            what = f"'{unknown[0]}'" if unknown else "none"
            raise ValueError(f"pair_features must be some of {', '.join(PAIR_FEATURES)}, got {what}.")
        if set(OVERLAPS) <= set(self.pair_features):
            raise ValueError(f"pair_features {' and '.join(OVERLAPS)} compare the same tokens: name one of them.")
        if "gated" in self.pair_features and self.projection_size is not None:
            raise ValueError("pair_features 'gated' reads each head's part of a vector, which a projection mixes.")
