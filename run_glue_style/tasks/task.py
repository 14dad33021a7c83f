"""What a training script must know about its data."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import evaluate
from datasets import Dataset, DatasetDict

from modeling_dsa import DSAForSequenceClassification


def accept_any_setting(setting: str) -> None:
    """Every setting fits."""


@dataclass(frozen=True)
class Task:
    """One task: its data, the head that it trains and how predictions are scored.

    Attributes:
        name: Such as "nli".
        model_class: The head that it trains.
        text_columns: One column of sentences, or two for pairs.
        class_names: Names of the classes, by index; empty for a regression, whose labels are numbers.
        load: Reads the data: the columns of texts and `label`, in the splits `train`, the validation splits and perhaps
            `test`. A split without examples is left out.
        source: What the data are, for people.
        fingerprint: A hash of a split's contents.
        example: Texts for the line of Python that closes a run.
        metrics: What an evaluation reports, under names that differ. They are given predictions and references: indices
            of classes, or numbers for a regression.
        default_vectors: Word vectors that fit the data, if the package ships any.
        baseline: A measured figure to compare with, for people, if there is one.
        metric_for_best_model: The metric that chooses the best weights where the recipe names none.
        group_column: The text column whose texts stand in many examples each and cost most. Examples of one text come
            in one batch, where the model encodes it once.
        check_setting: Raises a ValueError for the name of a setting that is another task's.
        class_points: What an example of each class is worth, for a model that shall learn to score points.
        splits: Names of the splits that `load` gives, where they are known before; None where only the data tell.
    """

    name: str
    model_class: type[DSAForSequenceClassification]
    text_columns: tuple[str, ...]
    class_names: tuple[str, ...]
    load: Callable[[], DatasetDict]
    source: str
    fingerprint: Callable[[Dataset], str]
    example: tuple[str, ...]
    metrics: tuple[evaluate.Metric, ...]
    default_vectors: Path | None = None
    baseline: str | None = None
    metric_for_best_model: str = "accuracy"
    group_column: str | None = None
    check_setting: Callable[[str], None] = accept_any_setting
    class_points: tuple[float, ...] | None = None
    splits: Collection[str] | None = None

    @property
    def is_regression(self) -> bool:
        """Whether the labels are numbers and not classes."""
        return not self.class_names
