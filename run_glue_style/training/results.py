"""The results of finished runs, all_results.json: read, and compared where they are seeds of one row."""

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from gzip import BadGzipFile
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from modeling_dsa.command.messages import one_line, suggestion
from modeling_dsa.files.unpacking import GzipReader

from .recipe import TrainingRecipe

# What is equal in runs that differ in nothing but the seed.
_IDENTITY = (
    *("setting", "recipe_name", "model", "start", "start_weights", "tokenizer_sha256", "recipe", "mixed_precision"),
    *(
        "processes",
        "vectors",
        "vectors_sha256",
        "vocabulary",
        "data",
        "class_shares",
        "examples_of_files",
        "class_points",
        "losses",
        "teacher",
        "similarity",
    ),
)
SPEARMAN_OF = "spearman_"  # before a file's name: what a student is measured by on its pairs
_OF_LATER_RECORDS = ("start_weights", "tokenizer_sha256", "vectors_sha256")
_OF_EVERY_RUN = (
    *("setting", "seed", "metrics", "trained_parameters", "train_seconds", "steps", "recipe", "recipe_name", "model"),
    *("data", "source", "vectors", "command", "processes"),
)


def epochs_trained(run: Mapping[str, Any]) -> float:
    """How often a run went through its training examples, as its updates say, whatever its recipe had planned."""
    recipe = run["recipe"]
    batch = recipe["per_device_train_batch_size"] * recipe["gradient_accumulation_steps"] * run["processes"]
    return float(run["steps"] / math.ceil(run["data"]["train"]["examples"] / batch))


def read_results(path: Path) -> dict[str, Any]:
    """An all_results.json, which may be compressed (.gz), or a study's record of one.

    Raises:
        OSError: It cannot be read.
        ValueError: It is something else, or damaged.
    """
    try:
        with path.open("rb") as file:
            results = json.loads((GzipReader(file, path) if path.suffix == ".gz" else file).read())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError, BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no JSON, and so no results of a run: {one_line(error)}.") from error
    if not isinstance(results, dict):
        raise ValueError(f"{path} holds no object, and so no results of a run.")
    return results


def read_run(path: Path) -> dict[str, Any]:
    """The same, with all that the tables of several runs read.

    Raises:
        ValueError: It is something else, or damaged.
    """
    results = read_results(path)
    lacks = [key for key in _OF_EVERY_RUN if key not in results]
    if lacks:
        raise ValueError(f"{path} holds no results of a run, which have a '{lacks[0]}': take it away or make it again.")
    return results


def read_example_scores(path: Path) -> dict[str, NDArray[np.float64]]:
    """The scores of a run's single examples, by metric; (examples,) each.

    Raises:
        ValueError: The file is something else, or damaged.
    """
    try:
        with np.load(path) as arrays:
            return {metric: arrays[metric].astype(np.float64) for metric in arrays.files}
    except (ValueError, TypeError, AttributeError, EOFError, BadZipFile, zlib.error) as error:  # numpy's many
        raise ValueError(f"{path} holds no scores of examples: take it away or make its run again.") from error


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of nested dicts by names such as `recipe.learning_rate`."""
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        leaves |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return leaves


def read_metric(results: Mapping[str, Any], metric: str) -> float:
    """A figure of a run by its split and name, such as "validation.accuracy".

    Raises:
        ValueError: The run has none of this name.
    """
    figures = flat(results["metrics"])
    try:
        return float(figures[metric])
    except (KeyError, TypeError) as error:  # no such name, or one that stands for several figures
        run = f"run of {results['setting']}" if results["setting"] else "run"
        names = [name for name, value in figures.items() if isinstance(value, int | float)]
        raise ValueError(
            f"The {run} with seed {results['seed']} has no metric '{metric}'. {suggestion(metric, names)}"
        ) from error


def spearman_of_files(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Of a student's metrics the correlation with people's scores in each file of pairs, by the file's name."""
    return {name.removeprefix(SPEARMAN_OF): value for name, value in metrics.items() if name.startswith(SPEARMAN_OF)}


def have_same_examples(run: Mapping[str, Any], other: Mapping[str, Any], metric: str) -> bool:
    """Whether two runs measured a metric on the same examples, labels too; else a difference of theirs is one of these.

    Args:
        run: Its results.
        other: The other run's.
        metric: Such as "validation.accuracy".
    """
    return bool(_examples_of(run, metric) == _examples_of(other, metric)) and (
        _is_of_similarity(run, metric) or _may_share_teacher(run.get("teacher", {}), other.get("teacher", {}))
    )


def _is_of_similarity(results: Mapping[str, Any], metric: str) -> bool:
    return metric.partition(".")[2].startswith("spearman") and results.get("task") == "distillation"


def _may_share_teacher(teacher: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """One teacher's vectors of other sentences have another hash, and a file of them may be moved."""
    return any(teacher.get(key) == other.get(key) for key in ("name", "sha256"))


def _examples_of(results: Mapping[str, Any], metric: str) -> Any:
    split = metric.partition(".")[0]
    if _is_of_similarity(results, metric):  # the first records have names alone
        return results.get("similarity", results.get("similarity_files"))
    return results.get("data", {}).get(split)


def check_seeds(name: str, runs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs that have no mean.

    Args:
        name: What the runs are of, for messages.
        runs: Their results.

    Raises:
        ValueError: Two runs have the same seed, or differ in more than the seed.
    """
    for number, run in enumerate(runs[1:], 1):
        if run["seed"] in [other["seed"] for other in runs[:number]]:
            raise ValueError(f"Two runs of {name} have the seed {run['seed']}: leave one out.")
        if what := differing(run, runs[0]):
            raise ValueError(
                f"The runs of {name} with the seeds {runs[0]['seed']} and {run['seed']} differ in their {what}, "
                "so they have no mean: make one of them again."
            )


def differing(run: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """The first thing beside the seed in which two runs differ; none where they are of one row."""
    return next((what for what in _IDENTITY if not _agree(what, run, other)), None)


def _agree(what: str, run: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs are alike in a part of their identity, of which an older record may say less."""
    if what in _OF_LATER_RECORDS and None in (run.get(what), other.get(what)):
        return True
    if what == "recipe":  # an option that came later has its default
        defaults = asdict(TrainingRecipe())
        return bool(defaults | run[what] == defaults | other[what])
    return bool(run.get(what) == other.get(what))
