"""Where a model looks in a text: the attention weights of the words that it reads, and its logits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.configuration_dsa import DSAConfig
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.prediction.logits import ScoreFunction, logits_to_scores, score_function
from modeling_dsa.variational_dsa import prediction_samples

from .words import find_words

Weights: TypeAlias = npt.NDArray[np.float32]

SHORTCUT = "shortcut"  # what the row of the words' own weights is called
UNKNOWN_MARK, UNKNOWN = "*", "not in the vocabulary"  # behind a word's weight, and what it means


def require_attention(config: PreTrainedConfig) -> None:
    """Refuse a model that does not say how much of each token a vector takes.

    Raises:
        ValueError: It does not.
    """
    if not POOLINGS[config.pooling].has_attention:
        raise ValueError(f"Pooling '{config.pooling}' has no attention over the tokens: give another model.")


@dataclass(frozen=True)
class TextAttention:
    """A text as a model reads it.

    Attributes:
        text: The text; half of a UTF-16 surrogate pair is U+FFFD in it.
        offsets: Start and end in `text` of each word that is read, in characters: separators are not, nor what stands
            behind `config.max_sentence_tokens`. The pieces of a word are one. (words,)
        known: Whether all of each word is in the vocabulary. (words,)
        weights: Attention weights, the sum of those of a word's pieces; 0 iterations where the pooling has none.
            (iterations, heads, words)
        left_out: How many tokens stand behind `config.max_sentence_tokens`.
        samples: The weights of the last iteration under samples of a variational model's latent variable; 0 samples
            where none were asked for. (samples, heads, words)
        shortcut: With `config.word_shortcut`: how much of each word goes past encoder and pooling. (words,)
    """

    text: str
    offsets: list[tuple[int, int]]
    known: list[bool]
    weights: Weights
    left_out: int
    samples: Weights
    shortcut: Weights | None = None

    @property
    def words(self) -> list[str]:
        """The words as they were typed."""
        return [self.text[start:end] for start, end in self.offsets]

    @property
    def cut(self) -> str:
        """What to say of tokens that are not read; nothing where all are."""
        return f"{self.left_out:,} more tokens are not read" if self.left_out else ""

    def rows(self, iteration: int) -> "list[AttentionRow]":
        """Where the model looks in one iteration: all heads together, where there are several, and each of them.

        Together the heads have their sum divided by their number, so that it sums to one like the rest (Lin et al.
        2017, Section 4.4). Heads that all look alike, as in the first routing iteration, have one row. What goes past
        encoder and pooling, and so past all iterations, is the last row.

        Args:
            iteration: Counted from 0.
        """
        past = []
        if self.shortcut is not None:  # which no sample changes
            spread = np.zeros_like(self.shortcut) if len(self.samples) > 1 else None
            past.append(AttentionRow(SHORTCUT, self.shortcut, spread))
        heads = self.weights[iteration]  # (heads, words)
        if len(heads) == 1:
            return [self.row(iteration, 0), *past]
        together = AttentionRow("all heads", heads.mean(0), _spread(self.samples.mean(1)))
        if (heads == heads[0]).all():
            return [together, *past]
        return [together, *(self.row(iteration, head) for head in range(len(heads))), *past]

    @property
    def largest(self) -> float:
        """The largest weight of all rows."""
        past = 0.0 if self.shortcut is None else float(self.shortcut.max(initial=0.0))
        return max(float(self.weights.max(initial=0.0)), past)

    def row(self, iteration: int, head: int) -> "AttentionRow":
        """Where one head looks.

        Args:
            iteration: Counted from 0.
            head: Counted from 0.
        """
        return AttentionRow(f"head {head + 1}", self.weights[iteration, head], _spread(self.samples[:, head]))


@dataclass(frozen=True)
class AttentionRow:
    """The weights of a text's words in one iteration.

    Attributes:
        name: Whose they are, such as `head 1`.
        weights: They sum to one; of a text that holds a pair, those of each sentence do. (words,)
        spread: Their standard deviation over the samples of a variational model, where there are any. (words,)
    """

    name: str
    weights: Weights
    spread: Weights | None


def decimals(largest: float) -> int:
    """How many decimals tell weights apart, by the largest of them: many words share little each."""
    return 2 if largest > 0.1 else 3


def _spread(samples: Weights) -> Weights | None:
    """(samples, words) -> (words,)"""
    return samples.std(0, ddof=1) if len(samples) > 1 else None


@dataclass(frozen=True)
class LabelScores:
    """What a classifier says of a text or pair.

    Attributes:
        class_names: By index. (num_labels,)
        values: Their probabilities, or the numbers of a regression. (num_labels,)
        function: What made `values` of the logits.
    """

    class_names: list[str]
    values: npt.NDArray[Any]
    function: ScoreFunction

    def shown(self) -> list[tuple[str, str]]:
        """Each label with its value as people read it, the largest first: a probability, or a regression's number."""
        format_ = ".3g" if self.function == "none" else ".1%"
        order = (-self.values).argsort()
        return [(self.class_names[index], format(float(self.values[index]), format_)) for index in order]

    @property
    def decision(self) -> str:
        """The label with the largest value, and that; of a regression with one number, that alone."""
        label, value = self.shown()[0]
        return value if self.function == "none" and len(self.class_names) == 1 else f"{label} {value}"


def read_attention(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    text_pair: str | None = None,
    *,
    samples: int = 0,
) -> tuple[list[TextAttention], LabelScores | None]:
    """Run a model on a text or pair, without dropout; it stays in training mode if it was.

    Args:
        model: An encoder or a classifier of this family.
        tokenizer: The model's.
        text: The text, or the first of a pair. Written as `A [SEP] B` one text can hold a pair.
        text_pair: The second text of a pair.
        samples: How many samples of its latent variable to draw from a variational model, the same ones each time;
            any other model has none.

    Returns:
        The one or two texts, and the scores of a classifier.
    """
    texts = [part for part in (text, text_pair) if part is not None]
    inputs, found = find_words(model.config, tokenizer, *texts)
    outputs, sampled = _run(model, {name: tensor.to(model.device) for name, tensor in inputs.items()}, samples)
    tokens = inputs["input_ids"].shape[1]
    weights = _as_array(outputs.attentions, tokens)  # (iterations, heads, tokens)
    weight_samples = _as_array(sampled, tokens) if sampled else weights[:0]  # (samples, heads, tokens)
    past = outputs.get("shortcut_attention")
    shortcut = None if past is None else _as_array([past[:, None]], tokens)[0, 0]  # (tokens,)
    attentions = [
        TextAttention(
            part.text,
            part.offsets,
            part.known,
            sum_pieces(weights, part.tokens),
            part.left_out,
            sum_pieces(weight_samples, part.tokens),
            None if shortcut is None else sum_pieces(shortcut, part.tokens),
        )
        for part in found
    ]
    return attentions, _scores(cast(DSAConfig, model.config), outputs.logits[0]) if "logits" in outputs else None


def sum_pieces(weights: Weights, words: list[list[int]]) -> Weights:
    """Add up what the tokens of each word have. (..., tokens) -> (..., words)"""
    return np.stack([weights[..., word].sum(-1) for word in words], -1) if words else weights[..., :0]


@torch.no_grad()
def _run(model: PreTrainedModel, inputs: dict[str, torch.Tensor], samples: int) -> tuple[Any, list[torch.Tensor]]:
    """What a model gives for a text, and the weights under each sample of its latent variable, (1, heads, tokens)."""
    was_training = model.training
    model.eval()
    try:
        with torch.random.fork_rng(devices=[] if model.device.type == "cpu" else None):
            torch.manual_seed(0)
            outputs = model(**inputs, output_attentions=True)
            sampled = []
            if POOLINGS[model.config.pooling].has_samples:
                with prediction_samples(1):  # of several the model gives the mean, where pieces are not yet words
                    sampled = [model(**inputs, output_attentions=True).attentions[0] for _ in range(samples)]
    finally:
        model.train(was_training)
    return outputs, sampled


def _as_array(weights: Sequence[torch.Tensor] | None, tokens: int) -> Weights:
    """Each (1, heads, tokens) -> (their number, heads, tokens)"""
    if not weights:
        return np.zeros((0, 0, tokens), np.float32)
    return cast(Weights, torch.cat(list(weights)).float().cpu().numpy())


def _scores(config: DSAConfig, logits: torch.Tensor) -> LabelScores:
    function = score_function(config)
    values = logits_to_scores(logits.float().cpu().numpy(), function)
    return LabelScores(config.class_names, values, function)
