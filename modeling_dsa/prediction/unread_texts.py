"""Texts of which a model knows no word, or does not read the end, are told where its figures and answers say less."""

import logging
from collections.abc import Sequence

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Text
from modeling_dsa.text.cut_texts import cut_texts
from modeling_dsa.unknown_texts_dsa import told_unknown, unknown_texts

logger = logging.getLogger(__name__)


def warn_of_unread(
    source: str,
    config: PreTrainedConfig,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Text],
    consequence: str = "figures of them",
) -> None:
    """Warn where a model knows no word of some texts, or does not read some to their end.

    Args:
        source: What the model is called.
        config: Its config.
        tokenizer: Its tokenizer.
        texts: Texts, or pairs.
        consequence: What says nothing where it knows no word.
    """
    if unknown := unknown_texts(tokenizer, texts):
        logger.warning(f"{told_unknown(source, texts, unknown)}: {consequence} say nothing.")
    limit = config.max_sentence_tokens
    if cut := cut_texts(tokenizer, texts, limit):
        logger.warning(
            f"{source} reads the first {limit:,} tokens of a text: {len(cut):,} of {len(texts):,} texts are longer, "
            f"such as {texts[cut[0]]!r:.80}."
        )
