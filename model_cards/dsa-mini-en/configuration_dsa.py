"""Configuration of the DSA model family: one config for every encoder and every pooling."""

import difflib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from transformers.utils import logging

from .compatibility_dsa import strict
from .config_fields_dsa import OVERLAPS, DSAConfigFields
from .options_dsa import option_help
from .overlap_dsa import TokenOverlap
from .systems_dsa import Encoder, Pooling

if TYPE_CHECKING:
    # Not used here: transformers 4.57 loads this file from a folder with those alone that it imports itself.
    from .convolution_dsa import convolve  # noqa: F401
    from .directional_dsa import DirectionalEncoder  # noqa: F401
    from .layers_dsa import dropout  # noqa: F401
    from .packing_dsa import Packing  # noqa: F401
    from .pairwise_dsa import PairwiseSelfAttention  # noqa: F401
    from .pooled_dsa import Pooled  # noqa: F401
    from .reinforced_dsa import ReinforcedSelfAttention  # noqa: F401
    from .shortcut_dsa import WordShortcut  # noqa: F401
    from .tree_dsa import GumbelTreeLSTM  # noqa: F401
    from .variational_dsa import PairwisePooling  # noqa: F401
    from .windows_dsa import Windows  # noqa: F401

_CLASSIFIERS = ("DSAForNLI", "DSAForSequenceClassification")

logger = logging.get_logger(__name__)


def _systems() -> tuple[dict[str, type[Encoder]], dict[str, type[Pooling]]]:
    """What knows the encoders and the poolings by their names."""
    # Not above: transformers imports this file half way through its own modules, of which these two need some more.
    from .encoders_dsa import ENCODERS
    from .poolings_dsa import POOLINGS

    return ENCODERS, POOLINGS


@strict
class DSAConfig(DSAConfigFields):
    r"""Configuration of [`DSAModel`] and its heads: word vectors -> encoder -> pooling (-> projection) -> sentence
    vector.

    The defaults are *single DSA on SNLI* of Yoon, Lee and Lee, "Dynamic Self-Attention: Computing Attention over Words
    Dynamically for Sentence Embedding" (2018). Every encoder goes with every pooling, unless the reason that the error
    gives forbids it. The papers' symbols stand in brackets.

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
        "shortcut_attention",
    ]

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """As in transformers; of `id2label` and `label2id` one is enough, and the other follows it.

        Where another number of labels is given, the saved `problem_type` is that of the old ones, and does not count.
        """
        # All at once, as they are checked against each other.
        names = [name for name in ("id2label", "label2id", "problem_type") if kwargs.get(name) is not None]
        given = {name: kwargs.pop(name) for name in names}
        count = kwargs.get("num_labels") or len(given.get("id2label") or given.get("label2id") or ())
        named = len(config_dict.get("id2label") or config_dict.get("label2id") or ())
        if count not in (0, named or config_dict.get("num_labels") or len(cls().class_names)):
            config_dict = config_dict | {"problem_type": None}
        if "id2label" in given or "label2id" in given:
            config_dict = config_dict | {"id2label": None, "label2id": None}
        return super().from_dict(config_dict | given, **kwargs)

    def __post_init__(self, **kwargs: Any) -> None:
        """Complete what names architectures and classes, and warn of keys that look like a misspelt field."""
        if self.id2label is None and self.label2id:
            self.id2label = {int(number): name for name, number in self.label2id.items()}
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
        return any(name in _CLASSIFIERS for name in self.architectures or ())

    @property
    def class_names(self) -> list[str]:
        """The names of the classes, by index."""
        return [str(name) for _, name in sorted((self.id2label or {}).items())]

    @property
    def classifier_input_size(self) -> int:
        """Width of what the classifier sees of an example."""
        size = self.sentence_embedding_size
        if self.sentences_per_example == 1:
            return size
        sizes = {
            "cosine": 1 + self.compared_heads,
            "gated": self.num_attention_heads * self.gated_size,
            **dict.fromkeys(OVERLAPS, TokenOverlap.size),
        }
        return sum(sizes.get(name, size) for name in self.pair_features)

    @property
    def compares_tokens(self) -> bool:
        """Whether the classifier sees which tokens two texts share, and not their vectors alone."""
        return self.sentences_per_example == 2 and not set(OVERLAPS).isdisjoint(self.pair_features)

    @property
    def compared_heads(self) -> int:
        """Heads whose own parts of two vectors the feature "cosine" compares; 0 where parts are no heads'."""
        return self.num_attention_heads if self.num_attention_heads > 1 and self.projection_size is None else 0

    @property
    def encoded_size(self) -> int:
        """Width of an encoded token [d_c]."""
        encoders, _ = _systems()
        return encoders[self.encoder].output_size(self)

    @property
    def pooled_size(self) -> int:
        """Width of what the pooling gives: m * d_o, or m * d_c where it sums the encoded tokens themselves."""
        _, poolings = _systems()
        return poolings[self.pooling].output_size(self, self.encoded_size)

    @property
    def sentence_embedding_size(self) -> int:
        """Width of a sentence vector: `projection_size` or, without one, `pooled_size`."""
        return self.pooled_size if self.projection_size is None else self.projection_size

    @property
    def projection_dim(self) -> int:
        """`sentence_embedding_size`, under the name by which sentence-transformers asks for it."""
        return self.sentence_embedding_size

    def validate_encoder(self) -> None:
        """There is such an encoder, and its own demands are met."""
        encoders, _ = _systems()
        if self.encoder not in encoders:
            raise ValueError(f"'encoder' expected one of {tuple(encoders)}, got {self.encoder}")
        encoder = encoders[self.encoder]
        encoder.validate(self)
        if self.fold_embeddings and not encoder.can_fold:
            raise ValueError(f"fold_embeddings: encoder '{self.encoder}' cannot be folded; leave it at false.")

    def validate_labels(self) -> None:
        """Every class has a name of its own; an answer by names would lose one otherwise."""
        names = dict(self.id2label or {})
        if not names or sorted(map(int, names)) != list(range(len(names))):
            raise ValueError("id2label must have the keys 0, 1, 2 and so on.")
        if not all(isinstance(name, str) for name in names.values()) or len(set(names.values())) < len(names):
            raise ValueError("id2label must have a text of its own for every class.")

    def validate_pooling(self) -> None:
        """There is such a pooling, and it fits its heads, the encoder and the kind of labels."""
        encoders, poolings = _systems()
        if self.pooling not in poolings:
            raise ValueError(f"'pooling' expected one of {tuple(poolings)}, got {self.pooling}")
        if self.encoder in encoders:
            poolings[self.pooling].validate(self, encoders[self.encoder])


if DSAConfig.__doc__:  # python -OO has none
    DSAConfig.__doc__ += "\n    Args:\n" + "".join(
        f"        {name}: {text}\n" for name, text in option_help(DSAConfig).items()
    )

__all__ = ["DSAConfig"]
