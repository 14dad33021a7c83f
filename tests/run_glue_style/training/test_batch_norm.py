"""Statistics of batch normalisation without dropout."""

import torch
from torch import nn

from run_glue_style.training.batch_norm import recalibrate_batch_norm


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dropout(features))  # type: ignore[no-any-return]


def test_statistics_are_those_of_the_batches_without_dropout() -> None:
    torch.manual_seed(0)
    model = Noisy()
    batches = [torch.randn(8, 3) + 5 for _ in range(4)]
    for batch in batches:
        model.train()(batch)
    recalibrate_batch_norm(model, [{"features": batch} for batch in batches])
    norm = model.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    torch.testing.assert_close(norm.running_mean, torch.stack([batch.mean(0) for batch in batches]).mean(0))
    torch.testing.assert_close(norm.running_var, torch.stack([batch.var(0) for batch in batches]).mean(0))
    assert norm.momentum == 0.1
    assert not model.training
    assert not norm.training


def test_a_model_without_batch_norm_is_left_alone() -> None:
    model = nn.Linear(3, 3)
    recalibrate_batch_norm(model, [{"input": torch.zeros(1, 3)}])
    assert not model.training
