"""Texts of which a model knows no word are told where their figures and answers say nothing."""

import logging
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Text
from modeling_dsa.unknown_texts_dsa import told_unknown, unknown_texts

logger = logging.getLogger(__name__)


def warn_of_unknown(
    source: str, tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text], consequence: str = "figures of them"
) -> None:
    """Warn where a model knows no word of some texts.

    Args:
        source: What the model is called.
        tokenizer: Its tokenizer, one of the `tokenizers` library.
        texts: Texts, or pairs.
        consequence: What says nothing.
    """
    if found := unknown_texts(tokenizer, texts):
        logger.warning(f"{told_unknown(source, texts, found)}: {consequence} say nothing.")
