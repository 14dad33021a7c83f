"""Options that name the data of a task: a data set, or files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from modeling_dsa.options_dsa import option


@dataclass
class DatasetArguments:
    """Labelled examples: a data set, or files."""

    _argument_group_name: ClassVar[str] = "data"

    dataset_name: str | None = option(None, "Data set on the Hub, or a folder, such as stanfordnlp/snli.")
    dataset_config_name: str | None = option(None, "Its configuration, where it has several.")
    train_file: Path | None = option(
        None,
        "Examples to train on: the data's original .jsonl or .txt, .parquet, .csv or .tsv, each also with .gz behind.",
    )
    validation_file: Path | None = option(None, "Examples that choose the best weights.")
    test_file: Path | None = option(None, "Examples that are read once, at the end.")

    @property
    def files(self) -> dict[str, Path]:
        """The files that were given, by split.

        Raises:
            ValueError: A data set beside files, files without one for training or validation, or a configuration
                without its data set.
        """
        splits = {"train": self.train_file, "validation": self.validation_file, "test": self.test_file}
        files = {name: path for name, path in splits.items() if path is not None}
        if self.dataset_name is not None and files:
            raise ValueError("Give either --dataset_name or files, and not both.")
        if self.dataset_name is None and self.dataset_config_name is not None:
            raise ValueError("--dataset_config_name belongs to a --dataset_name: give that too.")
        if files:
            self.check_splits(files)
        return files

    def check_splits(self, files: Mapping[str, Path]) -> None:
        """Refuse files that are not enough to train from.

        Raises:
            ValueError: There is none for training, or none for validation.
        """
        if not {"train", "validation"} <= set(files):
            raise ValueError("Give both --train_file and --validation_file.")
