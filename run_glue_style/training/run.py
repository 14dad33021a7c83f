"""A whole run of a task: data -> model -> training -> results, one folder at the end."""

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import evaluate
import numpy as np
from accelerate import Accelerator
from datasets import Dataset, disable_progress_bars
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from modeling_dsa.files.model_files import replaced_model
from modeling_dsa.files.replacing import write_json
from modeling_dsa.hub.publishing import PLACEHOLDER
from run_glue_style.tasks.task import Task

from .accelerator import make_accelerator
from .data import LabelledData, TokenizedData, load_data, tokenize_data, truncation_sentence
from .engine import Trainer
from .hub import HubRun
from .model import check_model_arguments, has_fresh_head, make_model
from .objective import Classification, Metrics, Objective, Regression, metric_value
from .recipe import ModelArguments, RunArguments, TrainingRecipe
from .results import RESULTS, collect_results, run_identity, summary

logger = logging.getLogger(__name__)

TRACKER = "tracker"


@dataclass(frozen=True)
class FinishedRun:
    """What a reporter can read of a run whose folder is about to be complete.

    Attributes:
        task: What was trained.
        model: With its best weights.
        tokenizer: Its tokenizer.
        examples: The validation split that chose them.
        folder: Where the reporter writes: the model, its tokenizer and its all_results.json are in it.
        model_id: The model's name on the Hub, or one to be filled in.
    """

    task: Task
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    examples: Dataset
    folder: Path
    model_id: str


Reporter: TypeAlias = Callable[[FinishedRun], None]


def train_and_evaluate(
    task: Task,
    model_arguments: ModelArguments,
    recipe: TrainingRecipe,
    run: RunArguments,
    overrides: dict[str, Any],
    reporters: Sequence[Reporter] = (),
) -> dict[str, Any]:
    """Do a whole run and return the contents of its all_results.json.

    Args:
        task: What is trained.
        model_arguments: Which model.
        recipe: How it is trained.
        run: Where and how it runs.
        overrides: Fields of DSAConfig in place of the setting's or the model's.
        reporters: Each writes into the run's folder before the folder is complete.

    Raises:
        ValueError: The options contradict each other or the data, or the Hub refuses the model.
        NotPushedError: The run is finished and saved, but did not get to the Hub.
    """
    output_dir = (
        run.output_dir
        or Path("runs") / Path(model_arguments.setting or model_arguments.model_name_or_path or task.name).name
    )
    if (output_dir / RESULTS).exists() and not run.overwrite_output_dir:
        raise ValueError(
            f"{output_dir} holds a finished run: give --overwrite_output_dir to replace it, or another --output_dir."
        )
    recipe = replace(recipe, metric_for_best_model=recipe.metric_for_best_model or task.metric_for_best_model)
    accelerator = make_accelerator(run, output_dir)
    if not accelerator.is_main_process:
        logging.getLogger().setLevel(logging.ERROR)
        disable_progress_bars()
    transformers_logging.disable_progress_bar()
    try:
        return _train_and_evaluate(task, model_arguments, recipe, run, overrides, reporters, output_dir, accelerator)
    finally:
        accelerator.end_training()


def _train_and_evaluate(
    task: Task,
    model_arguments: ModelArguments,
    recipe: TrainingRecipe,
    run: RunArguments,
    overrides: dict[str, Any],
    reporters: Sequence[Reporter],
    output_dir: Path,
    accelerator: Accelerator,
) -> dict[str, Any]:
    started, is_main = time.perf_counter(), accelerator.is_main_process
    check_model_arguments(task, model_arguments)
    objective = make_objective(task, recipe)
    hub = HubRun(run) if run.push_to_hub and is_main else None
    with accelerator.main_process_first():
        data = load_data(task, run.max_train_samples)
        model, tokenizer = make_model(task, model_arguments, overrides, data.texts, run.seed, is_main)
    if isinstance(objective, Regression):
        labels = np.asarray(data.splits["train"]["label"][:])  # (examples,)
        objective = replace(objective, center=float(labels.mean()), scale=float(labels.std()) or 1.0)
        objective.start(model, has_fresh_head(task, model_arguments))
    with accelerator.local_main_process_first():  # the others of its machine find the file
        examples = tokenize_data(task, data, tokenizer, model.config.max_sentence_tokens, is_main)
    identity = run_identity(task, model_arguments, recipe, run, model, data, accelerator)
    trained_parameters = model.num_parameters(only_trainable=True)
    _say_what_is_trained(task, data, examples, trained_parameters, model.config.max_sentence_tokens)
    _open_folder(output_dir, run, accelerator)
    trainer = Trainer(
        accelerator=accelerator,
        model=model,
        tokenizer=tokenizer,
        train_examples=examples.splits["train"],
        validation_splits={name: examples.splits[name] for name in data.validation},
        objective=objective,
        recipe=recipe,
        run=run,
        output_dir=output_dir,
        identity=identity,
        groups=examples.groups,
        on_checkpoint=hub.push_checkpoint if hub is not None and run.hub_strategy == "every_save" else None,
    )
    progress = trainer.train()
    metrics = {name: trainer.evaluate(examples.splits[name]) for name in data.evaluated}
    results = collect_results(
        task, model_arguments, run, identity, data, examples, progress, metrics, trained_parameters,
        time.perf_counter() - started,
    )  # fmt: skip
    objective.finish(trainer.unwrapped_model())
    if is_main:
        model_id = hub.repo_id if hub is not None else f"{PLACEHOLDER}{output_dir.resolve().name}"
        with replaced_model(output_dir) as folder:
            chosen_by = data.splits[data.validation[0]]
            finished = FinishedRun(task, trainer.unwrapped_model(), tokenizer, chosen_by, folder, model_id)
            _save(finished, results, reporters)
        logger.info(summary(task, results, output_dir))
    trainer.finish()
    if hub is not None:
        hub.push(output_dir)
    return results


def make_objective(task: Task, recipe: TrainingRecipe) -> Objective:
    """The loss of a task's labels, and its metrics.

    Raises:
        ValueError: No metric has the name of `metric_for_best_model`, or the recipe smooths labels that are numbers.
    """
    metric = evaluate.combine(list(task.metrics))

    def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
        scores: Metrics = metric.compute(predictions=predictions.tolist(), references=references.tolist())
        return scores

    labels = np.asarray([0, 1], np.float32 if task.is_regression else np.int64)
    name = recipe.metric_for_best_model or task.metric_for_best_model
    metric_value(compute(labels, labels), name)
    if not task.is_regression:
        return Classification(compute, name, recipe.label_smoothing)
    if recipe.label_smoothing:
        raise ValueError("--label_smoothing is for classes, and these labels are numbers: leave it at 0.")
    return Regression(compute, name)


def _say_what_is_trained(
    task: Task, data: LabelledData, examples: TokenizedData, trained_parameters: int, max_tokens: int | None
) -> None:
    counts = ", ".join(f"{len(split):,} {name}" for name, split in data.splits.items())
    logger.info(f"{task.source}: {counts} examples; {trained_parameters:,} trained parameters.")
    logger.info(truncation_sentence(examples, max_tokens))


def _open_folder(output_dir: Path, run: RunArguments, accelerator: Accelerator) -> None:
    """Clear what an overwritten run left, and start the tracker."""
    if run.overwrite_output_dir and accelerator.is_main_process:
        for old in ("checkpoints", TRACKER):
            shutil.rmtree(output_dir / old, ignore_errors=True)
        (output_dir / RESULTS).unlink(missing_ok=True)
    accelerator.wait_for_everyone()
    if accelerator.log_with:
        accelerator.init_trackers(TRACKER)


def _save(run: FinishedRun, results: dict[str, Any], reporters: Sequence[Reporter]) -> None:
    run.model.save_pretrained(run.folder)
    run.tokenizer.save_pretrained(run.folder)
    write_json(results, run.folder / RESULTS)
    for report in reporters:
        report(run)
