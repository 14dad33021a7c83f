"""The results of a run: all_results.json, and what is said of it at the end."""

import hashlib
import itertools
import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from gzip import BadGzipFile
from operator import getitem
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

import numpy as np
from accelerate import Accelerator
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor
from transformers import PreTrainedModel

from modeling_dsa.files.card_sections import CARD
from modeling_dsa.files.environment import environment
from modeling_dsa.files.hashing import weight_file_hashes
from modeling_dsa.files.messages import one_line
from modeling_dsa.files.model_files import RESULTS
from modeling_dsa.files.unpacking import GzipReader
from run_glue_style.tasks.task import Task

from .objective import Metrics
from .progress import Progress
from .recipe import ModelArguments, RunArguments, TrainingRecipe

# What is equal in runs that differ in nothing but the seed; the first records have neither of the starts.
IDENTITY = (
    *("setting", "recipe_name", "model", "start", "start_weights", "recipe", "mixed_precision", "processes", "vectors"),
    *("vocabulary", "data", "class_shares", "examples_of_files", "class_points", "losses", "teacher", "similarity"),
)
FRESH = "fresh weights"  # what a run starts from that starts from no model
_OF_EVERY_RUN = (
    *("setting", "seed", "metrics", "trained_parameters", "train_seconds", "steps", "recipe", "recipe_name", "model"),
    *("data", "source", "vectors", "command", "processes"),
)
_SHOWN_CLASSES = 12


def run_identity(
    arguments: ModelArguments,
    recipe: TrainingRecipe,
    run: RunArguments,
    model: PreTrainedModel,
    of_task: Mapping[str, Any],
    accelerator: Accelerator,
) -> dict[str, Any]:
    """All that the weights of a run depend on, as JSON: a checkpoint with another identity is another run's."""
    table, start = cast(Tensor, model.get_input_embeddings().weight), arguments.model_name_or_path
    return {
        "model": {key: value for key, value in model.config.to_dict().items() if key != "transformers_version"},
        "start": start or FRESH,
        **({} if start is None else {"start_weights": weight_file_hashes(start)}),
        "word_table_sha256": hashlib.sha256(save({"": table.data})).hexdigest(),
        "recipe": asdict(recipe),
        "seed": run.seed,
        "mixed_precision": accelerator.mixed_precision,
        "processes": accelerator.num_processes,
        **of_task,
    }


def collect_results(
    facts: Mapping[str, Any],
    arguments: ModelArguments,
    run: RunArguments,
    identity: Mapping[str, Any],
    progress: Progress,
    metrics: Mapping[str, Metrics],
    trained_parameters: int,
    total_seconds: float,
) -> dict[str, Any]:
    """The contents of all_results.json; `facts` are what a task adds to what every run tells."""
    return {
        **facts,
        "setting": arguments.setting,
        "recipe_name": run.recipe or arguments.setting,
        "trained_parameters": trained_parameters,
        "metrics": dict(metrics),
        "best_step": progress.best["step"] if progress.best else None,
        "steps": progress.step,
        "skipped_steps": progress.skipped,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "train_seconds": round(progress.seconds, 1),
        "total_seconds": round(total_seconds, 1),
        "tokens_per_second": round(progress.tokens / max(progress.seconds, 1e-9)),
        "history": progress.history,
        **identity,
        "environment": environment(),
    }


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


def read_metric(results: Mapping[str, Any], metric: str) -> float:
    """A figure of a run by its split and name, such as "validation.accuracy".

    Raises:
        ValueError: The run has none of this name.
    """
    try:
        return float(reduce(getitem, metric.split("."), results["metrics"]))
    except (KeyError, TypeError) as error:  # no such name, or one that stands for several figures
        run = f"run of {results['setting']}" if results["setting"] else "run"
        raise ValueError(
            f"The {run} with seed {results['seed']} has no metric '{metric}': give the split and the name of one that "
            "it has, as in validation.accuracy."
        ) from error


def have_same_examples(run: Mapping[str, Any], other: Mapping[str, Any], metric: str) -> bool:
    """Whether two runs measured a metric on the same examples; else a difference of theirs is one of these, too.

    Args:
        run: Its results.
        other: The other run's.
        metric: Such as "validation.accuracy".
    """
    return bool(_examples_of(run, metric) == _examples_of(other, metric))


def _examples_of(results: Mapping[str, Any], metric: str) -> Any:
    split, _, name = metric.partition(".")
    if name.startswith("spearman") and results.get("task") == "distillation":  # the first records have names alone
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
        for what in IDENTITY:
            if not _agree(what, run, runs[0]):
                raise ValueError(
                    f"The runs of {name} with the seeds {runs[0]['seed']} and {run['seed']} differ in their {what}, "
                    "so they have no mean: make one of them again."
                )


def _agree(what: str, run: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs are alike in a part of their identity, of which an older record may say less."""
    if what == "start_weights" and None in (run.get(what), other.get(what)):
        return True
    if what == "recipe":  # an option that came later has its default
        defaults = asdict(TrainingRecipe())
        return bool(defaults | run[what] == defaults | other[what])
    return bool(run.get(what) == other.get(what))


def summary(task: Task, results: Mapping[str, Any], output_dir: Path) -> str:
    """What a run says of itself at its end."""
    lines = [line for split, metrics in results["metrics"].items() for line in _metric_lines(split, metrics)]
    if task.baseline:
        lines.append(f"baseline on validation: {task.baseline}")
    text = dict(zip(("text", "text_pair"), task.example, strict=False))
    return "\n".join(
        [
            "",
            *lines,
            told_place(output_dir),
            "import modeling_dsa; from transformers import pipeline; "
            f"print(pipeline('text-classification', {str(output_dir)!r})({text}))",
        ]
    )


def told_place(output_dir: Path) -> str:
    """Where a finished run's model is; a card that could not be written was told of."""
    card = "its card and " if (output_dir / CARD).is_file() else ""
    return f"The model is in {output_dir}, with {card}its results. Use it:"


def _metric_lines(split: str, metrics: Metrics) -> list[str]:
    if "pearson" in metrics:
        return [
            f"{split}: Pearson {metrics['pearson']:.3f}, Spearman {metrics['spearman']:.3f}; mean absolute error "
            f"{metrics['mean_absolute_error']:.4g}, that of the best constant {metrics['constant_absolute_error']:.4g}"
        ]
    told = ("loss", "accuracy", "macro_f1", "majority_accuracy")
    own = ", ".join(
        f"{key} {value:,.6g}" for key, value in metrics.items() if isinstance(value, float) and key not in told
    )
    by_class = ", ".join(
        f"{label} {scores['f1']:.1%}"
        for label, scores in itertools.islice(metrics["per_class"].items(), _SHOWN_CLASSES)
    )
    if len(metrics["per_class"]) > _SHOWN_CLASSES:
        by_class += f", ... (all {len(metrics['per_class'])} are in {RESULTS})"
    return [
        f"{split}: accuracy {metrics['accuracy']:.1%}, macro F1 {metrics['macro_f1']:.1%}; "
        f"the majority class gives {metrics['majority_accuracy']:.1%}",
        f"{split}: F1 {by_class}" + (f"; {own}" if own else ""),
    ]
