"""Train and evaluate a sentence encoder on natural language inference.

`accelerate launch run_glue_style/run_nli.py --setting dsa-single-snli` trains on the SNLI pairs that ship with the
package; --dataset_name or --train_file name others.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from dataclasses import dataclass
from functools import partial

from datasets import DatasetDict, concatenate_datasets

from modeling_dsa import DSAForNLI
from modeling_dsa.files.hashing import file_hash
from modeling_dsa.options_dsa import option
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES, NLI_PAIRS
from run_glue_style.reporting.reporters import REPORTERS
from run_glue_style.sample import SAMPLE_FILES, SAMPLE_VECTORS, baseline_line
from run_glue_style.tasks.arguments import DatasetArguments
from run_glue_style.tasks.class_shares import FILE
from run_glue_style.tasks.labelled_examples import existing_file, load_file, load_files, load_hub
from run_glue_style.tasks.metrics import ClassificationMetric
from run_glue_style.tasks.nli import NLI
from run_glue_style.tasks.task import Task
from run_glue_style.training.entry import read_task, run_script


@dataclass
class DataArguments(DatasetArguments):
    """The pairs; with none of these options, the SNLI pairs that ship with the package."""

    extra_train_files: list[Path] | None = option(
        None, "More pairs to train on, of other data sets, in files like train_file."
    )


def make_task(arguments: DataArguments) -> Task:
    """The task for these options.

    Raises:
        ValueError: Options contradict each other.
    """
    files, name, extra_files = arguments.files, arguments.dataset_name, arguments.extra_train_files or []

    def load() -> DatasetDict:
        if name is not None:
            data = load_hub(name, arguments.dataset_config_name, NLI)
        else:
            data = load_files(files or SAMPLE_FILES, NLI)
        if extra_files:
            if "train" not in data:
                raise ValueError(f"{name} has no split 'train', only {', '.join(data)}.")
            _refuse_copies([*([] if name is not None else [(files or SAMPLE_FILES)["train"]]), *extra_files])
            parts = [data["train"], *(load_file("train", path, NLI) for path in extra_files)]
            data["train"] = concatenate_datasets(
                [part.add_column(FILE, [index] * len(part)) for index, part in enumerate(parts)]
            )
        return data

    is_sample = name is None and not files
    source = "SNLI pairs of the package" if is_sample else name or ", ".join(path.name for path in files.values())
    return Task(
        name="nli",
        model_class=DSAForNLI,
        text_columns=("premise", "hypothesis"),
        class_names=NLI_CLASS_NAMES,
        load=load,
        source=", ".join([source, *(path.name for path in extra_files)]),
        default_vectors=SAMPLE_VECTORS if is_sample else None,
        baseline=baseline_line() if is_sample and not extra_files else None,
        example=NLI_PAIRS[0],
        fingerprint=NLI.fingerprint,
        metrics=(ClassificationMetric(NLI_CLASS_NAMES),),
        splits=None if name is not None else (files or SAMPLE_FILES).keys(),
    )


def _refuse_copies(paths: Sequence[Path]) -> None:
    first: dict[str, Path] = {}
    for path in paths:
        other = first.setdefault(file_hash(existing_file("train", path)), path)
        if other is not path:
            raise ValueError(f"{path} holds the same pairs as {other}: leave one out.")


read = partial(read_task, DataArguments, make_task, __doc__, REPORTERS)


def main() -> None:
    """Train, evaluate and report, as the process's own command line says."""
    read().train()


if __name__ == "__main__":
    sys.exit(run_script(main))
