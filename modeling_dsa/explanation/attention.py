"""Where a model looks in a text: the attention weights of the words that it reads, and its logits."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.packing_dsa import pack, split_pairs
from modeling_dsa.prediction.logits import ScoreFunction, logits_to_scores, score_function
from modeling_dsa.text.word_rules import word_spans


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
    """

    text: str
    offsets: list[tuple[int, int]]
    known: list[bool]
    weights: npt.NDArray[np.float32]
    left_out: int


@dataclass(frozen=True)
class Scores:
    """What a classifier says.

    Attributes:
        labels: Names of the classes. (num_labels,)
        values: Their probabilities, or the numbers of a regression. (num_labels,)
        function: What made `values` of the logits.
    """

    labels: list[str]
    values: npt.NDArray[Any]
    function: ScoreFunction


def read_attention(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str, text_pair: str | None = None
) -> tuple[list[TextAttention], Scores | None]:
    """Run a model on a text or pair, without dropout; it stays in training mode if it was.

    Args:
        model: An encoder or a classifier of this family.
        tokenizer: The model's.
        text: The text, or the first of a pair. Written as `A [SEP] B` one text can hold a pair.
        text_pair: The second text of a pair.

    Returns:
        The one or two texts, and the scores of a classifier.
    """
    texts = [replace_surrogates(part) for part in (text, text_pair) if part is not None]
    batch = tokenizer(*texts, return_offsets_mapping=True)
    names = ("input_ids", "attention_mask", "token_type_ids")
    # Of an empty text transformers would make floats.
    inputs = {name: torch.tensor([batch[name]], dtype=torch.int64) for name in names}  # (1, tokens)
    is_read, is_token = _read_tokens(model.config, inputs)
    was_training = model.training
    model.train(False)
    with torch.no_grad():
        outputs = model(**{name: tensor.to(model.device) for name, tensor in inputs.items()}, output_attentions=True)
    model.train(was_training)
    ids, offsets, owners = batch["input_ids"], batch["offset_mapping"], batch.sequence_ids(0)
    weights = np.zeros((0, 0, len(ids)), np.float32)
    if outputs.attentions:
        weights = torch.cat(outputs.attentions).float().cpu().numpy()  # (iterations, heads, tokens)
    unknown = (tokenizer.unk_token_id, tokenizer.pad_token_id)  # a [PAD] that is typed is a token without a vector
    attentions = []
    for number, part in enumerate(texts):
        own = [index for index, owner in enumerate(owners) if owner == number and is_token[index]]
        read = [index for index in own if is_read[index]]
        words = [[read[n] for n in word] for word in _whole_words(part, [offsets[index] for index in read], tokenizer)]
        attentions.append(
            TextAttention(
                part,
                [(offsets[word[0]][0], offsets[word[-1]][1]) for word in words],
                [all(ids[index] not in unknown for index in word) for word in words],
                np.stack([weights[..., word].sum(-1) for word in words], -1) if words else weights[..., :0],
                len(own) - len(read),
            )
        )
    return attentions, _scores(model.config, outputs.logits[0]) if "logits" in outputs else None


def _whole_words(text: str, offsets: list[tuple[int, int]], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Which tokens make up each word: those that begin inside the same word of the text."""
    starts = [start for start, _ in word_spans(text, tokenizer.backend_tokenizer.normalizer)]
    words = groupby(range(len(offsets)), lambda token: bisect_right(starts, offsets[token][0]))
    return [list(tokens) for _, tokens in words]


def _read_tokens(config: PreTrainedConfig, inputs: dict[str, torch.Tensor]) -> tuple[list[bool], list[bool]]:
    """Which tokens of a text the model reads, and which it would read of a text of any length, (tokens,) both."""
    is_token, is_second = split_pairs(
        inputs["input_ids"],
        inputs["attention_mask"],
        inputs["token_type_ids"],
        config.pad_token_id,
        config.sep_token_id,
    )
    index, _ = pack(
        None,
        is_token,
        is_second if config.sentences_per_example == 2 else None,
        deduplicate=False,
        max_sentence_tokens=config.max_sentence_tokens,
    )
    is_read = torch.zeros_like(is_token[0])
    is_read[index] = True
    return is_read.tolist(), is_token[0].tolist()


def _scores(config: PreTrainedConfig, logits: torch.Tensor) -> Scores:
    names = cast(dict[int, str], config.id2label)  # a config turns the keys into numbers
    function = score_function(config.problem_type, len(names))
    values = logits_to_scores(logits.float().cpu().numpy(), function)
    return Scores([names[number] for number in range(len(names))], values, function)
