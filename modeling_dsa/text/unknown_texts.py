"""Texts that say nothing to a model: its tokenizer knows none of their words."""

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Text, TextTokenizer
from modeling_dsa.known_tokens_dsa import without_known_tokens


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
