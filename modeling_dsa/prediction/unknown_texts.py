"""Texts of which a model knows no word are told where their figures and answers say nothing."""

import logging
from collections.abc import Sequence

from modeling_dsa.batching_dsa import Text
from modeling_dsa.unknown_texts_dsa import told_unknown

logger = logging.getLogger(__name__)


def warn_of_unknown(
    source: str, texts: Sequence[Text], unknown: Sequence[int], consequence: str = "figures of them"
) -> None:
    """Warn where a model knows no word of some texts.

    Args:
        source: What the model is called.
        texts: Texts, or pairs.
        unknown: Which of them hold no word that it knows.
        consequence: What says nothing.
    """
    if unknown:
        logger.warning(f"{told_unknown(source, texts, unknown)}: {consequence} say nothing.")
