"""Train and evaluate a sentence encoder on your own labels: classes or numbers, of texts or of pairs of texts.

`accelerate launch run_glue_style/run_classification.py --train_file reviews.csv --validation_split 0.1 --vectors
glove.6B.zip` finds the columns, the classes and their names in the data; --dataset_name names a data set on the Hub,
and --task_name one of the tasks of GLUE.
"""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from datasets import DatasetDict

from modeling_dsa import DSAForSequenceClassification
from modeling_dsa.files.columns import check_text_columns, example_texts, find_columns
from modeling_dsa.files.data_set_folders import folder_files
from modeling_dsa.files.tables import Table, file_table, files_table
from modeling_dsa.options_dsa import check_bounds, option
from run_glue_style.reporting.reporters import REPORTERS
from run_glue_style.tasks.arguments import DatasetArguments
from run_glue_style.tasks.glue import DATASET, GLUE, TaskName
from run_glue_style.tasks.label_inference import ProblemType, infer_labels
from run_glue_style.tasks.labelled_examples import (
    ExampleFormat,
    convert_dataset,
    dataset_table,
    existing_file,
    load_files,
    load_folder,
    load_hub,
    open_dataset,
)
from run_glue_style.tasks.metrics import ClassificationMetric, RegressionMetric
from run_glue_style.tasks.task import Task
from run_glue_style.tasks.validation_split import SIZE, hold_out, is_validation
from run_glue_style.training.entry import read_task, run_script

logger = logging.getLogger(__name__)

DEFAULT_SETTING = "dsa-small"


@dataclass
class DataArguments(DatasetArguments):
    """The examples: files, a data set, or a task of GLUE."""

    task_name: TaskName | None = option(None, "Task of GLUE, from the Hub or from its own files; CoLA's need a header.")
    text_column: list[str] | None = option(
        None, "Column of texts, or the two columns of pairs; default: found by name, such as text."
    )
    label_column: str | None = option(None, "Column of labels; default: found by name, such as label or score.")
    problem_type: ProblemType | None = option(
        None, "Whether labels are classes or numbers; default: what their values look like."
    )
    validation_split: float | None = option(
        None,
        "Share or number of the training examples that is held out for validation, each class by its "
        "share; the same examples whatever the seed.",
        SIZE,
    )

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        check_bounds(self)

    @property
    def held_out(self) -> list[str]:
        """The split that is held out, if one is."""
        return [] if self.validation_split is None else ["validation"]

    def check_splits(self, files: Mapping[str, Path]) -> None:
        """As in `DatasetArguments`, but a validation split can be held out."""
        if self.validation_split is not None:
            if "validation" in files:
                raise ValueError("Give either --validation_file or --validation_split, and not both.")
        elif "validation" not in files:
            raise ValueError(
                "Validation chooses the best weights: give --validation_file, or --validation_split 0.1 to hold a "
                "tenth of the training examples out."
            )
        if "train" not in files:
            raise ValueError("Give the examples to train on: --train_file.")


def make_task(arguments: DataArguments) -> Task:
    """The task for these options; reads the labels, to know what they are.

    Raises:
        ConnectionError: The data set is not in the cache and the Hub cannot be reached.
        FileNotFoundError: There is no such file or data set.
        ValueError: Options contradict each other or the data, or it is not clear what the labels are.
    """
    check_text_columns(arguments.text_column or ())  # before anything is read
    if arguments.task_name is not None:
        return _glue_task(arguments, arguments.task_name)
    files, name = arguments.files, arguments.dataset_name
    folder = {} if name is None else folder_files(name, arguments.dataset_config_name)
    if folder:
        tables = {split: files_table(f"{name}, split {split!r}", paths) for split, paths in folder.items()}
    elif name is not None:
        splits = open_dataset(name, arguments.dataset_config_name)
        tables = {split: dataset_table(rows, f"{name}, split {split!r}") for split, rows in splits.items()}
    elif files:
        tables = {split: file_table(existing_file(split, path)) for split, path in files.items()}
    else:
        raise ValueError("Say what the data are: --train_file, --dataset_name, or --task_name for a task of GLUE.")
    form, labelled = _infer_format(tables, arguments)
    for split in tables.keys() - set(labelled):
        if split == "validation" and name is None:
            raise ValueError(
                f"{files[split]} has no row with a label, and validation chooses the best weights: give another "
                "--validation_file, or --validation_split 0.1 in place of it."
            )
        logger.info(f"The split {split!r} has no labels, and is left out.")

    def load() -> DatasetDict:
        if name is None:
            data = load_files({split: files[split] for split in labelled}, form)
        elif folder:
            data = load_folder({split: folder[split] for split in labelled}, form)
        else:
            data = DatasetDict({split: convert_dataset(tables[split].name, splits[split], form) for split in labelled})
        return _with_validation(data, arguments.validation_split)

    return Task(
        name="regression" if not form.labels.class_names else "classification",
        model_class=DSAForSequenceClassification,
        text_columns=tuple(form.texts),
        class_names=form.labels.class_names,
        load=load,
        source=name or ", ".join(path.name for path in files.values()),
        fingerprint=form.fingerprint,
        example=example_texts(tables["train"], [column for (column,) in form.texts.values()]),
        metrics=(ClassificationMetric(form.labels.class_names) if form.labels.class_names else RegressionMetric(),),
        metric_for_best_model="accuracy" if form.labels.class_names else "spearman",
        splits=(*labelled, *arguments.held_out),
    )


read = partial(read_task, DataArguments, make_task, __doc__, REPORTERS, default_setting=DEFAULT_SETTING)


def main() -> None:
    """Train, evaluate and report, as the process's own command line says."""
    read().train()


def _glue_task(arguments: DataArguments, name: TaskName) -> Task:
    for other in ("text_column", "label_column", "problem_type"):
        if getattr(arguments, other) is not None:
            raise ValueError(f"--task_name {name} has its own columns and labels: leave out --{other}.")
    glue, files = GLUE[name], arguments.files
    source = None if files else arguments.dataset_name or DATASET

    def load() -> DatasetDict:
        if source is None:
            data = load_files(files, glue.form)
        else:
            data = load_hub(source, arguments.dataset_config_name or (name if source == DATASET else None), glue.form)
        return _with_validation(data, arguments.validation_split)

    return Task(
        name=name,
        model_class=DSAForSequenceClassification,
        text_columns=glue.texts,
        class_names=glue.class_names,
        load=load,
        source=f"{source}, {name}" if source == DATASET else source or ", ".join(path.name for path in files.values()),
        fingerprint=glue.form.fingerprint,
        example=glue.example,
        metrics=glue.metrics,
        metric_for_best_model=glue.metric_for_best_model,
        splits=(*files, *arguments.held_out) if source is None else None,
    )


def _infer_format(tables: Mapping[str, Table], arguments: DataArguments) -> tuple[ExampleFormat, tuple[str, ...]]:
    """What the examples are, and the splits that have labels."""
    if "train" not in tables:
        raise ValueError(f"{arguments.dataset_name} has no split 'train', only {', '.join(tables)}.")
    columns, label_column = find_columns(tables["train"], arguments.text_column, arguments.label_column)
    logger.info(f"The texts are in {' and '.join(map(repr, columns))}, the labels in {label_column!r}.")
    labels, labelled = infer_labels(tables, label_column, arguments.problem_type)
    texts = dict(zip(("text", "text_pair"), [(column,) for column in columns], strict=False))
    return ExampleFormat(texts, (label_column,), labels), labelled


def _with_validation(data: DatasetDict, size: float | None) -> DatasetDict:
    """Hold validation examples out where a size is given."""
    found = [split for split in data if is_validation(split)]
    if size is None:
        if not found:
            raise ValueError(
                f"The data have no validation split, only {', '.join(data)}: give --validation_split 0.1 to hold a "
                "tenth of the training examples out."
            )
        return data
    if found:
        raise ValueError(f"The data have a split {found[0]!r}: leave out --validation_split.")
    train, validation = hold_out(data["train"], size)
    return DatasetDict({"train": train, "validation": validation, **{k: v for k, v in data.items() if k != "train"}})


if __name__ == "__main__":
    sys.exit(run_script(main))
