"""Where a run stands."""

import math
from dataclasses import dataclass, field
from typing import Any

from .objective import Metrics

ENTROPY_KEY = "attention_entropy"  # of an evaluation in the history, where attention is recorded


@dataclass
class Progress:
    """Where a run stands, the same in all of its processes. It is part of every checkpoint.

    Attributes:
        step: Updates so far.
        epoch: Index of the current epoch.
        batch: Batches of it that each process has used.
        tokens: Tokens of sentences in all processes' batches so far.
        seconds: Time spent on updates, without evaluation.
        loss_sum: Sum of the updates' losses since the last evaluation.
        loss_count: Updates since the last evaluation.
        skipped: Steps whose loss or gradient was not finite, and which changed no weights.
        best: Step, chosen metric and loss of the best evaluation so far.
        stale: Evaluations since then.
        history: What each evaluation gave.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    loss_count: int = 0
    skipped: list[int] = field(default_factory=list)
    best: Metrics | None = None
    stale: int = 0
    history: list[Metrics] = field(default_factory=list)

    def count_update(self, loss: float, tokens: int, batches_per_epoch: int) -> None:
        """Count an update whose batches are counted already."""
        self.step += 1
        self.tokens += tokens
        if self.step not in self.skipped[-1:]:
            self.loss_sum += loss
            self.loss_count += 1
        if self.batch == batches_per_epoch:
            self.epoch, self.batch = self.epoch + 1, 0

    def take_mean_loss(self) -> float:
        """The updates' mean loss since this was asked last; NaN where all were skipped."""
        loss = self.loss_sum / self.loss_count if self.loss_count else math.nan
        self.loss_sum, self.loss_count = 0.0, 0
        return loss

    def count_evaluation(self, name: str, value: float, loss: float) -> bool:
        """Count an evaluation, and tell if it is the best so far: its metric of this name is the greatest.

        A metric or loss that is not finite is never best: classes can be read off NaN.
        """
        is_finite = math.isfinite(value) and math.isfinite(loss)
        is_best = is_finite and (self.best is None or value > self.best[name])
        if is_best:
            self.best = {"step": self.step, name: value, "loss": loss}
        self.stale = 0 if is_best else self.stale + 1
        return is_best

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        vars(self).update(state)
