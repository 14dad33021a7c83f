"""How sharp a model's attention is: the entropy of its weights, beside that of equal weights."""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from modeling_dsa.config_fields_dsa import DSAConfigFields
from modeling_dsa.packing_dsa import sentence_masks

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
    attentions = model.base_model(**batch, output_attentions=True, output_tokens=False).attentions
    if not attentions:
        return torch.empty(0)
    found = mean_entropies(attentions)  # (iterations, batch)
    config = cast(DSAConfigFields, model.config)
    mask, types = batch.get("attention_mask"), batch.get("token_type_ids")
    masks = sentence_masks(config, batch["input_ids"], mask, types)  # (batch, 1 or 2, tokens)
    equal = masks.sum(2).clamp(min=1).double().log().sum(1)  # (batch,)
    shares: Tensor = found[:, equal > 0] / equal[equal > 0]
    return shares
