"""Optimizers as in their papers, and learning rates over a run."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import small_config
from small_runs import small_trainer, tokenized

from modeling_dsa import DSAForNLI
from run_glue_style.training.optimizer import make_optimizer, make_scheduler
from run_glue_style.training.recipe import TrainingRecipe

NO_NOISE: dict[str, Any] = {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0}


def rates(recipe: TrainingRecipe, steps: int, losses: list[float] | None = None) -> list[float]:
    """The learning rate of each update; a plateau's of each check of the loss."""
    optimizer = make_optimizer(DSAForNLI(small_config(sentences_per_example=2)), recipe)
    scheduler: Any = make_scheduler(optimizer, recipe, steps)
    found = []
    for step in range(steps):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step(*([losses[step]] if losses else []))
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", lambda step: (1 + math.cos(math.pi * (step - 4) / 17)) / 2),
        ("linear", lambda step: (21 - step) / 17),
        ("constant", lambda step: 1.0),
    ],
)
def test_rate_rises_and_then_follows_its_schedule(schedule: Any, expected: Callable[[int], float]) -> None:
    recipe = TrainingRecipe(learning_rate=5e-3, schedule=schedule, warmup_ratio=0.2)
    shares = [step / 4 if step <= 4 else expected(step) for step in range(21)]
    assert rates(recipe, 21) == pytest.approx([5e-3 * share for share in shares])


def test_plateau_halves_after_exactly_plateau_patience_checks() -> None:
    recipe = TrainingRecipe(learning_rate=1e-3, schedule="plateau", plateau_patience=2, plateau_threshold=1.0)
    losses = [3.0, 2.5, 2.4, 2.3, 2.2, 2.1, 2.05, 2.01]  # after the first one none is lower by 1
    assert rates(recipe, 8, losses) == [1e-3] * 3 + [5e-4] * 2 + [2.5e-4] * 2 + [1.25e-4]


@pytest.mark.parametrize("optimizer", ["adamw", "adadelta", "adagrad", "rmsprop", "sgd"])
def test_head_encoder_and_word_table_have_rates_of_their_own(optimizer: Any) -> None:
    model = DSAForNLI(small_config(sentences_per_example=2, freeze_embeddings=False))
    recipe = TrainingRecipe(
        optimizer=optimizer, learning_rate=0.3, encoder_learning_rate=0.2, embedding_learning_rate=0.1
    )
    groups = make_optimizer(model, recipe).param_groups
    rates = {parameter: group["lr"] for group in groups for parameter in group["params"]}
    assert {name: rates[parameter] for name, parameter in model.named_parameters()} == {
        name: 0.1 if "embed_tokens" in name else 0.2 if name.startswith("dsa.") else 0.3
        for name, _ in model.named_parameters()
    }


def test_a_frozen_encoder_stays_as_it_was(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, max_train_steps=2, encoder_learning_rate=0)
    before = {name: tensor.clone() for name, tensor in trainer.unwrapped_model().named_parameters()}
    trainer.train()
    changed = {
        name for name, tensor in trainer.unwrapped_model().named_parameters() if not torch.equal(tensor, before[name])
    }
    assert changed
    assert all(name.startswith("classifier.") for name in changed)


def test_adamw_decays_matrices_only() -> None:
    model = DSAForNLI(small_config(sentences_per_example=2))
    decayed, others = make_optimizer(model, TrainingRecipe(weight_decay=0.2)).param_groups
    assert decayed["weight_decay"] == 0.2
    assert others["weight_decay"] == 0.0
    assert {parameter.ndim for parameter in others["params"]} == {1}
    assert min(parameter.ndim for parameter in decayed["params"]) == 2


def test_adadelta_updates_as_in_its_paper_with_l2(tmp_path: Path) -> None:
    rows = tokenized("train", 16)
    recipe: dict[str, Any] = {"optimizer": "adadelta", "learning_rate": 1.0, "weight_decay": 0.1, "max_grad_norm": 0.0}
    recipe |= {"schedule": "constant", "warmup_ratio": 0.0, "num_train_epochs": 1}
    trainer = small_trainer(tmp_path, train_examples=rows, config=NO_NOISE, dtype=torch.float64, **recipe)
    model = trainer.unwrapped_model()
    before = {name: tensor.detach().clone() for name, tensor in model.named_parameters() if tensor.requires_grad}
    model.train()(**trainer.collate(rows)).loss.backward()
    gradients = {name: model.get_parameter(name).grad for name in before}
    model.zero_grad()
    trainer.train()
    for name, old in before.items():
        gradient = gradients[name]
        assert gradient is not None
        total = gradient + 0.1 * old  # L2
        # Zeiler (2012), Algorithm 1, first step: no update yet has a mean square, and rho is 0.9.
        step = (1e-6 / (0.1 * total**2 + 1e-6)).sqrt() * total
        torch.testing.assert_close(model.get_parameter(name).detach(), old - step, rtol=0, atol=1e-9)
