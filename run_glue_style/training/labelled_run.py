"""A run on labelled examples: a task's data, its classifier and its objective."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import evaluate
import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.poolings_dsa import POOLINGS
from run_glue_style.tasks.class_shares import class_shares
from run_glue_style.tasks.metrics import MeanOfExamples
from run_glue_style.tasks.task import Task

from .calibration import require_all_classes
from .closing_words import summary
from .data import load_data, short_examples, tokenize_data, truncation_sentence
from .model import has_fresh_head, make_model
from .objective import (
    Classification,
    ComputeMetrics,
    ExampleScores,
    Metrics,
    Objective,
    Regression,
    metric_value,
)
from .recipe import ModelArguments, RunArguments, TrainingRecipe, require_no_classes
from .run import PreparedRun, Reporter, train_and_evaluate
from .tokenized_examples import TokenizedExamples
from .training_batches import PaddingCollator, model_inputs
from .vocabulary import vectors_path, vocabulary_facts

logger = logging.getLogger(__name__)

_DRAWN_EXAMPLES = 3
_TRIED_EXAMPLES = 64


def train_task(
    task: Task,
    model_arguments: ModelArguments,
    recipe: TrainingRecipe,
    run: RunArguments,
    overrides: dict[str, Any],
    reporters: Sequence[Reporter],
) -> None:
    """Do a whole run of a task, whose options `entry.read_task` has checked.

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
    recipe = replace(recipe, metric_for_best_model=recipe.metric_for_best_model or task.metric_for_best_model)
    objective = make_objective(task, recipe)
    prepare = partial(_prepare, task, objective, recipe, model_arguments, overrides, run)
    train_and_evaluate(prepare, task.name, model_arguments, recipe, run, reporters)


def _prepare(
    task: Task,
    objective: Objective,
    recipe: TrainingRecipe,
    arguments: ModelArguments,
    overrides: dict[str, Any],
    run: RunArguments,
    accelerator: Accelerator,
) -> PreparedRun:
    is_main = accelerator.is_main_process
    with accelerator.main_process_first():
        data = load_data(task, run.max_train_samples)
        model, tokenizer = make_model(task, arguments, overrides, data.texts, run.seed, is_main)
    is_fresh = has_fresh_head(arguments.model_name_or_path, model.config)
    if isinstance(objective, Classification) and model.config.num_training_samples > 1:
        _refuse_several_samples(model.config, objective, recipe.balance_classes)
    if isinstance(objective, Regression):
        labels = np.asarray(data.splits["train"]["label"][:])  # (examples,)
        objective = replace(objective, center=float(labels.mean()), scale=float(labels.std()) or 1.0)
    chosen_by = data.splits[data.validation[0]]
    if recipe.calibrate:
        require_all_classes(np.asarray(chosen_by["label"][:]), task.class_names, data.validation[0])
    shares = class_shares(data.splits["train"], len(task.class_names)) if recipe.balance_classes else None
    with accelerator.local_main_process_first():  # the others of its machine find the file
        examples = tokenize_data(
            task, data, tokenizer, model.config.max_sentence_tokens, is_main, shares, arguments.model_name_or_path
        )
    if isinstance(objective, Regression):
        objective.start(model, is_fresh or _gives_other_numbers(model, examples.splits["train"]))
    overlap = None if model.pair_features is None else model.pair_features.overlap
    if overlap is not None and overlap.idf is not None and is_fresh:
        frequencies, documents = examples.splits["train"].document_frequencies(model.config.vocab_size)
        overlap.count_documents(torch.from_numpy(frequencies), documents)
        logger.info(f"Tokens that both texts of a pair have count by their rareness in {documents:,} training texts.")
    logger.info(truncation_sentence(examples, model.config.max_sentence_tokens))
    counts = ", ".join(f"{len(split):,} {name}" for name, split in data.splits.items())
    return PreparedRun(
        model=model,
        tokenizer=tokenizer,
        objective=objective,
        train_examples=examples.splits["train"],
        evaluated={
            **{name: examples.splits[name] for name in data.evaluated},
            **({"train": examples.splits["train"].without_shares()} if run.evaluate_train else {}),
        },
        validation=data.validation,
        identity={
            "data": {
                name: {"examples": len(split), "sha256": task.fingerprint(split)} for name, split in data.splits.items()
            },
            **({} if shares is None else shares.identity()),
            **({} if task.class_points is None else {"class_points": list(task.class_points)}),
        },
        facts={
            "task": task.name,
            "source": task.source,
            **vocabulary_facts(vectors_path(task, arguments), arguments),
            "texts": {
                split: {column: asdict(stats) for column, stats in columns.items()}
                for split, columns in examples.truncation.items()
            },
            "shown_examples": short_examples(chosen_by, task.text_columns),
        },
        shown_texts=_distant_examples(chosen_by, task.text_columns),
        description=f"{task.source}: {counts} examples",
        summary=partial(summary, task),
        groups=examples.groups,
    )


@torch.no_grad()
def _gives_other_numbers(model: DSAForSequenceClassification, examples: TokenizedExamples) -> bool:
    """Whether the mean of what a saved head says of some examples lies beyond all their labels; it is told."""
    batch = PaddingCollator(model.config.pad_token_id or 0)(examples[:_TRIED_EXAMPLES])
    mean = float(model.eval()(**model_inputs(batch)).logits.mean())
    lowest, highest = float(examples.labels.min()), float(examples.labels.max())
    if lowest <= mean <= highest:
        return False
    logger.info(
        f"The saved model gives these texts {mean:g} on average, and their labels are {lowest:g} to {highest:g}: the "
        "last layer of its head starts anew."
    )
    return True


def _refuse_several_samples(config: DSAConfig, objective: Classification, balance_classes: bool) -> None:
    """Refuse a loss of one kind of logits where the model has the mean of several samples' losses."""
    changed = objective.label_smoothing or objective.class_points is not None or balance_classes
    if changed and POOLINGS[config.pooling].has_samples:
        raise ValueError(
            "--num_training_samples above 1 takes the mean of the samples' losses, which --label_smoothing, "
            "--balance_classes and --learn_points do not know: leave them out, or train with one sample."
        )


def _distant_examples(split: Dataset, columns: Sequence[str]) -> list[list[str]]:
    """The texts of examples far apart: neighbours share a premise in SNLI."""
    chosen = split.select(range(0, len(split), -(-len(split) // _DRAWN_EXAMPLES)))
    return [[example[column] for column in columns] for example in chosen]


def make_objective(task: Task, recipe: TrainingRecipe) -> Objective:
    """The loss of a task's labels, and its metrics.

    Raises:
        ValueError: No metric has the name of `metric_for_best_model`, or the recipe has an option for classes and the
            labels are numbers.
    """
    name = recipe.metric_for_best_model or task.metric_for_best_model
    metric_value(metrics_of_some_labels(task), name)
    if not task.is_regression:
        scores = partial(_example_scores, task)
        if task.class_points is not None and recipe.calibrate:
            raise ValueError("--calibrate undoes what --learn_points is for: leave one of them out.")
        return Classification(_compute(task), name, recipe.label_smoothing, task.class_points, scores)
    require_no_classes(recipe, "these labels are numbers")
    return Regression(_compute(task), name)


def metrics_of_some_labels(task: Task) -> Metrics:
    """The metrics of a perfect prediction, but for its loss: what names they have, before there are data."""
    labels = np.asarray([0, 1], np.float32 if task.is_regression else np.int64)
    return _compute(task)(labels, labels)


def _example_scores(task: Task, predictions: np.ndarray, references: np.ndarray) -> ExampleScores:
    """Of all metrics that are a mean over examples and say so."""
    scores: ExampleScores = {}
    for metric in task.metrics:
        if isinstance(metric, MeanOfExamples):
            scores |= metric.example_scores(predictions, references)
    return scores


def _compute(task: Task) -> ComputeMetrics:
    metric = evaluate.combine(list(task.metrics))

    def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
        metrics: Metrics = metric.compute(predictions=predictions.tolist(), references=references.tolist())
        return metrics

    return compute
