"""Natural language inference pairs, from files or from the Hub, as one kind of `datasets.DatasetDict`."""

from collections.abc import Mapping
from pathlib import Path

from datasets import Dataset, DatasetDict

from run_glue_style.tasks import labelled_rows

from .labelled_rows import RowRules

LABEL_NAMES = ("entailment", "neutral", "contradiction")
_RULES = RowRules(
    texts={"premise": ("sentence1", "premise"), "hypothesis": ("sentence2", "hypothesis")},
    labels=("gold_label", "label"),
    label_names=LABEL_NAMES,
    version=2,
)
FEATURES = _RULES.features


def load_nli_files(files: Mapping[str, Path]) -> DatasetDict:
    """Read labelled sentence pairs from files, once: later calls take them from the cache of `datasets`.

    The formats are those of SNLI and MultiNLI (`.jsonl`, and tab-separated `.txt` with a header, where quotes are
    plain characters), `.tsv` (the same as `.txt`), `.csv` and `.parquet`, each also with `.gz` behind.
    Columns: `sentence1` or `premise`, `sentence2` or `hypothesis`, `gold_label` or `label`; others are ignored. A
    label is a name of `LABEL_NAMES` (in any case), its number 0 to 2, or `-` or -1 for a pair without a gold label.
    Such pairs are dropped, and how many is logged.

    Args:
        files: the file of each split, such as `{"train": Path("snli_1.0_train.jsonl")}`.

    Returns:
        For each split the columns `premise`, `hypothesis` (text as it is in the file) and `label` (`LABEL_NAMES`).

    Raises:
        FileNotFoundError: if a file does not exist.
        ValueError: if a file has another ending, is broken or empty or has no gold label at all, a column is missing,
            a sentence is null or blank, or a label is unknown. The sentence names the file, the row and the value.
    """
    if not files:
        raise ValueError("no files were given: at least one split needs a file")
    return DatasetDict({split: labelled_rows.load_file(split, Path(path), _RULES) for split, path in files.items()})


def load_nli_dataset(name: str, config: str | None = None, revision: str | None = None) -> DatasetDict:
    """Load a data set of labelled sentence pairs from the Hub or a local folder, with all of its splits.

    Columns and labels are as in `load_nli_files`. Where the data set names its classes they are matched by name, so
    their order may differ; where it has bare integers they must follow `LABEL_NAMES`.

    Args:
        name: such as `stanfordnlp/snli` or `nyu-mll/multi_nli`, or a folder.
        config: the configuration, where the data set has several (`mnli` of `nyu-mll/glue`).
        revision: a branch, tag or commit of the data set's repository.

    Returns:
        The columns `premise`, `hypothesis` and `label` for each split; a split without any gold label (a hidden test
        set) is empty.

    Raises:
        ConnectionError: if the Hub cannot be reached and the data set is not in the cache.
        FileNotFoundError: if there is no such data set or folder.
        ValueError: as in `load_nli_files`, or if there is no such configuration.
    """
    return labelled_rows.load_hub(name, config, revision, _RULES)


def fingerprint(dataset: Dataset) -> str:
    """SHA-256 of a split's pairs and labels in their order, the same for the same rows from any kind of file.

    Args:
        dataset: one split of `load_nli_files` or `load_nli_dataset`.

    Returns:
        64 hexadecimal digits.
    """
    return labelled_rows.fingerprint(dataset, tuple(FEATURES))
