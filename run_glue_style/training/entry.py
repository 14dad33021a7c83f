"""How a script is entered and left: logging, the command line, and an exit code for each way to end."""

import logging
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from datasets import disable_progress_bars
from datasets.exceptions import DatasetGenerationError

from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.command.messages import one_line
from modeling_dsa.hub.publishing import NotPushedError
from run_glue_style.tasks.task import Task

from .arguments import given_options, parse_arguments
from .interruption import Interrupted
from .labelled_run import make_objective, metrics_of_some_labels, train_task
from .model import check_model_arguments, check_recipe, make_config
from .recipe import ModelArguments, RunArguments, TrainingRecipe
from .results import flat
from .run import Reporter
from .unread_options import refuse_unread, refuse_unread_of_recipe

logger = logging.getLogger(__name__)


def run_script(main: Callable[[], None]) -> int:
    """Run a script's main function; the exit code is that of `exit_code_of`, or 1 where the Hub took no model."""
    for chatty in ("httpx", "httpx2", "datasets", "accelerate"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    disable_progress_bars()  # of steps that nobody asked for, such as Filter
    return exit_code_of(partial(_run, main), None, level=logging.INFO)


def _run(main: Callable[[], None]) -> int:
    """Run it; how training alone ends has its exit code or sentence here."""
    try:
        main()
    except Interrupted as how:
        logger.warning(f"Stopped; the checkpoint is written. {how}")
        return 130
    except DatasetGenerationError as error:
        raise ValueError(one_line(error.__cause__ or error)) from error
    except NotPushedError as error:
        logger.error(f"error: {error}")
        return 1
    return 0


@dataclass(frozen=True)
class CheckedRun:
    """What a command line asks for, as far as it is known before data are read.

    Attributes:
        identity: All that it says of the run but its seed and where and how it runs.
        metrics: Names of the single numbers among the metrics of a split, such as "per_class.neutral.f1".
        splits: Names of the splits; None where only the data tell.
        evaluates_train: Whether the training split has metrics, too.
    """

    identity: Mapping[str, Any]
    metrics: Collection[str]
    splits: Collection[str] | None
    evaluates_train: bool


@dataclass(frozen=True)
class ReadRun:
    """A command line that is read.

    Attributes:
        train: Does the run.
        check: Refuses, with a ValueError, what cannot be trained.
    """

    train: Callable[[], None]
    check: Callable[[], CheckedRun]


def read_task(
    data_arguments: type,
    make_task: Callable[[Any], Task],
    description: str | None,
    reporters: Sequence[Reporter],
    argv: Sequence[str] | None = None,
    default_setting: str | None = None,
) -> ReadRun:
    """Read the command line of a script for one task.

    Args:
        data_arguments: Dataclass of the options that name the data.
        make_task: From its instance to the task; raises a ValueError where options contradict each other.
        description: What the script does, for `--help`.
        reporters: What is written into the folder of the finished run beside the model and its results.
        argv: As for `parse_arguments`.
        default_setting: As for `parse_arguments`.

    Raises:
        SystemExit: The command line has a mistake.
        ValueError: As `make_task`.
    """
    data, model, recipe, run, overrides = parse_arguments([data_arguments], description, argv, default_setting)
    task, given = make_task(data), given_options(sys.argv[1:] if argv is None else argv)

    def check() -> CheckedRun:
        check_model_arguments(task, model, recipe)
        make_objective(task, recipe)
        config = make_config(task, model, overrides)
        refuse_unread(config, model, given)
        refuse_unread_of_recipe(config, recipe, given)
        check_recipe(config, recipe, run)
        identity = {"config": config.to_dict(), "data": asdict(data), **shared_identity(model, recipe, run)}
        numbers = [name for name, value in flat(metrics_of_some_labels(task)).items() if isinstance(value, int | float)]
        return CheckedRun(identity, ["loss", *numbers], task.splits, run.evaluate_train)

    def train() -> None:
        check()
        train_task(task, model, recipe, run, overrides, reporters)

    return ReadRun(train, check)


def shared_identity(model: ModelArguments, recipe: TrainingRecipe, run: RunArguments) -> dict[str, Any]:
    """What the options of all scripts say of a run beside its config."""
    return {
        "start": model.model_name_or_path,
        "vectors": model.vectors,
        "vocabulary": model.vocabulary,
        "recipe": asdict(recipe),
        "mixed_precision": run.mixed_precision,
        "max_train_samples": run.max_train_samples,
    }
