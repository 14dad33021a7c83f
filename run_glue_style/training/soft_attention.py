"""How long a run of reinforced self-attention chooses all tokens, before hard attention learns what to choose."""

import math

from transformers import PreTrainedModel

from modeling_dsa.reinforced_dsa import ReinforcedSelfAttention

from .recipe import TrainingRecipe


def plan_soft_attention(
    model: PreTrainedModel, recipe: TrainingRecipe, total_steps: int, batches_per_epoch: int
) -> int:
    """Give the model the recipe's share of the updates in which all tokens are chosen, where the recipe has one.

    The model counts batches. Those that an epoch's last update has may be fewer than `gradient_accumulation_steps`.

    Returns:
        How many updates are such; 0 where the model has no hard attention.

    Raises:
        ValueError: No update is left to train hard attention.
    """
    attention = next((part for part in model.modules() if isinstance(part, ReinforcedSelfAttention)), None)
    if attention is None:
        return 0
    batches, seen = recipe.gradient_accumulation_steps, int(attention.step)
    updates_per_epoch = math.ceil(batches_per_epoch / batches)
    if recipe.soft_attention_ratio:
        epochs, updates = divmod(round(recipe.soft_attention_ratio * total_steps), updates_per_epoch)
        attention.soft_attention_steps = seen + epochs * batches_per_epoch + updates * batches
        model.config.soft_attention_steps = attention.soft_attention_steps
    epochs, left = divmod(max(attention.soft_attention_steps - seen, 0), batches_per_epoch)
    updates = epochs * updates_per_epoch + math.ceil(left / batches)
    if updates >= total_steps:
        raise ValueError(
            f"Hard attention would have none of the {total_steps:,} updates, as all tokens are chosen in the first "
            f"{updates:,} (soft_attention_steps): give --soft_attention_ratio, or train longer."
        )
    return updates
