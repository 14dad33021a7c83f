"""Options that the training scripts share, and how a recipe file and the command line set them."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, TypeVar

from transformers import HfArgumentParser

from modeling_dsa import DSAConfig

from .settings import read_recipe, recipe_path, setting_folder, setting_names

T = TypeVar("T")


def _option(default: T, text: str) -> T:
    return field(default=default, metadata={"help": text})  # type: ignore[no-any-return]


@dataclass
class ModelArguments:
    """What is trained."""

    _argument_group_name: ClassVar[str] = "model"

    setting: str | None = _option(None, "Published setting, by name or folder: " + ", ".join(setting_names()) + ".")
    model_name_or_path: str | None = _option(None, "Go on from this model instead of a setting with fresh weights.")
    vectors: Path | None = _option(
        None, "Word vectors (GloVe .txt/.zip/.gz, word2vec text/.bin, fastText .vec); default: those in the package."
    )


@dataclass
class TrainingRecipe:
    """How it is trained. A recipe file sets these by name; the command line overrides it."""

    _argument_group_name: ClassVar[str] = "training recipe"

    num_train_epochs: float = _option(12.0, "Passes over the training data.")
    max_train_steps: int | None = _option(None, "Stop after this many updates, whatever num_train_epochs says.")
    per_device_train_batch_size: int = _option(256, "Rows in a training batch of each process.")
    per_device_eval_batch_size: int = _option(512, "Rows in an evaluation batch of each process.")
    gradient_accumulation_steps: int = _option(1, "Batches whose gradients make one update.")
    optimizer: Literal["adamw", "adam"] = _option("adamw", "adam adds weight_decay to the gradient (L2).")
    learning_rate: float = _option(1e-3, "Highest learning rate.")
    weight_decay: float = _option(0.01, "For adamw on weight matrices, for adam (L2) on all parameters.")
    max_grad_norm: float = _option(5.0, "Clip the gradient's norm; 0 clips nothing.")
    schedule: Literal["cosine", "linear", "constant", "plateau"] = _option(
        "cosine", "Learning rate after the warm-up; plateau halves it when the training loss stops falling."
    )
    warmup_ratio: float = _option(0.1, "Share of the updates in which the learning rate rises.")
    plateau_patience: int = _option(5, "Checks without a lower training loss before the rate is halved.")
    plateau_threshold: float = _option(1e-3, "How much lower the loss of a check must be to count.")
    label_smoothing: float = _option(0.0, "Share of the target that is spread over all classes.")
    average_decay: float = _option(0.0, "Evaluate and keep an exponential average of the weights; 0 is off.")
    batch_norm_batches: int = _option(
        0, "Training batches, without dropout, that set batch normalisation's statistics before an evaluation; 0 is off."
    )
    evaluations_per_epoch: int = _option(4, "Evaluations on the validation split in each epoch.")
    early_stopping_patience: int = _option(0, "Stop after this many evaluations without a new best; 0 never stops.")


@dataclass
class RunArguments:
    """Where and how it runs."""

    _argument_group_name: ClassVar[str] = "run"

    output_dir: Path | None = _option(None, "Folder of the model and its results; default: runs/<setting>.")
    overwrite_output_dir: bool = _option(
        False, "Start anew; without it the same command goes on where an interrupted run stopped."
    )
    recipe: str | None = _option(
        None, "Recipe in configuration/recipes by name, or a YAML file; default: the setting's own."
    )
    seed: int = _option(0, "Seed of the initialisation, the order of the data and the dropout.")
    mixed_precision: Literal["no", "bf16", "fp16"] | None = _option(
        None, "bf16 pays on a GPU and on a CPU that computes with it; default: what accelerate's launch file says."
    )
    cpu: bool = _option(False, "Stay on the CPU even where there is a GPU.")
    checkpointing_steps: int | None = _option(
        None, "Updates between two checkpoints; default: one at each evaluation. An interrupt always leaves one."
    )
    report_to: Literal["auto", "none", "tensorboard", "wandb", "trackio"] = _option(
        "auto", "Tracker; auto is tensorboard where it is installed."
    )
    max_train_samples: int | None = _option(None, "Use only the first rows of the training split, for a trial.")


def _help_of_config_fields() -> dict[str, str]:
    """The `Args:` section of DSAConfig's docstring, so that no help text is written twice."""
    text = (DSAConfig.__doc__ or "").split("Args:")[1].split("\n\n")[0]
    entries = re.findall(r"^ {8}(\w+): (.*?)(?=^ {8}\w|\Z)", text + "\n", flags=re.M | re.S)
    return {name: " ".join(words.split()) for name, words in entries}


def _config_overrides() -> type:
    """A dataclass with one optional field for each field of DSAConfig; None leaves the setting's value."""
    texts = _help_of_config_fields()
    entries: list[tuple[str, Any, Any]] = []
    for config_field in fields(DSAConfig):
        name, kind = config_field.name, config_field.type
        if name in texts and name != "vocab_size":  # the vocabulary decides its own size
            if "list" in str(kind):
                kind = list[int]
            entries.append((name, kind | None, field(default=None, metadata={"help": texts[name]})))
    overrides = make_dataclass("ConfigOverrides", entries)
    overrides._argument_group_name = "model configuration (default: the setting's)"  # type: ignore[attr-defined]
    return overrides


class _Parser(HfArgumentParser):
    """Refuses a mistake with one sentence and exit code 2, and says when it stands in a recipe file."""

    source: str | None = None

    def error(self, message: str) -> NoReturn:
        place = f"{self.source}: " if self.source else ""
        self.exit(2, f"error: {place}{message}\nSee --help for all options.\n")


def parse_arguments(task: Sequence[type], description: str, argv: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Read the command line over the recipe file that it names over the defaults.

    Args:
        task: Dataclasses with the options of one script, each a group in `--help`.
        description: What the script does.
        argv: The command line's words; default: the process's own.

    Returns:
        An instance of each class of `task`, then ModelArguments, TrainingRecipe, RunArguments, and the fields of
        DSAConfig that were given, as a dict.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _Parser(
        [*task, ModelArguments, TrainingRecipe, RunArguments, _config_overrides()], description=description
    )
    if not {"-h", "--help"} & set(argv):
        known, _ = parser.parse_known_args(argv)
        try:
            path = recipe_path(known.recipe, setting_folder(known.setting) if known.setting else None)
            words = _as_words(read_recipe(path)) if path else []
        except ValueError as error:
            parser.error(str(error))
        # The recipe comes first, so that a later word of the command line wins.
        parser.source = str(path)
        parser.parse_args(words)
        parser.source = None
        argv = words + argv
    *parsed, overrides = parser.parse_args_into_dataclasses(argv, look_for_args_file=False)
    return *parsed, {name: value for name, value in vars(overrides).items() if value is not None}


def _as_words(options: dict[str, Any]) -> list[str]:
    """Options of a recipe as words of a command line, so that one parser checks both."""
    words = []
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", *(str(item) for item in (value if isinstance(value, list) else [value]))]
    return words
