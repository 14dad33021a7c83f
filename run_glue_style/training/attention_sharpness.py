"""How sharp a model's attention is: the entropy of its weights, beside that of equal weights."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from modeling_dsa.packing_dsa import split_pairs

from .training_batches import Batch


def mean_entropies(attentions: Sequence[Tensor]) -> Tensor:
    """The entropy of each example's attention in nats, a mean over heads.

    Args:
        attentions: A model's, for each iteration. (batch, heads, tokens)

    Returns:
        (iterations, batch)
    """
    entropies: Tensor = torch.special.entr(torch.stack(tuple(attentions)).double()).sum(-1)
    return entropies.mean(-1)


@torch.inference_mode()
def entropy_shares(model: PreTrainedModel, batches: Iterable[Batch]) -> list[float]:
    """The entropy of the attention as a share of that of equal weights, log n for n tokens, in [0, 1].

    Args:
        model: In evaluation mode, of this package.
        batches: Its inputs.

    Returns:
        The mean over heads and examples of each iteration; of a pair both sentences' entropies are summed. Nothing of
        a pooling without attention, or where no sentence has two tokens.
    """
    shares = [shares for batch in batches if (shares := _of_batch(model, batch)).numel()]
    return torch.cat(shares, dim=1).mean(1).tolist() if shares else []


def _of_batch(model: PreTrainedModel, batch: Batch) -> Tensor:
    """(iterations, examples in which some sentence has two tokens)"""
    config = model.config
    attentions = model.base_model(**batch, output_attentions=True, output_tokens=False).attentions
    if not attentions:
        return torch.empty(0)
    found = mean_entropies(attentions)  # (iterations, batch)
    is_token, is_second = split_pairs(
        batch["input_ids"],
        batch.get("attention_mask"),
        batch.get("token_type_ids"),
        config.pad_token_id,
        config.sep_token_id,
    )
    is_second = is_second & (config.sentences_per_example == 2)
    counts = [(is_token & side).sum(1).clamp(min=1, max=config.max_sentence_tokens) for side in (~is_second, is_second)]
    equal = torch.stack(counts).double().log().sum(0)  # (batch,)
    shares: Tensor = found[:, equal > 0] / equal[equal > 0]
    return shares
