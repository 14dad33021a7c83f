"""The optimizer of a recipe, and its learning rate."""

from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from transformers import PreTrainedModel, get_scheduler

from .recipe import TrainingRecipe


def make_optimizer(model: PreTrainedModel, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """An optimizer of all that is not frozen; it freezes the encoder where the recipe's rate for it is 0."""
    groups: list[dict[str, Any]] = []
    for rate, parameters in _parameters_by_rate(model, recipe):
        if recipe.optimizer == "adamw":
            matrices = [parameter for parameter in parameters if parameter.ndim > 1]
            others = [parameter for parameter in parameters if parameter.ndim <= 1]
            groups += [{"params": matrices, "lr": rate}, {"params": others, "lr": rate, "weight_decay": 0.0}]
        else:
            groups.append({"params": parameters, "lr": rate})
    groups = [group for group in groups if group["params"]]
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(groups, weight_decay=recipe.weight_decay, fused=True)
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, weight_decay=recipe.weight_decay, fused=True)
    optimizers: dict[str, type[torch.optim.Optimizer]] = {
        "adadelta": torch.optim.Adadelta,
        "adagrad": torch.optim.Adagrad,
        "rmsprop": torch.optim.RMSprop,
        "sgd": torch.optim.SGD,
    }
    options: dict[str, Any] = {"weight_decay": recipe.weight_decay, "foreach": True}
    return optimizers[recipe.optimizer](groups, **options)


def _parameters_by_rate(model: PreTrainedModel, recipe: TrainingRecipe) -> list[tuple[float, list[Tensor]]]:
    """The parameters that are trained, by their highest learning rates: head, encoder, word table."""
    base, encoder_rate = model.base_model, recipe.encoder_learning_rate
    if encoder_rate == 0:
        base.requires_grad_(False)
    table = cast(Tensor, model.get_input_embeddings().weight)
    if encoder_rate is None:
        encoder_rate = recipe.learning_rate
    table_rate = encoder_rate if recipe.embedding_learning_rate is None else recipe.embedding_learning_rate
    of_encoder = set(base.parameters())
    by_rate: dict[float, list[Tensor]] = {}
    for parameter in model.parameters():
        rate = table_rate if parameter is table else encoder_rate if parameter in of_encoder else recipe.learning_rate
        if parameter.requires_grad:
            by_rate.setdefault(rate, []).append(parameter)
    return list(by_rate.items())


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
