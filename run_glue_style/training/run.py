"""A whole run: what a task prepared -> training -> results, one folder at the end."""

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from accelerate import Accelerator
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from modeling_dsa.files.model_replacing import EXAMPLE_SCORES, RESULTS, replaced_model
from modeling_dsa.files.replacing import write_json
from modeling_dsa.hub.publishing import placeholder_id

from .accelerator import make_accelerator
from .calibration import calibrate
from .checkpoints import refuse_foreign_checkpoints
from .engine import TRACKER, Trainer
from .folder_lock import locked_folder
from .hub import HubRun
from .nonfinite import finite_or_none
from .objective import Objective
from .recipe import ModelArguments, RunArguments, TrainingRecipe
from .run_record import collect_results, run_identity

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedRun:
    """What a task makes of its options and data, on all processes alike.

    Attributes:
        model: To be trained.
        tokenizer: Its tokenizer.
        objective: The loss and the metrics.
        train_examples: As the trainer takes them.
        evaluated: The splits that are measured at the end, by name, as the trainer takes them.
        validation: Names of those that are evaluated during the training; the first one chooses the best weights.
        identity: What the weights depend on beside the options that all tasks share, as JSON: `data` among it, how many
            `examples` each split has and the `sha256` of its contents.
        facts: What else all_results.json tells, as JSON: `task`, `source` and `vectors` among it.
        shown_texts: The texts of some examples, for people. (examples, texts of an example)
        description: What is trained on what, for people.
        summary: From the contents of all_results.json and the run's folder to its closing words.
        groups: The group of each training example, where examples of a group shall stand in one batch. (examples,)
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    objective: Objective
    train_examples: Any
    evaluated: Mapping[str, Any]
    validation: Sequence[str]
    identity: Mapping[str, Any]
    facts: Mapping[str, Any]
    shown_texts: Sequence[Sequence[str]]
    description: str
    summary: Callable[[Mapping[str, Any], Path], str]
    groups: Sequence[int] | None = None


@dataclass(frozen=True)
class FinishedRun:
    """What a reporter can read of a run whose folder is about to be complete.

    Attributes:
        model: With its best weights.
        tokenizer: Its tokenizer.
        shown_texts: As in `PreparedRun`.
        folder: Where the reporter writes: the model, its tokenizer and its all_results.json are in it.
        model_id: The model's name on the Hub, or one to be filled in.
        replaced: The folder that this one replaces, with the card of an earlier run.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    shown_texts: Sequence[Sequence[str]]
    folder: Path
    model_id: str
    replaced: Path | None = None


Prepare: TypeAlias = Callable[[Accelerator], PreparedRun]
Reporter: TypeAlias = Callable[[FinishedRun], None]


def train_and_evaluate(
    prepare: Prepare,
    name: str,
    model_arguments: ModelArguments,
    recipe: TrainingRecipe,
    run: RunArguments,
    reporters: Sequence[Reporter],
) -> None:
    """Do a whole run.

    Args:
        prepare: Reads the data and makes the model. Every process calls it.
        name: Of the task: the run's folder is called so where neither setting nor model has a name.
        model_arguments: Which model.
        recipe: How it is trained.
        run: Where and how it runs.
        reporters: Each writes into the run's folder before the folder is complete.

    Raises:
        ValueError: The options contradict each other or the data, or the Hub refuses the model.
        NotPushedError: The run is finished and saved, but did not get to the Hub.
    """
    output_dir = (
        run.output_dir
        or Path("runs") / Path(model_arguments.setting or model_arguments.model_name_or_path or name).resolve().name
    )
    accelerator = make_accelerator(run, output_dir)
    if not accelerator.is_main_process:
        logging.getLogger().setLevel(logging.ERROR)
    transformers_logging.disable_progress_bar()
    try:
        # The main process alone writes; where it is refused, the launcher ends the others.
        with locked_folder(output_dir) if accelerator.is_main_process else nullcontext():
            _refuse_used_folder(output_dir, run)
            _train_and_evaluate(prepare, model_arguments, recipe, run, reporters, output_dir, accelerator)
    finally:
        accelerator.end_training()


def _refuse_used_folder(output_dir: Path, run: RunArguments) -> None:
    """Refuse a folder of a finished run, or of something else, unless it may be overwritten."""
    refuse_foreign_checkpoints(output_dir / "checkpoints")
    if (output_dir / RESULTS).exists() and not run.overwrite_output_dir:
        # Its results came last: who was killed after them left what nobody needs.
        shutil.rmtree(output_dir / "checkpoints", ignore_errors=True)
        options = " --private" * run.hub_private + (f" --revision {run.hub_revision}" if run.hub_revision else "")
        push = f"`dsa push {output_dir} {run.hub_model_id}{options}` to push it, " if run.push_to_hub else ""
        raise ValueError(
            f"{output_dir} holds a finished run: give {push}--overwrite_output_dir to replace it, or another "
            "--output_dir."
        )
    foreign = [name for name in ("config.json", "model.safetensors", "README.md") if (output_dir / name).exists()]
    if foreign and not run.overwrite_output_dir and not (output_dir / "checkpoints").is_dir():
        raise ValueError(
            f"{output_dir} holds {', '.join(foreign)}, but no run that could go on: give another --output_dir, or "
            "--overwrite_output_dir to replace them."
        )


def _train_and_evaluate(
    prepare: Prepare,
    model_arguments: ModelArguments,
    recipe: TrainingRecipe,
    run: RunArguments,
    reporters: Sequence[Reporter],
    output_dir: Path,
    accelerator: Accelerator,
) -> None:
    started, is_main = time.perf_counter(), accelerator.is_main_process
    hub = HubRun(run) if run.push_to_hub and is_main else None
    prepared = prepare(accelerator)
    model = prepared.model
    identity = run_identity(model_arguments, recipe, run, model, prepared.tokenizer, prepared.identity, accelerator)
    trainer = Trainer(
        accelerator=accelerator,
        model=model,
        tokenizer=prepared.tokenizer,
        train_examples=prepared.train_examples,
        validation_splits={name: prepared.evaluated[name] for name in prepared.validation},
        objective=prepared.objective,
        recipe=recipe,
        run=run,
        output_dir=output_dir,
        identity=identity,
        groups=prepared.groups,
        on_checkpoint=hub.push_checkpoint if hub is not None and run.hub_strategy == "every_save" else None,
    )
    if run.overwrite_output_dir:
        _clear_overwritten(output_dir, accelerator)  # now that nothing more is refused
    trained_parameters = model.num_parameters(only_trainable=True)  # now that the recipe has frozen its part
    logger.info(f"{prepared.description}; {trained_parameters:,} trained parameters.")
    progress = trainer.train()
    calibrated: dict[str, Any] = {}
    if recipe.calibrate:
        logits, labels = trainer.predict(prepared.evaluated[prepared.validation[0]])
        calibrated = {"calibration": calibrate(trainer.unwrapped_model(), logits, labels)}
    predicted = {name: trainer.predict(examples) for name, examples in prepared.evaluated.items()}
    metrics = {name: prepared.objective.metrics(*split) for name, split in predicted.items()}
    results = collect_results(
        {**prepared.facts, **calibrated}, model_arguments, run, identity, progress, metrics, trained_parameters,
        time.perf_counter() - started,
    )  # fmt: skip
    trained = trainer.unwrapped_model()
    prepared.objective.finish(trained)
    if is_main:
        model_id = hub.repo_id if hub is not None else placeholder_id(output_dir.resolve().name)
        with replaced_model(output_dir) as folder:
            finished = FinishedRun(trained, prepared.tokenizer, prepared.shown_texts, folder, model_id, output_dir)
            if run.save_example_scores:
                _save_example_scores(prepared.objective, predicted, folder)
            _save(finished, results, reporters)
        logger.info(prepared.summary(results, output_dir))
    trainer.finish()
    if hub is not None:
        hub.push(output_dir)


def _clear_overwritten(output_dir: Path, accelerator: Accelerator) -> None:
    """Clear what another run left, which this one does not resume."""
    if accelerator.is_main_process:
        for old in ("checkpoints", TRACKER):
            shutil.rmtree(output_dir / old, ignore_errors=True)
        (output_dir / RESULTS).unlink(missing_ok=True)
    accelerator.wait_for_everyone()


def _save_example_scores(objective: Objective, predicted: Mapping[str, tuple[Tensor, Tensor]], folder: Path) -> None:
    np.savez_compressed(
        folder / EXAMPLE_SCORES,
        allow_pickle=False,
        **{
            f"{split}.{name}": scores
            for split, of_split in predicted.items()
            for name, scores in objective.example_scores(*of_split).items()
        },
    )


def _save(run: FinishedRun, results: dict[str, Any], reporters: Sequence[Reporter]) -> None:
    run.model.save_pretrained(run.folder)
    run.tokenizer.save_pretrained(run.folder)
    write_json(finite_or_none(results), run.folder / RESULTS)
    for report in reporters:
        report(run)
