"""The optimizer of a recipe, and its learning rate."""

from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from transformers import PreTrainedModel, get_scheduler

from .recipe import TrainingRecipe


def make_optimizer(model: PreTrainedModel, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """An optimizer of all parameters that are not frozen, with a group for the word table where it has its own rate.

    Raises:
        ValueError: The recipe has a rate for the word table, and the table is frozen.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = []
    if recipe.embedding_learning_rate is not None:
        table = cast(Tensor, model.get_input_embeddings().weight)
        if not table.requires_grad:
            raise ValueError(
                "--embedding_learning_rate is for a word table that is trained: give --freeze_embeddings false, or "
                "leave it out."
            )
        trained = [parameter for parameter in trained if parameter is not table]
        groups = [{"params": [table], "lr": recipe.embedding_learning_rate}]
    if recipe.optimizer == "adamw":
        matrices = [parameter for parameter in trained if parameter.ndim > 1]
        others = [parameter for parameter in trained if parameter.ndim <= 1]
        groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}, *groups]
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)
    groups = [{"params": trained}, *groups]
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)
    return torch.optim.Adadelta(groups, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, foreach=True)


def make_scheduler(
    optimizer: torch.optim.Optimizer, recipe: TrainingRecipe, total_steps: int
) -> LRScheduler | ReduceLROnPlateau:
    """The schedule of the learning rate over so many updates."""
    if recipe.schedule == "plateau":
        # torch halves after patience + 1 checks.
        return ReduceLROnPlateau(
            optimizer,
            factor=0.5,
            patience=recipe.plateau_patience - 1,
            threshold=recipe.plateau_threshold,
            threshold_mode="abs",
        )
    name = "constant_with_warmup" if recipe.schedule == "constant" else recipe.schedule
    scheduler: LRScheduler = get_scheduler(name, optimizer, round(recipe.warmup_ratio * total_steps), total_steps)
    return scheduler
