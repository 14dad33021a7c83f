"""Which texts hold a token that a model knows: of the others its vectors and answers say nothing."""

import numpy as np
from transformers import PreTrainedTokenizerBase

from .batching_dsa import Integers


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
