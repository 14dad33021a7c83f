"""Zero-shot classification by similarity: a text gets the label whose description lies nearest, by cosine.

It needs vectors alone, where transformers' "zero-shot-classification" needs a model of natural language inference.
"""

import itertools
from collections.abc import Iterable, Sequence, Sized
from typing import Any, cast

import numpy as np
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase
from transformers.utils import logging

from .batching_dsa import Vectors, check_ordered, softmax, unit_vectors
from .pipeline_dsa import SentenceEmbeddingPipeline
from .unknown_texts_dsa import told_unknown, unknown_texts

logger = logging.get_logger(__name__)

# Contrastive training in sentence-transformers multiplies cosines by 20 before its softmax.
TEMPERATURE = 0.05


class ZeroShotSimilarityPipeline(SentenceEmbeddingPipeline):
    """The nearest of some labels for each text, by the cosine of their vectors.

    `pipeline("zero-shot-similarity", model=..., trust_remote_code=True)(text, candidate_labels=["sports", "politics"])`
    returns what "zero-shot-classification" does: `sequence`, `labels` from the most to the least likely, and their
    `scores`; a list of that for a list of texts.
    """

    def __call__(
        self,
        inputs: Any,
        *args: Any,
        candidate_labels: str | Sequence[str],
        template: str = "{}",
        temperature: float = TEMPERATURE,
        **options: Any,
    ) -> Any:
        """Classify texts.

        A text of which the model knows no word, such as an empty one, has an answer, too, and a warning that it says
        nothing.

        Args:
            inputs: A text, a list or column of texts, or what gives texts one by one.
            *args: As for every pipeline.
            candidate_labels: Names or descriptions of the classes; in one string, commas stand between them.
            template: What makes a description of a label, which takes the place of its `{}`.
            temperature: The scores are the softmax of cosines over temperature: the lower, the surer.
            **options: `batch_size` and `num_workers`.

        Raises:
            ValueError: There are fewer than two labels, one is empty, given twice or without a word that the model
                knows, `template` has no `{}`, `temperature` is not above 0, one of a list of texts is no string, or
                they are a dict, a table or a set.
        """
        check_ordered(inputs)
        if isinstance(candidate_labels, str):
            candidate_labels = [label.strip() for label in candidate_labels.split(",") if label.strip()]
        labels, encode = list(candidate_labels), super().__call__
        descriptions, tokenizer = describe_labels(labels, template), cast(PreTrainedTokenizerBase, self.tokenizer)
        refuse_unknown_labels("The model", tokenizer, labels)
        described = np.array(encode(descriptions))  # (labels, m * d_o)

        def answer(text: str, vector: list[float]) -> dict[str, Any]:
            scores = label_probabilities(np.array([vector]), described, temperature)[0]  # (labels,)
            order = np.argsort(-scores, kind="stable").tolist()
            return {
                "sequence": text,
                "labels": [labels[index] for index in order],
                "scores": [float(scores[index]) for index in order],
            }

        def told_answer(text: str, vector: list[float]) -> dict[str, Any]:
            _tell_unknown(tokenizer, [text])
            return answer(text, vector)

        if isinstance(inputs, str):
            return told_answer(inputs, encode(inputs, *args, **options))
        if isinstance(inputs, Sized) and not isinstance(inputs, Dataset):
            inputs = list(cast(Iterable[str], inputs))
            vectors = encode(inputs, *args, **options)
            _tell_unknown(tokenizer, inputs)
            return list(map(answer, inputs, vectors))
        texts, copies = itertools.tee(inputs)
        options["num_workers"] = 0  # another process would read on in what both have of a file
        return map(told_answer, texts, encode((text for text in copies), *args, **options))  # a generator it knows


def describe_labels(labels: Sequence[str], template: str) -> list[str]:
    """The descriptions of labels.

    Args:
        labels: Names of classes.
        template: A text in which a label takes the place of `{}`.

    Raises:
        ValueError: There are fewer than two labels, one is empty or given twice, or the template has no `{}`.
    """
    names = {label.strip() if isinstance(label, str) else "" for label in labels}
    if len(labels) < 2 or len(names) < len(labels) or "" in names:
        given = ", ".join(map(repr, labels)) or "none"
        raise ValueError(f"The labels must be two or more different texts, not {given}.")
    if "{}" not in template:
        raise ValueError(f"The template {template!r} has no {{}}, where a label is to stand.")
    return [template.replace("{}", label) for label in labels]


def refuse_unknown_labels(source: str, tokenizer: PreTrainedTokenizerBase, labels: Sequence[str]) -> None:
    """Refuse a label of which a model knows no word, whose vector is that of any other such text.

    Args:
        source: What the model is called.
        tokenizer: Its tokenizer, one of the `tokenizers` library.
        labels: Without the template, whose words may all be known.

    Raises:
        ValueError: There is one.
    """
    unknown = unknown_texts(tokenizer, labels)
    if unknown:
        raise ValueError(f"{source} knows no word of the label {labels[unknown[0]]!r:.80}: give other words for it.")


def label_probabilities(vectors: Vectors, described: Vectors, temperature: float = TEMPERATURE) -> Vectors:
    """How likely each label is for each text: the softmax of cosines over temperature.

    Args:
        vectors: Of texts. (texts, m * d_o)
        described: Of the labels' descriptions. (labels, m * d_o)
        temperature: What the cosines are divided by.

    Returns:
        (texts, labels)

    Raises:
        ValueError: `temperature` is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}.")
    of_texts, of_labels = (unit_vectors(found.astype(np.float64)) for found in (vectors, described))
    return softmax(of_texts @ of_labels.T / temperature)


def _tell_unknown(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> None:
    if unknown := unknown_texts(tokenizer, texts):
        logger.warning(f"{told_unknown('The model', texts, unknown)}: its answers to them say nothing.")
