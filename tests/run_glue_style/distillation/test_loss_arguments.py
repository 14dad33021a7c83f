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
    ],
)
def test_losses_that_nothing_is_learnt_from(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        LossArguments(**options)
