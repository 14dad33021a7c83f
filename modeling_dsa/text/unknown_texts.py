"""Texts that say nothing to a model: its tokenizer knows none of their words."""

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Text, TextTokenizer


def unknown_texts(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> list[int]:
    """Which texts hold no known word, or of which pairs a text holds none. A text without any token is one of them.

    Args:
        tokenizer: A model's, one of the `tokenizers` library.
        texts: Texts, or pairs of them.

    Returns:
        Their indices among `texts`.
    """
    parts = [text if isinstance(text, tuple) else (text,) for text in texts]
    flat = [part for pair in parts for part in pair]
    ids, _, lengths = TextTokenizer(tokenizer.backend_tokenizer).tokens(flat, add_special_tokens=False)
    owners = np.repeat(np.arange(len(flat)), lengths)  # (tokens,)
    known = np.bincount(owners[ids != tokenizer.unk_token_id], minlength=len(flat))  # (parts,)
    text_of = np.repeat(np.arange(len(parts)), [len(pair) for pair in parts])  # (parts,)
    return [int(index) for index in np.unique(text_of[known == 0])]
