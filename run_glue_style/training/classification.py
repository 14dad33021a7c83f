"""What every classification script does: data -> tokenizer -> model -> training -> results, one folder at the end."""

import hashlib
import logging
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import datasets
import evaluate
import torch
from accelerate import Accelerator
from datasets import Dataset, DatasetDict, disable_progress_bars
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import save
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.files.model_files import replaced_model
from modeling_dsa.files.replacing import write_json
from modeling_dsa.hub.publishing import PLACEHOLDER, one_line
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.building import build_model, vocabulary_from_texts
from run_glue_style.tasks.distinct_texts import DistinctTexts, distinct_texts
from run_glue_style.tasks.task import Task

from .arguments import ModelArguments, RunArguments, TrainingRecipe
from .engine import Trainer, make_accelerator, metric_value
from .environment import environment
from .hub import HubRun
from .text_rows import Reading, TextRows, TokenizedTexts, reading
from .token_store import tokenize_once

logger = logging.getLogger(__name__)

RESULTS = "all_results.json"
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
    if model_arguments.model_name_or_path is None:  # known mistakes before the data are read
        if model_arguments.setting is None:
            raise ValueError("Say what to train: --setting NAME, or --model_name_or_path to go on from a model.")
        task.check_setting(model_arguments.setting)
        _vectors(task, model_arguments)
    hub = HubRun(run) if run.push_to_hub and accelerator.is_main_process else None
    metric = evaluate.combine(list(task.metrics))
    metric_value(metric.compute(predictions=[0], references=[0]), recipe.metric_for_best_model)
    started = time.perf_counter()
    with accelerator.main_process_first():
        # A split without rows is one whose labels are hidden.
        data = DatasetDict({name: split for name, split in task.load().items() if len(split)})
        splits = [name for name in data if name != "train"]
        validation = [name for name in splits if name.startswith(("validation", "dev"))]
        if "train" not in data or not validation:
            raise ValueError(
                "Training needs a train and a validation split with labels; the data have: "
                f"{', '.join(data) or 'none'}."
            )
        if run.max_train_samples is not None:
            data["train"] = data["train"].select(range(min(run.max_train_samples, len(data["train"]))))
        texts = distinct_texts(data, task.text_columns)
        model, tokenizer = _make_model(task, model_arguments, overrides, texts, run.seed, accelerator)
    limit: int | None = model.config.max_sentence_words
    with accelerator.local_main_process_first():  # the others of its machine find the file
        rows = _tokenize(data, texts, task.text_columns, tokenizer, limit, accelerator.is_main_process)
    groups = None
    if task.group_column is not None:
        groups = texts.indices["train"][task.group_column].tolist()
        rows |= {name: rows[name].sorted_by(texts.indices[name][task.group_column]) for name in splits}
    readings = {
        name: {column: reading(rows[name], number, limit) for number, column in enumerate(task.text_columns)}
        for name in rows
    }
    table = model.get_parameter("dsa.embed_tokens.weight")
    identity = {
        "model": {key: value for key, value in model.config.to_dict().items() if key != "transformers_version"},
        "start": model_arguments.model_name_or_path or "fresh weights",
        "word_table_sha256": hashlib.sha256(save({"": table.data})).hexdigest(),
        "recipe": asdict(recipe),
        "seed": run.seed,
        "mixed_precision": accelerator.mixed_precision,
        "processes": accelerator.num_processes,
        "data": {name: {"rows": len(split), "sha256": task.fingerprint(split)} for name, split in data.items()},
    }
    logger.info(
        f"{task.source}: "
        + ", ".join(f"{len(split):,} {name}" for name, split in data.items())
        + f" rows; {model.num_parameters(only_trainable=True):,} trained parameters."
    )
    logger.info(_words_read([found for columns in readings.values() for found in columns.values()], limit))
    if run.overwrite_output_dir and accelerator.is_main_process:
        for old in ("checkpoints", TRACKER):
            shutil.rmtree(output_dir / old, ignore_errors=True)
        (output_dir / RESULTS).unlink(missing_ok=True)
    accelerator.wait_for_everyone()
    if accelerator.log_with:
        accelerator.init_trackers(TRACKER)
    trainer = Trainer(
        accelerator=accelerator,
        model=model,
        tokenizer=tokenizer,
        train_rows=rows["train"],
        validation_rows={name: rows[name] for name in validation},
        compute_metrics=lambda predictions, references: metric.compute(
            predictions=predictions.tolist(), references=references.tolist()
        ),
        recipe=recipe,
        run=run,
        output_dir=output_dir,
        identity=identity,
        groups=groups,
        on_checkpoint=hub.push_checkpoint if hub is not None and run.hub_strategy == "every_save" else None,
    )
    progress = trainer.train()
    results = {
        "task": task.name,
        "setting": model_arguments.setting,
        "recipe_name": run.recipe or model_arguments.setting,
        "source": task.source,
        "vectors": None if model_arguments.model_name_or_path else _vectors(task, model_arguments).name,
        "trained_parameters": model.num_parameters(only_trainable=True),
        "metrics": {name: trainer.evaluate(rows[name]) for name in splits},
        "texts": {
            name: {column: asdict(found) for column, found in columns.items()} for name, columns in readings.items()
        },
        "best_step": progress.best["step"] if progress.best else None,
        "steps": progress.step,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "train_seconds": round(progress.seconds, 1),
        "total_seconds": round(time.perf_counter() - started, 1),
        "words_per_second": round(progress.words / max(progress.seconds, 1e-9)),
        "history": progress.history,
        **identity,
        "environment": environment(),
    }
    if accelerator.is_main_process:
        model_id = hub.repo_id if hub is not None else f"{PLACEHOLDER}{output_dir.resolve().name}"
        with replaced_model(output_dir) as folder:
            trainer.unwrapped_model().save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            write_json(results, folder / RESULTS)
            finished = FinishedRun(task, trainer.unwrapped_model(), tokenizer, data[validation[0]], folder, model_id)
            for report in reporters:
                report(finished)
        logger.info(_closing_words(task, results, output_dir))
    trainer.finish()
    if hub is not None:
        hub.push(output_dir)
    return results


def _make_model(
    task: Task,
    arguments: ModelArguments,
    overrides: dict[str, Any],
    texts: DistinctTexts,
    seed: int,
    accelerator: Accelerator,
) -> tuple[DSAForSequenceClassification, PreTrainedTokenizerBase]:
    settings = {
        "id2label": dict(enumerate(task.label_names)),
        "label2id": {name: number for number, name in enumerate(task.label_names)},
        "sentences_per_row": len(task.text_columns),
        **overrides,
    }
    start = arguments.model_name_or_path
    source = start or setting_folder(arguments.setting or "")
    try:
        model_type = DSAConfig.get_config_dict(source)[0].get("model_type")
        if model_type != DSAConfig.model_type:
            raise ValueError(f"{source} is a model of type {model_type!r}: give one of type {DSAConfig.model_type!r}.")
        config = DSAConfig.from_pretrained(source, **settings)
        config.validate()  # loading checks each field, but not how overrides fit together
        if start is not None:
            tokenizer = AutoTokenizer.from_pretrained(start)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)  # for a head that the model does not have
                return task.model_class.from_pretrained(start, config=config), tokenizer
    except StrictDataclassError as error:
        raise ValueError(one_line(error.__cause__ or error)) from error
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{source} cannot be loaded: {one_line(error)}") from error
    path = _vectors(task, arguments)
    vocabulary, vectors = vocabulary_from_texts(path, texts.all(), progress=accelerator.is_main_process)
    if overrides.get("embedding_size", vectors.dimension) != vectors.dimension:
        raise ValueError(f"{path} has vectors of {vectors.dimension} numbers, not {overrides['embedding_size']}.")
    return build_model(task.model_class, config, vocabulary, vectors, seed), vocabulary


def _vectors(task: Task, arguments: ModelArguments) -> Path:
    path = arguments.vectors or task.default_vectors
    if path is None:
        raise ValueError("These data need word vectors: give --vectors, such as glove.840B.300d.zip.")
    return path


def _tokenize(
    data: DatasetDict,
    texts: DistinctTexts,
    columns: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    limit: int | None,
    progress: bool,
) -> dict[str, TextRows]:
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "dsa-tokens"
    ids, lengths = tokenize_once(tokenizer, texts.texts, folder, progress)
    tokenized = TokenizedTexts(tokenizer, ids, lengths, len(columns), limit)
    return {
        name: TextRows(tokenized, [texts.indices[name][column] for column in columns], split["label"][:])
        for name, split in data.items()
    }


def _words_read(found: Sequence[Reading], limit: int | None) -> str:
    longest = max(column.longest for column in found)
    longer = sum(column.longer for column in found)
    if limit is None or not longer:
        return f"Every word is read; the longest text has {longest:,} words."
    unread = sum(column.unread_words * column.words for column in found) / sum(column.words for column in found)
    return (
        f"The first {limit:,} words of each text are read: {longer:,} of {sum(column.texts for column in found):,} "
        f"texts are longer, the longest has {longest:,} words, and {unread:.1%} of all words are not read."
    )


def _closing_words(task: Task, results: dict[str, Any], output_dir: Path) -> str:
    lines = []
    for name, metrics in results["metrics"].items():
        line = f"{name}: accuracy {metrics['accuracy']:.1%}, macro F1 {metrics['macro_f1']:.1%}"
        lines.append(f"{line}; the majority class gives {metrics['majority_accuracy']:.1%}")
        by_class = (f"{label} {scores['f1']:.1%}" for label, scores in metrics["per_class"].items())
        own = ", ".join(
            f"{key} {value:,.6g}"
            for key, value in metrics.items()
            if isinstance(value, float) and key not in ("loss", "accuracy", "macro_f1", "majority_accuracy")
        )
        lines.append(f"{name}: F1 {', '.join(by_class)}" + (f"; {own}" if own else ""))
    if task.baseline:
        lines.append(f"baseline on validation: {task.baseline}")
    text = dict(zip(("text", "text_pair"), task.example, strict=False))
    return "\n".join(
        [
            "",
            *lines,
            f"The model is in {output_dir}, its attention in {output_dir / 'attention.png'}. Use it:",
            "import modeling_dsa; from transformers import pipeline; "
            f"print(pipeline('text-classification', {str(output_dir)!r})({text}))",
        ]
    )
