"""Train and evaluate a sentence encoder on the sentiment of the Stanford Sentiment Treebank (SST-2 and SST-5).

`accelerate launch run_glue_style/run_sst.py --setting dsa-single-sst2 --train_file train.txt --validation_file dev.txt
--test_file test.txt --vectors glove.840B.300d.zip` trains on the treebank's own files of trees; --dataset_name names a
data set of sentences instead.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from datasets import DatasetDict

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.options_dsa import option
from modeling_dsa.shipped.settings import setting_folder
from run_glue_style.reporting.reporters import REPORTERS
from run_glue_style.tasks.arguments import DatasetArguments
from run_glue_style.tasks.labelled_examples import load_hub
from run_glue_style.tasks.metrics import ClassificationMetric
from run_glue_style.tasks.sst import CLASS_NAMES, SST, SST_SENTENCES, Classes, load_sst_files
from run_glue_style.tasks.task import Task
from run_glue_style.training.entry import read_task, run_script


@dataclass
class DataArguments(DatasetArguments):
    """The sentences: a data set, such as stanfordnlp/sst2 or SetFit/sst5, or files, such as the treebank's trees."""

    classes: Classes = option(2, "2 for SST-2 (negative, positive), 5 for SST-5 (very negative to very positive).")
    phrases: bool = option(False, "Train on all phrases of the trees in train_file, not only on sentences.")


def make_task(arguments: DataArguments) -> Task:
    """The task for these options.

    Raises:
        ValueError: There are neither a data set nor files, or options contradict each other.
    """
    classes, name, files = arguments.classes, arguments.dataset_name, arguments.files
    if name is None and not files:
        raise ValueError("Say what the data are: both --train_file and --validation_file, or --dataset_name.")
    if name is not None and arguments.phrases:
        raise ValueError(
            "--phrases needs trees: give the treebank's .txt files instead of --dataset_name, or --phrases false to "
            "train on sentences alone, which the papers do not."
        )

    def load() -> DatasetDict:
        if name is not None:
            return load_hub(name, arguments.dataset_config_name, SST[classes])
        return load_sst_files(files, classes, arguments.phrases)

    return Task(
        name=f"sst{classes}",
        model_class=DSAForSequenceClassification,
        text_columns=("sentence",),
        class_names=CLASS_NAMES[classes],
        load=load,
        source=name or ", ".join(path.name for path in files.values()),
        example=SST_SENTENCES[:1],
        fingerprint=SST[classes].fingerprint,
        metrics=(ClassificationMetric(CLASS_NAMES[classes]),),
        check_setting=partial(check_setting, classes=classes),
        splits=None if name is not None else files.keys(),
    )


def check_setting(setting: str, classes: Classes) -> None:
    """Refuse a setting for the other number of classes, which would train another task than its name says.

    Raises:
        ValueError: The setting's classes are those of SST, but of the other number; or it cannot be read.
    """
    names = tuple(DSAConfig.get_config_dict(setting_folder(setting))[0].get("id2label", {}).values())
    if names != CLASS_NAMES[classes] and names in CLASS_NAMES.values():
        raise ValueError(f"The setting {setting} has {len(names)} classes: give --classes {len(names)}.")


read = partial(read_task, DataArguments, make_task, __doc__, REPORTERS)


def main() -> None:
    """Train, evaluate and report, as the process's own command line says."""
    read().train()


if __name__ == "__main__":
    sys.exit(run_script(main))
