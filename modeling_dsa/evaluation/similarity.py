"""How well the cosines of sentence vectors follow human scores of similarity."""

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr, spearmanr

from modeling_dsa.batching_dsa import Vectors, unit_vectors
from modeling_dsa.files.columns import LabelNames, find_columns
from modeling_dsa.files.label_values import as_number
from modeling_dsa.files.tables import Table, file_table
from modeling_dsa.files.text_values import row_texts

Encode: TypeAlias = Callable[[list[str]], Vectors]  # sentences to their vectors, (sentences, numbers)
Numbers: TypeAlias = npt.NDArray[np.float64]

_DIGITS = 12  # of a cosine in float64 behind the point: those after them are rounding
SCORES = LabelNames(
    ("score", "similarity", "similarity_score", "relatedness", "relatedness_score", "label", "labels", "rating"),
    holds="scores",
    option="--score_column",
)


@dataclass(frozen=True)
class SimilarityPairs:
    """Pairs of sentences and how similar people found them.

    Attributes:
        first: A sentence of each pair.
        second: The other one.
        scores: In any unit, higher where they are more similar. (pairs,)
    """

    first: list[str]
    second: list[str]
    scores: Numbers


@dataclass(frozen=True)
class Correlations:
    """How well numbers follow others: 1 in full, 0 not at all or where all on one side are equal."""

    spearman: float
    pearson: float


def read_similarity(
    path: Path, text_columns: Sequence[str] | None = None, score_column: str | None = None
) -> SimilarityPairs:
    """Read pairs with a score, such as STS-B and SICK, where the options --text_column and --score_column name columns.

    Args:
        path: A file of `read_rows`.
        text_columns: Its two columns of texts; default: the usual names, such as `sentence1` and `sentence2`.
        score_column: Its column of scores; default: the usual names, such as `score` and `relatedness`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken, its columns leave a doubt, a text is empty, a score is no number, or the scores
            are all the same. The message says where.
    """
    table = file_table(path)
    columns, score_column = find_columns(table, text_columns, score_column, SCORES)
    if len(columns) != 2:
        raise ValueError(
            f"{path}: similarity needs two texts in a row, but the texts are in {', '.join(columns)} alone: name two "
            "columns with --text_column."
        )
    return _read_pairs(table, columns, score_column)


def read_named_similarity(path: Path) -> SimilarityPairs:
    """Read pairs with a score where no option names columns, so that their own names have to tell what they hold.

    Args:
        path: As for `read_similarity`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As for `read_similarity`.
    """
    table = file_table(path)
    return _read_pairs(table, *_named_columns(table))


def _named_columns(table: Table) -> tuple[Sequence[str], str]:
    """The two columns of texts and that of scores."""
    names = dict.fromkeys(itertools.chain.from_iterable(row for _, row in table.read(None)))  # or the file is broken
    if not names:
        raise ValueError(f"{table.name} has no rows: give pairs of sentences with a score.")
    with suppress(ValueError):  # of a doubt: it names options
        columns, score_column = find_columns(table, label_names=SCORES)
        if len(columns) == 2:
            return columns, score_column
    where = "" if table.has_types else " in its first line"
    raise ValueError(
        f"{table.name}: of the columns {', '.join(map(repr, names)):.200} it is not clear which hold the two sentences "
        f"and their score: call these sentence1, sentence2 and score{where}, and leave the others out."
    )


def _read_pairs(table: Table, columns: Sequence[str], score_column: str) -> SimilarityPairs:
    """The pairs of a table whose columns are known."""
    texts: list[tuple[str, str]] = []
    scores: list[float] = []
    for location, row in table.read([*columns, score_column]):
        first, second = row_texts(row, columns, location)
        texts.append((first, second))
        scores.append(_score(row[score_column], f"{location}, column {score_column!r}"))
    if len(set(scores)) < 2:
        raise ValueError(f"{table.name}: all scores are the same: nothing can be compared with them.")
    return SimilarityPairs([first for first, _ in texts], [second for _, second in texts], np.array(scores))


def evaluate_similarity(encode: Encode, pairs: SimilarityPairs) -> Correlations:
    """Correlate the cosines of a model's vectors with the scores.

    Args:
        encode: Gives the vectors of sentences. (sentences, numbers)
        pairs: What `read_similarity` gives.
    """
    vectors = encode([*pairs.first, *pairs.second])  # (2 * pairs, numbers)
    return correlate(cosines(vectors[: len(pairs.first)], vectors[len(pairs.first) :]), pairs.scores)


def cosines(first: Vectors, second: Vectors) -> Numbers:
    """The cosine of each vector with its counterpart; 0 where one has no length. (pairs, numbers) twice -> (pairs,)"""
    of_first, of_second = (unit_vectors(vectors.astype(np.float64)) for vectors in (first, second))
    products: Numbers = (of_first * of_second).sum(axis=1)
    return products.round(_DIGITS)  # those of equal vectors are ties, which rounding would rank


def correlate(predicted: npt.NDArray[Any], gold: npt.NDArray[Any]) -> Correlations:
    """Correlate numbers with the true ones. (examples,) twice"""
    # Equal numbers may differ by rounding.
    if len(gold) < 2 or np.ptp(predicted) <= 10.0**-_DIGITS * np.abs(predicted).max() or np.ptp(gold) == 0:
        return Correlations(0.0, 0.0)
    gold = gold / np.abs(gold).max()  # the squares of the largest numbers would be infinite
    spearman, pearson = (float(function(predicted, gold).statistic) for function in (spearmanr, pearsonr))
    return Correlations(*(value if math.isfinite(value) else 0.0 for value in (spearman, pearson)))


def _score(value: object, location: str) -> float:
    number = as_number(value)
    if number is None:
        raise ValueError(f"{location}: the score {value!r:.80} is no number: fix or remove this row.")
    return float(number)
