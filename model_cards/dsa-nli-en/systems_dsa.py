"""What config, model and model card ask of an encoder's or a pooling's class. `config.encoder` and `.pooling` name it.

To add one, subclass, say its `description`, implement `__init__` and `forward`, and enter the class in `ENCODERS` or
`POOLINGS`.
"""

from typing import ClassVar, Protocol, cast, runtime_checkable

from torch import Tensor, nn

from .config_fields_dsa import DSAConfigFields
from .packing_dsa import Packing
from .pooled_dsa import Pooled


class Encoder(nn.Module):
    """Packed word vectors in, packed encoded tokens out.

    Attributes:
        description: What a token is encoded by, for the model card.
        own_fields: Fields of the config that it reads, of those that some encoders and poolings do not.
        can_fold: Whether [`FoldedDenseCNN`] can stand for it.
        has_states: Whether an encoded token is a state of both directions of a recurrent network.
        takes_rectangle_packing: Whether an ONNX file may give it, or its form there, its own [`RectanglePacking`].
    """

    description: ClassVar[str]
    own_fields: ClassVar[frozenset[str]] = frozenset({"hidden_size", "hidden_dropout", "num_hidden_layers"})
    can_fold: ClassVar[bool] = False
    has_states: ClassVar[bool] = False
    takes_rectangle_packing: ClassVar[bool] = False

    def __init__(self, config: DSAConfigFields) -> None:
        super().__init__()

    def forward(self, tokens: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        """Encode tokens.

        Args:
            tokens: Word vectors, (N, d_0).
            packing: Which of them make a sentence: no layer sees across two.
            output_hidden_states: Return what intermediate layers give, too.

        Returns:
            The encoded tokens, (N, d_c), and those of intermediate layers, each (N, its width).
        """
        raise NotImplementedError

    @classmethod
    def output_size(cls, config: DSAConfigFields) -> int:
        """Width of an encoded token [d_c]."""
        return config.hidden_size

    @classmethod
    def validate(cls, config: DSAConfigFields) -> None:
        """Refuse fields that do not fit this encoder.

        Raises:
            ValueError: Says which and why.
        """


class Pooling(nn.Module):
    """Packed encoded tokens in, one vector a sentence out.

    Attributes:
        description: What a sentence's vector is, for the model card.
        own_fields: Fields of the config that it reads, of those that some encoders and poolings do not.
        has_latent: Whether its attention comes from a latent variable, so that `config.latent` counts.
        has_samples: Whether it can draw that variable, `num_prediction_samples` times at prediction.
        learns_from_classes: Whether a part of it is trained only where it is given the class of each example.
        has_heads: Whether it has attention heads.
        has_attention: Whether it says how much of each token a vector takes.
        attention_is_extra: Whether that is computed for who asks, and the vector is not made of it.
        is_routed: Whether it has attention weights of each routing iteration, over what its `projection` gives.
        needs_states: Whether it takes the states of a recurrent encoder.
        is_unrolled: Whether its steps are as many as the longest sentence has tokens, so that no graph holds them.
        takes_rectangle_packing: Whether an ONNX file may give it, or its form there, its own [`RectanglePacking`].
    """

    description: ClassVar[str]
    own_fields: ClassVar[frozenset[str]] = frozenset()
    has_latent: ClassVar[bool] = False
    has_samples: ClassVar[bool] = False
    learns_from_classes: ClassVar[bool] = False
    has_heads: ClassVar[bool] = True
    has_attention: ClassVar[bool] = True
    attention_is_extra: ClassVar[bool] = False
    is_routed: ClassVar[bool] = False
    needs_states: ClassVar[bool] = False
    is_unrolled: ClassVar[bool] = False
    takes_rectangle_packing: ClassVar[bool] = False

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__()

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """Make vectors.

        Args:
            tokens: Encoded tokens, (N, d_c).
            packing: Which of them make a sentence.
            classes: The class of each example where the model is told them, (B,).
        """
        raise NotImplementedError

    @classmethod
    def output_size(cls, config: DSAConfigFields, in_size: int) -> int:
        """Width of a sentence vector, of encoded tokens of width `in_size` [d_c]: m * d_c, a sum of them a head."""
        return config.num_attention_heads * in_size

    @classmethod
    def validate(cls, config: DSAConfigFields, encoder: type[Encoder]) -> None:
        """Refuse an encoder or fields that do not fit this pooling.

        Raises:
            ValueError: Says which and why.
        """
        if cls.needs_states and not encoder.has_states:
            raise ValueError(
                f"pooling '{config.pooling}' takes the last states of a recurrent encoder, such as 'bilstm'; encoder "
                f"'{config.encoder}' has no states."
            )
        if not cls.has_heads and config.num_attention_heads != 1:
            raise ValueError(
                f"pooling '{config.pooling}' has no attention heads: leave num_attention_heads at 1, got "
                f"{config.num_attention_heads}."
            )


@runtime_checkable
class WithStartValues(Protocol):
    """A module, such as a pooling or a part of one, whose weights do not all start as those of any model."""

    def init_own_weights(self) -> None:
        """Give the module's own parameters and buffers, and layers that start otherwise, their values.

        The model calls it when the layers below have theirs; transformers leaves out a module that has neither
        parameters nor buffers of its own. The functions of `compatibility_dsa.init` keep what was loaded.
        """


def refuse_odd_size(config: DSAConfigFields) -> None:
    """Both directions of an encoder are equally wide.

    Raises:
        ValueError: They cannot be.
    """
    if config.hidden_size % 2:
        raise ValueError(
            f"hidden_size is both directions of encoder '{config.encoder}' and even, got {config.hidden_size}."
        )


def refuse_other_labels(config: DSAConfigFields, reason: str) -> None:
    """An example has one class of several.

    Args:
        config: Its labels.
        reason: Why a pooling needs one.

    Raises:
        ValueError: It has none.
    """
    if config.problem_type not in (None, "single_label_classification"):
        raise ValueError(f"{reason}; problem_type '{config.problem_type}' has none.")
    if cast(int, config.num_labels) < 2:
        raise ValueError(f"{reason}: num_labels must be at least 2, got {config.num_labels}.")


__all__ = ["Encoder", "Pooling", "WithStartValues", "refuse_odd_size", "refuse_other_labels"]
