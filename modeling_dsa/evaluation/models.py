"""Models to evaluate: of this family, or any of sentence-transformers to compare with."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from modeling_dsa.batching_dsa import Text, Vectors
from modeling_dsa.command.device import default_device
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.encoding.finite import check_finite
from modeling_dsa.encoding.sentence_transformers_files import steps_of_sentence_transformers
from modeling_dsa.encoding.teacher import load_teacher
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.model_folder import OtherFamilyError, find_file, read_config
from modeling_dsa.modeling_dsa import DSAForSequenceClassification
from modeling_dsa.prediction.logits import score_function
from modeling_dsa.prediction.scores import label_scores
from modeling_dsa.prediction.unread_texts import warn_of_unread

from .similarity import Encode

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Classifier:
    """A model that gives each text, or pair of texts, one class.

    Attributes:
        class_names: By index.
        pairs: Whether it reads pairs.
        classify: The index of the class of each text. (texts,)
    """

    class_names: list[str]
    pairs: bool
    classify: Callable[[Sequence[Text]], Vectors]


@dataclass(frozen=True)
class EvaluatedModel:
    """What an evaluation asks.

    Attributes:
        encode: Gives the vectors of sentences. (sentences, numbers)
        library: What computes: "dsa-transformers" or "sentence-transformers".
        warn_of_unread: Warns of texts or pairs of which it knows no word or does not read the end, with what it is
            called and them; of a model of another family nobody says it.
        classifier: Where the model is one.
    """

    encode: Encode
    library: str
    warn_of_unread: Callable[[str, Sequence[Text]], None]
    classifier: Classifier | None = None


def open_model(source: str) -> EvaluatedModel:
    """Load a model, ready to compute: on a GPU where there is one.

    Args:
        source: Folder or Hub id of a model of this family, or of sentence-transformers.

    Raises:
        OSError: There is no such model.
        ValueError: It cannot be loaded, or sentence-transformers is not installed.
    """
    if not _is_of_family(source):
        return EvaluatedModel(_finite(_by_sentence_transformers(source)), "sentence-transformers", lambda *_: None)
    model, tokenizer = load_model_and_tokenizer(source)
    model.to(default_device())  # type: ignore[arg-type]  # a wrapper hides the signature
    encode: Encode = SentenceEncoder(model, tokenizer).encode
    library = "dsa-transformers"
    if steps := steps_of_sentence_transformers(source):
        logger.warning(
            f"{source}: sentence-transformers {' and '.join(steps)}, as its files there say: it computes the vectors."
        )
        encode, library = _by_sentence_transformers(source), "sentence-transformers"
    config = model.config
    classifier = None
    if config.is_classifier and score_function(config) == "softmax":
        head = cast(DSAForSequenceClassification, model)
        classifier = Classifier(
            config.class_names,
            config.sentences_per_example == 2,
            lambda texts: label_scores(head, tokenizer, texts).argmax(axis=1),
        )
    return EvaluatedModel(
        _finite(encode), library, lambda name, texts: warn_of_unread(name, config, tokenizer, texts), classifier
    )


def _by_sentence_transformers(source: str) -> Encode:
    teacher = load_teacher(source)
    return lambda texts: teacher.encode(texts, convert_to_numpy=True)


def _is_of_family(source: str) -> bool:
    try:
        read_config(source)
    except FileNotFoundError:
        if find_file(source, "modules.json") is None:  # as sentence-transformers saves every model
            raise
        return False
    except OtherFamilyError:
        return False
    return True


def _finite(encode: Encode) -> Encode:
    """Vectors that are numbers: NaN would pass for a correlation of zero."""

    def checked(texts: list[str]) -> Vectors:
        vectors = encode(texts)
        check_finite(vectors, texts)
        return vectors

    return checked
