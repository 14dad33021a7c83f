"""Runs of reinforced self-attention: first all tokens are chosen, then some, and only then weights are."""

from pathlib import Path
from typing import Any

import pytest
from small_runs import small_trainer

REINFORCED: dict[str, Any] = {"encoder": "none", "pooling": "reinforced"}


@pytest.mark.parametrize(("batches", "soft_batches"), [(1, 6), (2, 7 + 4)])  # an epoch has 7, the last one alone
def test_weights_are_chosen_behind_the_share_of_soft_attention(tmp_path: Path, batches: int, soft_batches: int) -> None:
    falling = iter(range(100, 0, -1))  # the first evaluation is the best
    trainer = small_trainer(
        tmp_path,
        config=REINFORCED,
        compute_metrics=lambda *_: {"accuracy": float(next(falling))},
        soft_attention_ratio=0.5,
        gradient_accumulation_steps=batches,
        max_train_steps=12,
    )
    progress = trainer.train()
    model = trainer.unwrapped_model()
    assert model.config.soft_attention_steps == soft_batches
    assert model.state_dict()["dsa.pooling.attention.step"] > soft_batches
    assert progress.best is not None
    steps = [record["step"] for record in progress.history]
    assert steps[0] < 6
    assert progress.best["step"] == min(step for step in steps if step > 6)


def test_a_run_without_hard_attention_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none of the 21 updates, .* first 21 \(soft_attention_steps\): give"):
        small_trainer(tmp_path, config=REINFORCED | {"soft_attention_steps": 21})
