"""Train and evaluate a sentence encoder on natural language inference.

`accelerate launch run_glue_style/run_nli.py --setting dsa-single-snli` trains on the SNLI pairs that ship with the
package; --dataset_name or --train_file name others.
"""

import sys
from pathlib import Path

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Python puts a script's own folder first, where its modules would hide packages of the same name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from datasets import DatasetDict

from modeling_dsa import DSAForNLI
from run_glue_style.sample import SAMPLE_FILES, SAMPLE_VECTORS, baseline_line
from run_glue_style.tasks.nli import LABEL_NAMES, fingerprint, load_nli_dataset, load_nli_files
from run_glue_style.training.arguments import DatasetArguments, parse_arguments
from run_glue_style.training.classification import Task, run_script, train_and_evaluate


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
            return load_nli_dataset(name, arguments.dataset_config_name)
        return load_nli_files(files or SAMPLE_FILES)

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
        fingerprint=fingerprint,
    )


def main() -> None:
    """Read the command line, train, evaluate and say what came out."""
    data, model, recipe, run, overrides = parse_arguments([DataArguments], __doc__)
    task = make_task(data)
    train_and_evaluate(task, model, recipe, run, overrides)


if __name__ == "__main__":
    sys.exit(run_script(main))
