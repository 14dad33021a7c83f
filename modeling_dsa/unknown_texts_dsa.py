"""Texts that say nothing to a model: its tokenizer knows none of their words."""

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from .batching_dsa import Integers, Text, TextTokenizer


def unknown_texts(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> list[int]:
    """Which texts hold no known word, or of which pairs a text holds none.

    A text without any token is one of them, and one of separators alone, which no model reads.

    Args:
        tokenizer: A model's, one of the `tokenizers` library.
        texts: Texts, or pairs of them.

    Returns:
        Their indices among `texts`.
    """
    parts = [text if isinstance(text, tuple) else (text,) for text in texts]
    flat = [part for pair in parts for part in pair]
    ids, _, lengths = TextTokenizer(tokenizer.backend_tokenizer).tokens(flat, add_special_tokens=False)
    unknown = without_known_tokens(ids, lengths, tokenizer)  # (parts,)
    text_of = np.repeat(np.arange(len(parts)), [len(pair) for pair in parts])  # (parts,)
    return [int(index) for index in np.unique(text_of[unknown])]


def told_unknown(source: str, texts: Sequence[Text], unknown: Sequence[int]) -> str:
    """The sentence, without its end, that tells of texts which hold no known word.

    Args:
        source: What the model is called.
        texts: All texts.
        unknown: Which of them hold none; one at least.
    """
    return f"{source} knows no word of {len(unknown):,} of {len(texts):,} texts, such as {texts[unknown[0]]!r:.80}"


def without_known_tokens(ids: Integers, lengths: Integers, tokenizer: PreTrainedTokenizerBase) -> Integers:
    """Which texts hold no token that is known and read.

    Args:
        ids: Of all texts, one after another. (tokens,)
        lengths: How many each text has. (texts,)
        tokenizer: What they are of.

    Returns:
        Truth values. (texts,)
    """
    owners = np.repeat(np.arange(len(lengths)), lengths)  # (tokens,)
    said = ~np.isin(ids, [id for id in (tokenizer.unk_token_id, tokenizer.sep_token_id) if id is not None])  # (tokens,)
    found: Integers = np.bincount(owners[said], minlength=len(lengths)) == 0  # (texts,)
    return found
