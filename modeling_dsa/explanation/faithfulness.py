"""Whether a model's attention explains its decisions: what becomes of them without the words it looks at most.

Comprehensiveness and sufficiency are those of ERASER (DeYoung et al. 2020, Section 4.2), with its shares of words and
the mean over them, as its code has it; deletion and insertion curves are those of Petsiuk et al. (2018). A share is
taken of the words of each text by itself, as attention sums to one there. A word that is deleted is not there for the
model: its neighbours become neighbours of each other.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import bootstrap
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Text
from modeling_dsa.configuration_dsa import DSAConfig
from modeling_dsa.modeling_dsa import DSAForSequenceClassification
from modeling_dsa.prediction.logits import logits_to_scores, score_function
from modeling_dsa.variational_dsa import prediction_samples

from .attention import require_attention
from .attribution import Decision, attribute, order_words
from .words import find_words

Numbers = npt.NDArray[np.float64]

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the words of a text: ERASER's bins
STEPS = 10  # of the curves, from no word to all words
RANDOM_ORDERS = 5
RANDOM = "random"
CONFIDENCE = 0.95
_RESAMPLES = 9999
_ROWS_AT_ONCE = 512  # versions of an example in one forward pass


@dataclass(frozen=True)
class MethodScores:
    """What one order of the words does to the probability of the predicted class, in each example.

    Attributes:
        comprehensiveness: How far it falls without the first words; large where they matter. (examples,)
        sufficiency: How far it falls with nothing but the first words; small where they are enough. (examples,)
        deletion: The probability while words are deleted, the first ones first. (examples, STEPS + 1)
        insertion: The probability while words are put in, the first ones first. (examples, STEPS + 1)
    """

    comprehensiveness: Numbers
    sufficiency: Numbers
    deletion: Numbers
    insertion: Numbers

    def metrics(self) -> dict[str, Numbers]:
        """The metrics of each example by name; the two areas are those under the curves. (examples,) each"""
        return {
            "comprehensiveness": self.comprehensiveness,
            "sufficiency": self.sufficiency,
            "deletion_area": _area(self.deletion),
            "insertion_area": _area(self.insertion),
        }


def _area(curves: Numbers) -> Numbers:
    """Under each curve, by trapezoids. (examples, STEPS + 1) -> (examples,)"""
    return np.asarray(np.trapezoid(curves, dx=1 / STEPS))


@dataclass(frozen=True)
class Estimate:
    """A mean over examples with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def check_model(model: PreTrainedModel) -> None:
    """Refuse a model that decides nothing, or that has no attention.

    Raises:
        ValueError: It is one.
    """
    config = cast(DSAConfig, model.config)
    decides = isinstance(model, DSAForSequenceClassification)
    if not decides or score_function(config) != "softmax":
        raise ValueError(
            f"{model.name_or_path} gives no classes, so there is no decision to explain: give a classifier."
        )
    require_attention(config)


def faithfulness(
    model: DSAForSequenceClassification, tokenizer: PreTrainedTokenizerBase, examples: Iterable[Text]
) -> dict[str, MethodScores]:
    """Delete words of examples in the order of each method, and at random.

    A variational model answers from its prior's mean. An example without words is left out.

    Args:
        model: A classifier with attention and one class an example.
        tokenizer: The model's.
        examples: Texts, or pairs for a model that reads pairs.

    Returns:
        The scores of each method: attention, gradient x input, integrated gradients, and random, which is the mean of
        five orders.

    Raises:
        ValueError: Fewer than two examples have words.
    """
    model.eval()
    random = np.random.default_rng(0)
    found: dict[str, list[MethodScores]] = {}
    with prediction_samples(0):
        for example in examples:
            inputs, texts = find_words(model.config, tokenizer, *([example] if isinstance(example, str) else example))
            if not any(text.tokens for text in texts):
                continue
            decision = attribute(model, inputs, texts)
            for method, scores in _score(model, decision, random).items():
                found.setdefault(method, []).append(scores)
    count = len(found.get(RANDOM, []))
    if count < 2:  # of one there is no interval, and a verdict needs it
        raise ValueError(f"Of the examples {count} have words that the model reads: give two or more such.")
    return {method: _together(scores) for method, scores in found.items()}


def estimate(values: Numbers) -> Estimate:
    """The mean of examples and its interval. (examples,)"""
    if len(values) < 2 or np.ptp(values) == 0:
        return Estimate(float(values.mean()), float(values.mean()), float(values.mean()))
    interval = bootstrap(
        (values,),
        np.mean,
        n_resamples=_RESAMPLES,
        batch=100,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Estimate(float(values.mean()), float(interval.low), float(interval.high))


def _together(scores: Sequence[MethodScores]) -> MethodScores:
    """Those of single examples as those of all; each field (...) -> (examples, ...)"""
    return MethodScores(*map(np.stack, zip(*map(_fields, scores), strict=True)))


def _score(
    model: DSAForSequenceClassification, decision: Decision, random: np.random.Generator
) -> dict[str, MethodScores]:
    """The scores of one example; each field has no dimension of examples yet."""
    lengths = [len(text.tokens) for text in decision.texts]
    orders = [(method, order_words(scores)) for method, scores in decision.attributions.items()]
    orders += [(RANDOM, [random.permutation(length) for length in lengths]) for _ in range(RANDOM_ORDERS)]
    masks = np.concatenate([_masks(decision, order) for _, order in orders])  # (orders * versions, tokens)
    probabilities = _probabilities(model, decision, masks).reshape(len(orders), -1)  # (orders, versions)
    by_method: dict[str, list[MethodScores]] = {}
    for (method, _), row in zip(orders, probabilities, strict=True):
        whole, without, alone, deletion, insertion = np.split(row, np.cumsum([1, len(SHARES), len(SHARES), STEPS + 1]))
        scores = MethodScores((whole - without).mean(), (whole - alone).mean(), deletion, insertion)
        by_method.setdefault(method, []).append(scores)
    return {
        method: MethodScores(*(np.mean(values, axis=0) for values in zip(*map(_fields, scores), strict=True)))
        for method, scores in by_method.items()
    }


def _fields(scores: MethodScores) -> tuple[Any, ...]:
    return tuple(getattr(scores, field.name) for field in fields(scores))


def _masks(decision: Decision, order: Sequence[np.ndarray]) -> np.ndarray:
    """Which tokens stay in each version of an example. (versions, tokens)

    All of them; without the first words by each share, and with these alone; deletion, and insertion.
    """

    def mask(counts: Iterator[int], deleted: bool) -> np.ndarray:
        stays = decision.inputs["attention_mask"][0].bool().numpy().copy()
        for text, words, count in zip(decision.texts, order, counts, strict=True):
            for word in words[:count] if deleted else words[count:]:
                stays[text.tokens[word]] = False
        return stays

    def shares(share: float) -> Iterator[int]:
        return (math.ceil(share * len(words)) for words in order)

    def steps(step: int) -> Iterator[int]:
        return ((step * len(words) + STEPS // 2) // STEPS for words in order)  # halves are rounded up

    return np.stack(
        [
            mask(steps(0), True),
            *(mask(shares(share), True) for share in SHARES),
            *(mask(shares(share), False) for share in SHARES),
            *(mask(steps(step), True) for step in range(STEPS + 1)),
            *(mask(steps(step), False) for step in range(STEPS + 1)),
        ]
    )


@torch.inference_mode()
def _probabilities(model: DSAForSequenceClassification, decision: Decision, masks: np.ndarray) -> Numbers:
    """The probability of the predicted class in each version. (versions, tokens) -> (versions,)"""
    distinct, copy_of = np.unique(masks, axis=0, return_inverse=True)
    found = []
    for part in torch.from_numpy(distinct).long().split(_ROWS_AT_ONCE):
        others = {name: decision.inputs[name].expand(len(part), -1) for name in ("input_ids", "token_type_ids")}
        logits = model(**others, attention_mask=part).logits  # (versions, num_labels)
        found.append(logits_to_scores(logits.double().numpy(), "softmax")[:, decision.label])
    return np.concatenate(found)[copy_of.reshape(-1)]
