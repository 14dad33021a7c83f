"""The data of a run: labelled splits, and their tokenised examples."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Integers
from modeling_dsa.unknown_texts_dsa import told_unknown, without_known_tokens
from run_glue_style.tasks.class_shares import FILE, ClassShares
from run_glue_style.tasks.distinct_texts import DistinctTexts, distinct_texts
from run_glue_style.tasks.task import Task
from run_glue_style.tasks.validation_split import is_validation

from .token_store import token_cache, tokenize_once
from .tokenized_examples import TokenizedExamples, TokenizedTexts, TruncationStats, truncation_stats

logger = logging.getLogger(__name__)

_SHORT_EXAMPLES = 3


@dataclass(frozen=True)
class LabelledData:
    """What a task loads, as a run uses it.

    Attributes:
        splits: Those with labels, `train` among them.
        validation: Names of those that are evaluated during the training; the first one chooses the best weights.
        texts: Their texts.
    """

    splits: DatasetDict
    validation: tuple[str, ...]
    texts: DistinctTexts

    @property
    def evaluated(self) -> list[str]:
        """Names of all splits but `train`."""
        return [name for name in self.splits if name != "train"]


@dataclass(frozen=True)
class TokenizedData:
    """Tokenised examples.

    Attributes:
        splits: By name.
        groups: The group of each training example, where the task has groups. (examples,)
        truncation: How much of its texts the model reads, by split and column.
    """

    splits: Mapping[str, TokenizedExamples]
    groups: list[int] | None
    truncation: Mapping[str, Mapping[str, TruncationStats]]


def load_data(task: Task, max_train_samples: int | None) -> LabelledData:
    """Load a task's data.

    Args:
        task: The task.
        max_train_samples: Keep only so many training examples, the first ones, of several files in proportion.

    Raises:
        ValueError: There is no training or no validation split with labels, the training examples have one class alone,
            or another split is the training data.
    """
    # A split without examples is one whose labels are hidden.
    splits = DatasetDict({name: split for name, split in task.load().items() if len(split)})
    validation = tuple(name for name in splits if is_validation(name))
    if "train" not in splits or not validation:
        raise ValueError(
            f"Training needs a train and a validation split with labels; the data have: {', '.join(splits) or 'none'}."
        )
    if max_train_samples is not None:
        splits["train"] = _first_examples(splits["train"], max_train_samples)
    if task.class_names and len(classes := set(splits["train"].unique("label"))) < 2:
        raise ValueError(
            f"All {len(splits['train']):,} training examples are {task.class_names[classes.pop()]!r}: give examples of "
            "two classes or more, in a random order where --max_train_samples keeps the first ones."
        )
    if not task.class_names and len(set(splits[validation[0]].unique("label"))) < 2:
        raise ValueError(
            f"All labels of the split {validation[0]!r} are the same, so it cannot choose the best weights: give other "
            "examples."
        )
    data = LabelledData(splits, validation, distinct_texts(splits, task.text_columns))
    _tell_shared(data)
    _tell_missing_classes(data, task.class_names)
    return data


def _first_examples(train: Dataset, count: int) -> Dataset:
    """The first ones; of several files each has its share, so that a trial tries all of them."""
    if FILE not in train.column_names:
        return train.select(range(min(count, len(train))))
    files = np.asarray(train[FILE][:])
    sizes = np.bincount(files)
    place = np.concatenate([np.arange(size) / size for size in sizes])  # of each example in its file
    return train.select(np.sort(np.argsort(place, kind="stable")[:count]))


def _tell_shared(data: LabelledData) -> None:
    """Warn of evaluated examples whose texts are trained on, and refuse a split that is the training data."""
    examples = {
        split: list(zip(*(column.tolist() for column in columns.values()), strict=True))  # indices of their texts
        for split, columns in data.texts.indices.items()
    }
    train = set(examples["train"])
    for name in data.evaluated:
        shared = sum(example in train for example in examples[name])
        count = len(data.splits[name])
        if shared == count and count == len(data.splits["train"]):
            raise ValueError(f"The split {name!r} is the training data: give other examples to measure the model with.")
        if name not in data.validation and examples[name] == examples[data.validation[0]]:
            raise ValueError(
                f"The split {name!r} is {data.validation[0]!r}, which chooses the best weights: give other examples to "
                "measure the model with."
            )
        if shared:
            logger.warning(f"{shared:,} of {count:,} examples of the split {name!r} are trained on, too.")


def _tell_missing_classes(data: LabelledData, names: Sequence[str]) -> None:
    """Warn of classes that no training example has."""
    known = set(data.splits["train"].unique("label"))
    for index, name in enumerate(names):
        if index not in known:
            counts = {split: data.splits[split]["label"][:].count(index) for split in data.evaluated}
            told = ", ".join(
                f"{count:,} of {len(data.splits[split]):,} of {split!r}" for split, count in counts.items()
            )
            logger.warning(f"No training example is {name!r}, so it cannot be learnt; {told} are.")


def short_examples(split: Dataset, columns: Sequence[str]) -> list[list[str]]:
    """The texts of some examples from all over a split, each the shortest of its part: a card shows them."""
    size = -(-len(split) // _SHORT_EXAMPLES)
    parts = (split[start : start + size] for start in range(0, len(split), size))
    return [
        min(map(list, zip(*(part[column] for column in columns), strict=True)), key=lambda texts: len("".join(texts)))
        for part in parts
    ]


def tokenize_data(
    task: Task,
    data: LabelledData,
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int | None,
    show_progress: bool,
    shares: ClassShares | None,
    start: str | None,
) -> TokenizedData:
    """Tokenise each distinct text once, in the cache of `datasets`.

    Args:
        task: The task.
        data: Its data.
        tokenizer: The model's.
        max_tokens: How many tokens of a text the model reads; None for all.
        show_progress: Show a bar.
        shares: Of the classes of the training examples, for a loss that must know them.
        start: The saved model whose tokenizer it is, and whose words are all that there are.

    Raises:
        ValueError: The saved model knows no word of any text.
    """
    columns, indices = task.text_columns, data.texts.indices
    ids, lengths = tokenize_once(tokenizer, data.texts.texts, token_cache(), show_progress)
    if start is not None:
        _tell_unknown(start, data.texts.texts, without_known_tokens(ids, lengths, tokenizer))
    texts = TokenizedTexts(tokenizer, ids, lengths, len(columns), max_tokens)
    splits = {
        name: TokenizedExamples(
            texts,
            [indices[name][column] for column in columns],
            split["label"][:],
            shares if name == "train" else None,
        )
        for name, split in data.splits.items()
    }
    groups = None
    if task.group_column is not None:
        groups = indices["train"][task.group_column].tolist()
        splits |= {name: splits[name].sorted_by(indices[name][task.group_column]) for name in data.evaluated}
    truncation = {
        name: {column: truncation_stats(split, sentence, max_tokens) for sentence, column in enumerate(columns)}
        for name, split in splits.items()
    }
    return TokenizedData(splits, groups, truncation)


def _tell_unknown(start: str, texts: Sequence[str], unknown: Integers) -> None:
    """Warn where a saved model cannot read the texts, and refuse to train where it can read none."""
    if not unknown.any():
        return
    what = told_unknown(start, texts, unknown.nonzero()[0].tolist())
    if unknown.all():
        raise ValueError(f"{what}: train a --setting with word vectors of their language.")
    logger.warning(f"{what}: they are all the same to it.")


def truncation_sentence(data: TokenizedData, max_tokens: int | None) -> str:
    """How much of all texts a model reads that sees the first `max_tokens` tokens of each, for people."""
    found = [column for columns in data.truncation.values() for column in columns.values()]
    longest = max(column.longest for column in found)
    truncated = sum(column.truncated for column in found)
    if max_tokens is None or not truncated:
        return f"Every token is read; the longest text has {longest:,} tokens."
    unread = sum(column.unread_share * column.tokens for column in found) / sum(column.tokens for column in found)
    return (
        f"The first {max_tokens:,} tokens of each text are read: {truncated:,} of "
        f"{sum(column.texts for column in found):,} texts are longer, the longest has {longest:,} tokens, and "
        f"{unread:.1%} of all tokens are not read."
    )
