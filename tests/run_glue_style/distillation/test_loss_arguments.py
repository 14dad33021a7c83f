"""Options of distillation that mean nothing are refused."""

import re
from typing import Any

import pytest

from run_glue_style.distillation.arguments import LossArguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cosine_weight": 0.0, "similarity_weight": 0.0}, "All losses have the weight 0"),
        ({"matryoshka": [64, 128, 64]}, "--matryoshka names a length twice: leave one out"),
        ({"similarity_weight": 0.0, "matryoshka": [64]}, "--matryoshka is a similarity loss: give --similarity_weight"),
        ({"matryoshka": [0]}, "matryoshka must be lengths of at least 1, got [0]."),
        (
            {"contrastive_temperature": 0.1},
            "--contrastive_temperature is of the contrastive loss: give --contrastive_w",
        ),
        (
            {"neighbour_temperature": 0.1},
            "--neighbour_temperature is of the neighbour loss: give --neighbour_weight too",
        ),
    ],
)
def test_losses_that_nothing_is_learnt_from(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        LossArguments(**options)


def test_a_run_without_the_neighbour_loss_is_recorded_as_those_before_it_were() -> None:
    before = ["cosine_weight", "similarity_weight", "contrastive_weight", "contrastive_temperature", "matryoshka"]
    assert list(LossArguments().recorded()) == before
    assert LossArguments(neighbour_weight=0.5).recorded()["neighbour_weight"] == 0.5
