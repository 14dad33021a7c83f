"""Stanford Sentiment Treebank, from its bracketed trees, tables or the Hub, as one kind of `datasets.DatasetDict`."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from datasets import DatasetDict

from modeling_dsa.files.lines import read_lines
from modeling_dsa.files.rows import Rows
from modeling_dsa.files.text_files import file_extension

from .labelled_examples import ExampleFormat, load_file
from .labels import KnownClasses

Classes: TypeAlias = Literal[2, 5]
Node: TypeAlias = tuple[int, int, int]  # label 0 to 4, first word, and the word behind the last

CLASS_NAMES: dict[Classes, tuple[str, ...]] = {
    2: ("negative", "positive"),
    5: ("very negative", "negative", "neutral", "positive", "very positive"),
}
SST: dict[Classes, ExampleFormat] = {
    classes: ExampleFormat({"sentence": ("sentence", "text")}, label_columns=("label",), labels=KnownClasses(names))
    for classes, names in CLASS_NAMES.items()
}
# What cards and closing words show.
SST_SENTENCES = (
    "A gripping film with a great cast.",
    "The plot is thin and the jokes fall flat.",
    "It is not as bad as it sounds.",
)
_NEUTRAL = 2
_UNLABELLED = "-"
_TOKEN = re.compile(r"[()]|[^() \t]+")  # a no-break space may stand in a word


def load_sst_files(files: Mapping[str, Path], classes: Classes, phrases: bool = False) -> DatasetDict:
    """Read sentences and their sentiment from files, once: later calls take them from the cache of `datasets`.

    `.txt` holds the original trees, one a line, such as `(3 (2 It) (3 (3 works) (2 .)))`: a sentence is the words of a
    tree with spaces between, as they stand there, and its label that of the root. `.jsonl`, `.csv`, `.tsv` and
    `.parquet` have the columns `sentence` or `text`, and `label`: a name of `CLASS_NAMES[classes]` (in any case), its
    number, or `-` or -1 for a row without a label. Each may be packed as `.gz`. With 2 classes the labels 0 and 1 of
    a tree are negative, 3 and 4 are positive, and 2 is no label. Rows without a label are dropped; how many is logged.

    Args:
        files: The file of each split, such as `{"train": Path("train.txt")}`.
        classes: 2 for SST-2, 5 for SST-5.
        phrases: Whether the rows of `train` are all nodes of its trees and not only the roots, each different phrase
            once. In the treebank a phrase has the same label wherever it stands (its 318,582 training nodes are
            159,274 phrases); in other files it has the most frequent of the five, and of equals the first.

    Returns:
        For each split the columns `sentence` and `label` (`CLASS_NAMES[classes]`).

    Raises:
        FileNotFoundError: A file does not exist.
        ValueError: A file has an unsupported extension, is broken or empty or has no label at all; a tree is malformed;
            a column is missing, a sentence is null or blank, or a label is unknown; or phrases are wanted of a table.
            The sentence names the file, the line and what is wrong.
    """
    splits = DatasetDict()
    for split, path in files.items():
        wants_phrases = phrases and split == "train"
        if file_extension(path) == ".txt":
            reader = partial(_read_trees, classes=classes, phrases=wants_phrases)
        elif wants_phrases:
            raise ValueError(
                f"{path} has no trees: phrases are read from the .txt files of the treebank only. Give these, or "
                "--phrases false to train on sentences alone."
            )
        else:
            reader = None
        splits[split] = load_file(split, path, SST[classes], reader)
    return splits


def parse_tree(text: str, location: str) -> tuple[list[str], list[Node]]:
    """Read a bracketed tree of any depth.

    Args:
        text: Such as `(3 (2 It) (3 works))`.
        location: Where it stands, for messages.

    Returns:
        The words, and the nodes in the order in which they end, so that the root is the last.

    Raises:
        ValueError: The tree is malformed. The message says how.
    """
    words: list[str] = []
    nodes: list[Node] = []
    open_nodes: list[tuple[int, int, int]] = []  # label, first word, and how many nodes had ended before
    tokens = iter(_TOKEN.findall(text))
    for token in tokens:
        if nodes and not open_nodes:
            raise _malformed(location, f"{token!r} stands behind the end")
        if not open_nodes and token != "(":
            raise _malformed(location, f"it begins with {token!r}, not with '('")
        if open_nodes and token != ")":
            _, first, ended = open_nodes[-1]
            # The original files have leaves of two words, such as (2 8 1\/2).
            if len(words) > first and (len(nodes) > ended) == (token != "("):
                raise _malformed(location, "a word stands beside a node")
        if token == "(":
            label = next(tokens, "")
            if label not in ("0", "1", "2", "3", "4"):
                raise _malformed(location, f"a node has the label {label!r}, not 0 to 4")
            open_nodes.append((int(label), len(words), len(nodes)))
        elif token == ")":
            number, first, _ = open_nodes.pop()
            if first == len(words):
                raise _malformed(location, f"a node with the label {number} is empty")
            nodes.append((number, first, len(words)))
        else:
            words.append(token)
    if open_nodes:
        raise _malformed(location, f"{len(open_nodes)} closing bracket(s) are missing at the end")
    return words, nodes


def _malformed(location: str, what: str) -> ValueError:
    return ValueError(f"{location} is no tree of the treebank: {what}; fix or remove this line.")


def _trees(path: Path) -> Iterator[tuple[str, list[str], list[Node]]]:
    for location, line in read_lines(path):
        if line.strip():
            yield location, *parse_tree(line, location)


def _read_trees(path: Path, classes: Classes, phrases: bool) -> Rows:
    rows = _phrases(path) if phrases else _sentences(path)
    return ((location, {"sentence": text, "label": _class_of(label, classes)}) for location, text, label in rows)


def _class_of(label: int, classes: Classes) -> int | str:
    if classes == 5:
        return label
    return _UNLABELLED if label == _NEUTRAL else int(label > _NEUTRAL)


def _sentences(path: Path) -> Iterator[tuple[str, str, int]]:
    for location, words, nodes in _trees(path):
        yield location, " ".join(words), nodes[-1][0]


def _phrases(path: Path) -> Iterator[tuple[str, str, int]]:
    labels: dict[str, Counter[int]] = defaultdict(Counter)
    for _, words, nodes in _trees(path):
        for label, first, end in nodes:
            labels[" ".join(words[first:end])][label] += 1
    for phrase, found in labels.items():
        # most_common keeps the order of the first meeting among equals.
        yield f"{path}, phrase {phrase!r}", phrase, found.most_common(1)[0][0]
