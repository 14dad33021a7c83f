"""Distil a teacher: train a sentence encoder whose vectors are those of a sentence-transformers model.

`accelerate launch run_glue_style/run_distillation.py --texts sentences.txt --teacher
sentence-transformers/all-MiniLM-L6-v2` needs no labels. The teacher's vectors are computed once and kept; an
interrupted run resumes by the same command.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

if not __package__:  # started by its path: Python searches this folder, and not the repository's root
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from modeling_dsa import DSAModel
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.shipped.settings import setting_folder
from run_glue_style.distillation.arguments import LossArguments, TeacherArguments
from run_glue_style.distillation.prepare import (
    check_arguments,
    default_metric,
    metric_names,
    prepare_distillation,
    with_word_vectors,
)
from run_glue_style.distillation.student import DEFAULT_SETTING, student_config
from run_glue_style.reporting.reporters import REPORTERS
from run_glue_style.training.arguments import given_options, parse_arguments
from run_glue_style.training.entry import CheckedRun, ReadRun, run_script, shared_identity
from run_glue_style.training.model import check_recipe
from run_glue_style.training.objective import metric_value
from run_glue_style.training.recipe import require_no_classes
from run_glue_style.training.run import train_and_evaluate
from run_glue_style.training.unread_options import refuse_unread, refuse_unread_of_recipe


def recipe_folder(setting: Path) -> Path:
    """The folder of the recipe by which a setting is distilled where none is named: its own where it is an encoder, and
    the default setting's where it is a classifier, whose own is for another script.

    Raises:
        ValueError: The folder's config is broken.
    """
    architectures = read_config(setting).get("architectures") or [DSAModel.__name__]
    is_own = architectures == [DSAModel.__name__] and (setting / "recipe.yaml").is_file()
    return setting if is_own else setting_folder(DEFAULT_SETTING)


def read(argv: Sequence[str] | None = None) -> ReadRun:
    """The run that a command line asks for; default: the process's own.

    Raises:
        SystemExit: The command line has a mistake.
        ValueError: Options contradict each other.
        OSError: There is no such model.
    """
    teacher, losses, model, recipe, run, overrides = parse_arguments(
        [TeacherArguments, LossArguments], __doc__, argv, DEFAULT_SETTING, recipe_folder
    )
    check_arguments(teacher, model)
    given = given_options(sys.argv[1:] if argv is None else argv)
    model = with_word_vectors(model, teacher)
    require_no_classes(recipe, "a teacher's vectors have none")
    if recipe.encoder_learning_rate is not None:
        raise ValueError("--encoder_learning_rate is for a model with a classifier: give --learning_rate alone.")
    if run.evaluate_train:
        raise ValueError("--evaluate_train is for labelled examples, and a teacher's are not: leave it out.")
    metric = recipe.metric_for_best_model or default_metric(teacher)
    metric_value(dict.fromkeys(metric_names(teacher), 1.0), metric)  # refuses another name
    recipe = replace(recipe, metric_for_best_model=metric)
    prepare = partial(prepare_distillation, teacher, losses, metric, model, overrides, run)

    def check() -> CheckedRun:
        config = student_config(model, overrides)
        refuse_unread(config, model, given, has_classifier=False)
        refuse_unread_of_recipe(config, recipe, given, has_classifier=False)
        check_recipe(config, recipe, run)
        options = {"teacher": asdict(teacher), "losses": asdict(losses), **shared_identity(model, recipe, run)}
        metrics = ["loss", *metric_names(teacher)]
        return CheckedRun({"config": config.to_dict(), **options}, metrics, ["train", "validation"], False)

    def train() -> None:
        check()
        train_and_evaluate(prepare, "distillation", model, recipe, run, REPORTERS)

    return ReadRun(train, check)


def main() -> None:
    """Train, evaluate and report, as the process's own command line says."""
    read().train()


if __name__ == "__main__":
    sys.exit(run_script(main))
