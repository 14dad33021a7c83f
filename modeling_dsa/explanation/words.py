"""Which tokens of a text a model reads, and which of them make up each word."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.config_fields_dsa import DSAConfigFields
from modeling_dsa.packing_dsa import sentence_masks, whole_sentences
from modeling_dsa.text.word_rules import word_spans


@dataclass(frozen=True)
class TextWords:
    """The words of a text that a model reads.

    Attributes:
        text: The text; half of a UTF-16 surrogate pair is U+FFFD in it.
        tokens: The tokens of each word: their indices in the example. (words,)
        offsets: Start and end in `text` of each word, in characters. (words,)
        known: Whether all of each word is in the vocabulary. (words,)
        left_out: How many tokens stand behind `config.max_sentence_tokens`.
    """

    text: str
    tokens: list[list[int]]
    offsets: list[tuple[int, int]]
    known: list[bool]
    left_out: int


def find_words(
    config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase, *texts: str
) -> tuple[dict[str, Tensor], list[TextWords]]:
    """Tokenise a text or a pair, and find its words.

    Args:
        config: The model's.
        tokenizer: The model's.
        *texts: One or two. Written as `A [SEP] B` one can hold a pair.

    Returns:
        What the model takes, (1, tokens) each, in which what it would leave out is masked; and the words of each text.
    """
    texts = tuple(map(replace_surrogates, texts))
    batch = tokenizer(*texts, return_offsets_mapping=True, return_token_type_ids=True)
    names = ("input_ids", "attention_mask", "token_type_ids")
    # Of an empty text transformers would make floats.
    inputs = {name: torch.tensor([batch[name]], dtype=torch.int64) for name in names}  # (1, tokens)
    is_read, is_token = _read_tokens(cast(DSAConfigFields, config), inputs)
    left_out = [index for index, token in enumerate(is_token) if token and not is_read[index]]
    inputs["attention_mask"][0, left_out] = 0  # else they would move up where words before them are deleted
    ids, offsets, owners = batch["input_ids"], batch["offset_mapping"], batch.sequence_ids(0)
    unknown = (tokenizer.unk_token_id, tokenizer.pad_token_id)  # a [PAD] that is typed is a token without a vector
    found = []
    for number, text in enumerate(texts):
        own = [index for index, owner in enumerate(owners) if owner == number and is_token[index]]
        read = [index for index in own if is_read[index]]
        words = [[read[n] for n in word] for word in _whole_words(text, [offsets[index] for index in read], tokenizer)]
        starts = {offsets[index][0] for index in own}
        spans = [(offsets[word[0]][0], _with_marks(text, offsets[word[-1]][1], starts)) for word in words]
        known = [all(ids[index] not in unknown for index in word) for word in words]
        found.append(TextWords(text, words, spans, known, len(own) - len(read)))
    return inputs, found


def runs_right_to_left(text: str) -> bool:
    """Whether the first letter of a text that has a direction says so, as browsers decide for `dir=auto`."""
    return next(_directions(text), "L") != "L"


def has_direction(text: str) -> bool:
    """Whether a letter says where a text runs; if none does, it runs as what stands around it."""
    return next(_directions(text), None) is not None


def _directions(text: str) -> Iterator[str]:
    return (found for found in map(unicodedata.bidirectional, text) if found in ("L", "R", "AL"))


def _whole_words(text: str, offsets: list[tuple[int, int]], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Which tokens make up each word: those that begin inside the same word of the text."""
    starts = [start for start, _ in word_spans(text, tokenizer.backend_tokenizer.normalizer)]
    words = groupby(range(len(offsets)), lambda token: bisect_right(starts, offsets[token][0]))
    return [list(tokens) for _, tokens in words]


def _with_marks(text: str, end: int, starts: set[int]) -> int:
    """The end of a word with what belongs to its last letter.

    Normalised, a letter with its marks is one, whose offset is the letter's, and variation selectors are removed.
    """
    while end < len(text) and end not in starts and _joins(text[end]):
        end += 1
    return end


def _joins(character: str) -> bool:
    """Whether it is a part of the letter before it: a mark, or the vowel or final of a Korean syllable."""
    return unicodedata.category(character).startswith("M") or "\u1160" <= character <= "\u11ff"


def _read_tokens(config: DSAConfigFields, inputs: dict[str, Tensor]) -> tuple[list[bool], list[bool]]:
    """Which tokens of a text the model reads, and which it would read of a text of any length, (tokens,) both."""
    read, whole = sentence_masks(config, **inputs), whole_sentences(config, **inputs)  # (1, 1 or 2, tokens)
    return read[0].any(0).tolist(), whole[0].any(0).tolist()
