"""Train and evaluate a sentence encoder on the stance of news bodies towards headlines (Fake News Challenge, FNC-1).

`accelerate launch run_glue_style/run_stance.py --setting dsa-single-fnc1 --data_dir fnc-1 --vectors
glove.840B.300d.zip` trains on the competition's four files, https://github.com/FakeNewsChallenge/fnc-1.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from modeling_dsa import DSAForSequenceClassification
from modeling_dsa.options_dsa import Bound, check_bounds, option
from run_glue_style.reporting.reporters import REPORTERS
from run_glue_style.tasks.fnc_score import FNCScore, class_points
from run_glue_style.tasks.metrics import ClassificationMetric
from run_glue_style.tasks.stance import (
    CLASS_NAMES,
    STANCE,
    STANCE_PAIRS,
    StanceFiles,
    ValidationBy,
    load_stances,
)
from run_glue_style.tasks.task import Task
from run_glue_style.training.entry import read_task, run_script

ORIGINAL_NAMES = {
    "train_stances": "train_stances.csv",
    "train_bodies": "train_bodies.csv",
    "test_stances": "competition_test_stances.csv",
    "test_bodies": "competition_test_bodies.csv",
}


@dataclass
class DataArguments:
    """The competition's pairs."""

    _argument_group_name: ClassVar[str] = "data"

    data_dir: Path | None = option(None, "Folder of the four files: " + ", ".join(ORIGINAL_NAMES.values()) + ".")
    train_stances: Path | None = option(
        None, "Pairs to train on (columns Headline, Body ID, Stance); default: in data_dir."
    )
    train_bodies: Path | None = option(None, "Their bodies (columns Body ID, articleBody); default: in data_dir.")
    test_stances: Path | None = option(None, "Pairs that are read once, at the end; default: in data_dir.")
    test_bodies: Path | None = option(None, "Their bodies; default: in data_dir.")
    validation_share: float = option(
        0.1,
        "Share of the training pairs or bodies that is held out to choose the best weights; of topics the nearest 1/n.",
        Bound(lambda share: 0 < share <= 0.5, "be greater than 0 and at most 0.5"),
    )
    validation_by: ValidationBy = option(
        "topics",
        "topics: hold out whole topics, so that no text is on both sides, and join unrelated texts anew. "
        "bodies: hold out bodies with their real pairs, whose headlines may be in the training split too, as the "
        "organisers' baseline does with a share of 0.2.",
    )
    learn_points: bool = option(
        False,
        "Learn to score points: an unrelated pair, which gives a quarter of them, counts as if it were a "
        "quarter as frequent, so that a pair in doubt is called related.",
    )

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        check_bounds(self)


def make_task(arguments: DataArguments) -> Task:
    """The task for these options.

    Raises:
        ValueError: There is neither a folder nor a file for one of the four.
    """
    paths = {}
    for file, name in ORIGINAL_NAMES.items():
        path: Path | None = getattr(arguments, file)
        if path is None and arguments.data_dir is None:
            raise ValueError(f"Give --{file}, or --data_dir with the competition's four files.")
        paths[file] = path or Path(arguments.data_dir or "", name)
    train = StanceFiles(paths["train_stances"], paths["train_bodies"])
    test = StanceFiles(paths["test_stances"], paths["test_bodies"])
    return Task(
        name="stance",
        model_class=DSAForSequenceClassification,
        text_columns=("headline", "body"),
        class_names=CLASS_NAMES,
        load=partial(load_stances, train, test, arguments.validation_share, arguments.validation_by),
        source=", ".join(path.name for path in paths.values()),
        fingerprint=STANCE.fingerprint,
        example=STANCE_PAIRS[0],
        metrics=(ClassificationMetric(CLASS_NAMES), FNCScore(CLASS_NAMES)),
        group_column="body",
        class_points=class_points(CLASS_NAMES) if arguments.learn_points else None,
        splits=("train", "validation", "test"),
    )


read = partial(read_task, DataArguments, make_task, __doc__, REPORTERS)


def main() -> None:
    """Train, evaluate and report, as the process's own command line says."""
    read().train()


if __name__ == "__main__":
    sys.exit(run_script(main))
