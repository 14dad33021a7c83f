"""Texts with more tokens than a model reads (`config.max_sentence_tokens`)."""

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Text, TextTokenizer


def cut_texts(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text], max_tokens: int | None) -> list[int]:
    """Which texts a model does not read to their end, or of which pairs one of the two.

    Args:
        tokenizer: The model's, one of the `tokenizers` library.
        texts: Texts, or pairs of them.
        max_tokens: How many tokens of a text it reads; None for all.

    Returns:
        Their indices among `texts`.
    """
    if max_tokens is None:
        return []
    parts = [
        (index, part)
        for index, text in enumerate(texts)
        for part in (text if isinstance(text, tuple) else (text,))
        if len(part) > max_tokens  # a token has a character at least, and most texts are short
    ]
    tokens = TextTokenizer(tokenizer.backend_tokenizer)
    ids, _, lengths = tokens.tokens([part for _, part in parts], add_special_tokens=False)
    owners = np.repeat(np.arange(len(lengths)), lengths)  # (tokens,)
    counts = np.bincount(owners[ids != tokenizer.sep_token_id], minlength=len(lengths))  # separators are not read
    return sorted({index for (index, _), count in zip(parts, counts, strict=True) if count > max_tokens})
