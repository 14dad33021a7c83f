"""Stances of news bodies towards headlines (FNC-1, the Fake News Challenge), from its original files.

The competition's test set has headlines and bodies that its training set has not, but it has no validation set. One
is held out here: whole topics, which is like the test set (`hold_out_topics`), or bodies with their real pairs
(`hold_out_bodies`).
"""

import logging
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from datasets import Dataset, DatasetDict, concatenate_datasets
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedGroupKFold

from modeling_dsa.files.hashing import file_hash, require_hash
from modeling_dsa.files.rows import Rows
from modeling_dsa.files.text_files import read_rows

from .distinct_texts import Indices, distinct_texts
from .fnc_score import UNRELATED
from .labelled_examples import ExampleFormat, existing_file, load_file
from .labels import KnownClasses

logger = logging.getLogger(__name__)

ValidationBy: TypeAlias = Literal["topics", "bodies"]

CLASS_NAMES = ("agree", "disagree", "discuss", UNRELATED)
STANCE = ExampleFormat(
    texts={"headline": ("Headline",), "body": ("articleBody",), "body_id": ("Body ID",)},
    label_columns=("Stance",),
    labels=KnownClasses(CLASS_NAMES),
)
# What cards and closing words show.
STANCE_PAIRS = (
    ("Police find mass graves", "The mayor said that no graves were found."),
    ("Police find mass graves", "Officers confirmed that several graves were found near the town."),
    ("Police find mass graves", "The new phone has a larger screen and a better camera."),
)


@dataclass(frozen=True)
class StanceFiles:
    """The two files of a split, under the competition's column names.

    Attributes:
        stances: `Headline`, `Body ID`, `Stance`.
        bodies: `Body ID`, `articleBody`.
    """

    stances: Path
    bodies: Path


def load_stances(
    train: StanceFiles, test: StanceFiles, validation_share: float, validation_by: ValidationBy = "topics"
) -> DatasetDict:
    """Read both sets, once: later calls take them from the cache of `datasets`. Hold a part of the training set out.

    Args:
        train: The training set.
        test: The competition's test set; it stays complete.
        validation_share: As in `hold_out_topics` and `hold_out_bodies`.
        validation_by: What is held out.

    Returns:
        The splits `train`, `validation` and `test` with the columns `headline`, `body`, `body_id` and `label`
        (`CLASS_NAMES`).

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file is broken or empty or lacks a column, a text is blank, a stance is unknown, a body is missing
            or comes twice with different texts (the message names file and line), or nothing can be held out.
    """
    hold_out = hold_out_topics if validation_by == "topics" else hold_out_bodies
    training, validation = hold_out(_load("train", train), validation_share)
    return DatasetDict({"train": training, "validation": validation, "test": _load("test", test)})


def hold_out_topics(pairs: Dataset, share: float) -> tuple[Dataset, Dataset]:
    """Split pairs into some for training and some for validation that have no headline and no body in common.

    Related pairs make topics: the connected components of the graph of headlines and bodies. Whole topics are held out,
    chosen from the pairs alone and not by a seed: of the folds into which `StratifiedGroupKFold` deals the topics, with
    the classes even, the one with the most topics, for a single large topic says little about others.

    An unrelated pair joins two topics. It is kept where both are on the same side. One that lies across cannot be in
    either split; but so few unrelated pairs lie in the held-out topics that their class would be rare in the validation
    split (its share squared). So the held-out headlines and the held-out bodies of the pairs across are joined with
    each other, as far as their topics differ: that is how unrelated pairs come about (none of those in the original
    files stays within a topic). Training pairs are never made.

    Args:
        pairs: With the columns of `load_stances`.
        share: Of the related pairs, greater than 0 and at most 0.5; the nearest 1/n is held out.

    Returns:
        The pairs for training and those for validation.

    Raises:
        ValueError: There are fewer topics, or related pairs of a stance, than 1 / share.
    """
    folds = min((math.floor(1 / share), math.ceil(1 / share)), key=lambda count: abs(1 / count - share))
    labels = np.asarray(pairs["label"][:])  # (pairs,)
    related = labels != CLASS_NAMES.index(UNRELATED)
    headline_topics, body_topics = _topics(pairs, related)
    found = len(np.unique(headline_topics[related]))
    if found < folds:
        raise ValueError(
            f"The related pairs are of {found} topics, but holding out a share of {share:g} by whole topics takes "
            f"{folds} or more: give a larger --validation_share, or more pairs."
        )
    topics = headline_topics[related]
    fewest = min(np.bincount(labels[related])[np.unique(labels[related])])
    if fewest < folds:
        raise ValueError(
            f"A stance has {fewest} related pairs alone, but holding out a share of {share:g} takes {folds} of each or "
            "more: give a larger --validation_share, or more pairs."
        )
    dealt = StratifiedGroupKFold(folds).split(topics, labels[related], topics)
    held_out = max((np.unique(topics[fold]) for _, fold in dealt), key=len)

    headline_held, body_held = np.isin(headline_topics, held_out), np.isin(body_topics, held_out)
    made = _joined(
        pairs,
        np.flatnonzero(headline_held & ~body_held),
        np.flatnonzero(body_held & ~headline_held),
        headline_topics,
        body_topics,
    )
    across = (headline_held ^ body_held).sum()
    training = pairs.select(np.flatnonzero(~headline_held & ~body_held))
    validation = concatenate_datasets([pairs.select(np.flatnonzero(headline_held & body_held)), made])
    logger.info(
        f"Validation holds out {len(held_out)} of {found} topics. Training: {_counts(training)}. "
        f"Validation: {_counts(validation)}; {len(made):,} of these are made of the {across:,} unrelated pairs that "
        "have one side in each split and are in neither."
    )
    return training, validation


def hold_out_bodies(pairs: Dataset, share: float) -> tuple[Dataset, Dataset]:
    """Split pairs by their bodies: every pair is real and in one of the two, and no body is in both.

    So does the baseline of the organisers (https://github.com/FakeNewsChallenge/fnc-1-baseline) with a share of 0.2;
    its draw has no fixed seed, this one has. A headline may stand on both sides.

    Args:
        pairs: With the columns of `load_stances`.
        share: Of the different bodies, greater than 0 and at most 0.5.

    Returns:
        The pairs for training and those for validation.

    Raises:
        ValueError: The share is so small that it holds out no body.
    """
    bodies = distinct_texts({"": pairs}, ("body",)).indices[""]["body"]  # (pairs,)
    found = len(np.unique(bodies))
    held_out = np.random.default_rng(0).permutation(found)[: round(share * found)]  # the same for all seeds of runs
    if not len(held_out):
        raise ValueError(
            f"A share of {share:g} of {found} bodies is none: give a larger --validation_share, or more pairs."
        )
    held = np.isin(bodies, held_out)
    training, validation = pairs.select(np.flatnonzero(~held)), pairs.select(np.flatnonzero(held))
    seen = len(set(validation["headline"]) & set(training["headline"]))
    logger.info(
        f"Validation holds out {len(held_out):,} of {found:,} bodies with all their pairs. Training: "
        f"{_counts(training)}. Validation: {_counts(validation)}; {seen:,} of its {len(set(validation['headline'])):,} "
        "headlines are in the training split too."
    )
    return training, validation


def _topics(pairs: Dataset, related: np.ndarray) -> tuple[Indices, Indices]:
    """The topic of each pair's headline and of its body. (pairs,), (pairs,)"""
    distinct = distinct_texts({"": pairs}, ("headline", "body"))
    # The same headline in capitals is not an unseen one.
    known: dict[str, int] = {}
    same = np.asarray([known.setdefault(" ".join(text.lower().split()), len(known)) for text in distinct.texts])
    headlines, bodies = same[distinct.indices[""]["headline"]], same[distinct.indices[""]["body"]]
    edges = np.ones(related.sum()), (headlines[related], bodies[related])
    topic = connected_components(coo_array(edges, shape=(len(known),) * 2), directed=False)[1]
    return topic[headlines], topic[bodies]


def _joined(
    pairs: Dataset, with_headline: Indices, with_body: Indices, headline_topics: Indices, body_topics: Indices
) -> Dataset:
    """Unrelated pairs of the headlines of some pairs and the bodies of others."""
    count = min(len(with_headline), len(with_body))
    generator = np.random.default_rng(0)  # not the run's seed: every run is validated on the same pairs
    heads, tails = generator.permutation(with_headline)[:count], generator.permutation(with_body)[:count]
    differ = headline_topics[heads] != body_topics[tails]
    headlines, bodies = pairs.select(heads[differ]), pairs.select(tails[differ])
    columns = {
        "headline": headlines["headline"][:],
        "body": bodies["body"][:],
        "label": [UNRELATED] * len(bodies),
        "body_id": bodies["body_id"][:],
    }
    return Dataset.from_dict(columns, features=STANCE.features)


def _counts(pairs: Dataset) -> str:
    counts = np.bincount(pairs["label"][:], minlength=len(CLASS_NAMES))
    return ", ".join(f"{count:,} {name}" for name, count in zip(CLASS_NAMES, counts, strict=True))


def _load(split: str, files: StanceFiles) -> Dataset:
    bodies = existing_file(split, files.bodies)
    reader = partial(_read_pairs, bodies=bodies, sha256=file_hash(bodies))
    return load_file(split, files.stances, STANCE, reader)


def _read_pairs(stances: Path, bodies: Path, sha256: str) -> Rows:
    """Yield the rows of two files; `sha256`, of the second, makes the key under which `datasets` keeps them."""
    texts: dict[str, str] = {}
    for location, row in read_rows(bodies, ("Body ID", "articleBody")):
        body_id, text = row["Body ID"], row["articleBody"]
        if texts.setdefault(body_id, text) != text:
            raise ValueError(
                f"{location}: the body {body_id!r} stands there again with another text: remove one of them."
            )
    require_hash(bodies, sha256)
    for location, row in read_rows(stances, ("Headline", "Body ID", "Stance")):
        body_id = row["Body ID"]
        if body_id not in texts:
            raise ValueError(f"{location}: there is no body {body_id!r} in {bodies}: fix or remove this row.")
        yield location, {**row, "articleBody": texts[body_id]}
