"""The optimizer of a recipe, and its learning rate."""

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from transformers import PreTrainedModel, get_scheduler

from .recipe import TrainingRecipe


def make_optimizer(model: PreTrainedModel, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """An optimizer of all parameters that are not frozen."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if recipe.optimizer == "adam":
        return torch.optim.Adam(trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)
    if recipe.optimizer == "adadelta":
        return torch.optim.Adadelta(trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, foreach=True)
    groups = [
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [parameter for parameter in trained if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)


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
