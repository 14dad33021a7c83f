"""Train and evaluate a sentence encoder on natural language inference.

`accelerate launch run_glue_style/run_nli.py --setting dsa-single-snli` trains on the SNLI pairs that ship with the
package; --dataset_name or --train_file name others.
"""

import sys
from pathlib import Path

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from datasets import DatasetDict

from modeling_dsa import DSAForNLI
from run_glue_style.reporting.reporters import REPORTERS
from run_glue_style.sample import SAMPLE_FILES, SAMPLE_VECTORS, baseline_line
from run_glue_style.tasks.arguments import DatasetArguments
from run_glue_style.tasks.labelled_examples import load_files, load_hub
from run_glue_style.tasks.metrics import ClassificationMetric
from run_glue_style.tasks.nli import LABEL_NAMES, NLI
from run_glue_style.tasks.task import Task
from run_glue_style.training.entry import run_script, run_task


class DataArguments(DatasetArguments):
    """The pairs; with none of these options, the SNLI pairs that ship with the package."""


def make_task(arguments: DataArguments) -> Task:
    """The task for these options.

    Raises:
        ValueError: Options contradict each other.
    """
    files, name = arguments.files, arguments.dataset_name

    def load() -> DatasetDict:
        if name is not None:
            return load_hub(name, arguments.dataset_config_name, NLI)
        return load_files(files or SAMPLE_FILES, NLI)

    is_sample = name is None and not files
    return Task(
        name="nli",
        model_class=DSAForNLI,
        text_columns=("premise", "hypothesis"),
        label_names=LABEL_NAMES,
        load=load,
        source="SNLI pairs of the package" if is_sample else name or ", ".join(path.name for path in files.values()),
        default_vectors=SAMPLE_VECTORS if is_sample else None,
        baseline=baseline_line() if is_sample else None,
        example=("A man is playing a guitar on stage.", "A man is asleep."),
        fingerprint=NLI.fingerprint,
        metrics=(ClassificationMetric(LABEL_NAMES),),
    )


def main() -> None:
    """Train, evaluate and report, as the command line says."""
    run_task(DataArguments, make_task, __doc__, REPORTERS)


if __name__ == "__main__":
    sys.exit(run_script(main))
