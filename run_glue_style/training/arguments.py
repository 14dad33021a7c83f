"""The command line of the training scripts: a recipe file over the defaults, and the options over both."""

import argparse
import copy
import logging
import re
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import Field, fields, make_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn, cast, get_args, get_type_hints

from transformers import HfArgumentParser

from modeling_dsa import DSAConfig
from modeling_dsa.command.command_line import refuse_mistyped, repeated_option, unknown_option
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.options_dsa import option, option_help
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.shipped.settings import read_recipe, recipe_path, setting_folder

from .recipe import ModelArguments, RunArguments, TrainingRecipe

NONE = "none"


class _OfSetting:
    """The value of an option that was not given, where None is one that can be."""

    def __repr__(self) -> str:
        return "the setting's"


logger = logging.getLogger(__name__)

_OF_SETTING = _OfSetting()
# What users of transformers' own scripts look for.
_OF_RUN_GLUE = {
    **{name: f"give --mixed_precision {name}" for name in ("fp16", "bf16")},
    **dict.fromkeys(("max_seq_length", "max_length"), "give --max_sentence_tokens"),
    **dict.fromkeys(("do_train", "do_eval", "do_predict"), "every run trains and evaluates, so leave it out"),
    "no_cuda": "give --cpu",
}


def _config_overrides() -> type:
    """A dataclass with a field for each of DSAConfig that neither the data nor the task decide."""
    texts = option_help(DSAConfig)
    choices: dict[str, Any] = {"encoder": ENCODERS, "pooling": POOLINGS}
    entries: list[tuple[str, Any, Any]] = []
    for config_field in fields(DSAConfig):
        name, kind = config_field.name, cast(Any, config_field.type)
        if name in texts and name not in ("vocab_size", "sentences_per_example"):
            if "list" in str(kind):
                kind = list[str] if "str" in str(kind) else list[int]
            elif kind == float | int:
                kind = float
            elif name in choices:
                kind = Literal[tuple(choices[name])]
            entries.append((name, kind, option(_OF_SETTING, texts[name])))
    overrides = make_dataclass("ConfigOverrides", entries)
    overrides._argument_group_name = "model configuration"  # type: ignore[attr-defined]
    return overrides


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the default of an option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is None else super()._get_help_string(action)


class _Parser(HfArgumentParser):
    """Refuses a mistake with one sentence and exit code 2, and says when it is in a recipe file."""

    source: Path | None = None

    def __init__(self, dataclasses: Sequence[type], description: str | None) -> None:
        super().__init__(
            list(dataclasses),  # type: ignore[arg-type]
            description=description,
            allow_abbrev=False,
            formatter_class=_HelpFormatter,
        )
        self.kinds: dict[str, Any] = {}
        for options in dataclasses:
            self.kinds |= get_type_hints(options)
        # HfArgumentParser leaves the default of a list at None.
        self.set_defaults(
            **{
                entry.name: _OF_SETTING
                for kind in dataclasses
                for entry in fields(kind)
                if entry.default is _OF_SETTING
            }
        )
        for name, kind in self.kinds.items():
            for number in (int, float):
                if set(get_args(kind)) == {number, type(None)}:
                    self._option_string_actions[f"--{name}"].type = _or_none(number)

    @staticmethod
    def _parse_dataclass_field(parser: argparse.ArgumentParser, field: Field[Any]) -> None:
        """As HfArgumentParser, but for the bound of a field, which it would hand to argparse with the help."""
        shown = copy.copy(field)
        shown.metadata = MappingProxyType({"help": field.metadata["help"]})
        HfArgumentParser._parse_dataclass_field(parser, shown)

    def error(self, message: str) -> NoReturn:
        location = f"{self.source}: " if self.source else ""
        self.exit(2, f"error: {location}{message}\nSee --help for all options.\n")

    def read(self, argv: Sequence[str]) -> tuple[Any, ...]:
        """The dataclasses for these arguments."""
        *parsed, unknown = self.parse_args_into_dataclasses(
            list(argv), return_remaining_strings=True, look_for_args_file=False
        )
        if unknown and not unknown[0].startswith("-"):
            self.error(f"no option takes '{unknown[0]}': the one before it has its value already.")
        if unknown:
            self.refuse_option(unknown[0])
        return tuple(parsed)

    def refuse_option(self, argument: str, instead: str = "") -> NoReturn:
        """Say that there is no such option, what it might have been, and what else to do."""
        names = [option for option in self._option_string_actions if "_" in option or "-" not in option[2:]]
        names.remove("--help")
        of_run_glue = _OF_RUN_GLUE.get(_option_name(argument))
        if of_run_glue is not None:
            self.error(f"there is no option '{argument.partition('=')[0]}': {of_run_glue}.{instead}")
        self.error(unknown_option(argument, names) + instead)

    def arguments_of(self, options: dict[str, Any], is_named: bool) -> list[str]:
        """Options of a recipe as a command line, so that one parser checks both.

        Args:
            options: By name.
            is_named: Whether `--recipe` names it: a setting's own may be for another script.
        """
        instead = "" if is_named else " If the setting's own recipe is for another script, give --recipe modern."
        argv = []
        for name, value in options.items():
            if name == "recipe":
                self.error("a recipe cannot name another one: leave 'recipe' out.")
            if name not in self.kinds:
                self.refuse_option(f"--{name}", instead)
            if isinstance(value, list) and "list" not in str(self.kinds[name]):
                self.error(f"{name} must be one value, got {len(value)}.")
            if value is None and type(None) not in get_args(self.kinds[name]):
                self.error(f"{name} must have a value, got null.")
            if isinstance(value, list):
                argv += [f"--{name}", *(str(item) for item in value)]
            elif value is not None:
                argv.append(f"--{name}={value}")
            elif set(get_args(self.kinds[name])) & {int, float}:
                argv.append(f"--{name}={NONE}")
            # What else can be null is so by default.
        return argv


def _or_none(number: type[int] | type[float]) -> Callable[[str], int | float | None]:
    def read(text: str) -> int | float | None:
        return None if text.lower() == NONE else number(text)

    read.__name__ = f"{number.__name__} or {NONE}"  # argparse names it in its sentence about a value that it refuses
    return read


def parse_arguments(
    task: Sequence[type],
    description: str | None,
    argv: Sequence[str] | None = None,
    default_setting: str | None = None,
    recipe_folder: Callable[[Path], Path] | None = None,
) -> tuple[Any, ...]:
    """Read the command line over the recipe file that it names over the defaults.

    A rate of the word table that the recipe gives is left out where the words are frozen.

    Args:
        task: Dataclasses with the options of one script, each a group in `--help`.
        description: What the script does.
        argv: The command line; default: the process's own.
        default_setting: What is trained where the command line names neither a setting nor a model. A model takes the
            recipe of this setting.
        recipe_folder: From a setting's folder to the one whose recipe it takes where none is named; default: the same.

    Returns:
        An instance of each class of `task`, then ModelArguments, TrainingRecipe, RunArguments, and the fields of
        DSAConfig that were given, as a dict.

    Raises:
        SystemExit: There is a mistake (code 2), or `--help` (0).
        OSError: There is no such model.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _Parser([*task, ModelArguments, TrainingRecipe, RunArguments, _config_overrides()], description)
    of_recipe: list[str] = []
    try:
        refuse_mistyped(argv)
        for option, word in zip(["", *argv], argv, strict=False):
            if word == "" or re.fullmatch(r"--\w+=", word):
                raise ValueError(f"{word.rstrip('=') or option} has an empty value: leave it out, or give one.")
        repeated = repeated_option(parser, argv)
        if repeated is not None:
            parser.error(repeated)
        if {"-h", "--help"} & set(argv):
            _show_recipe(parser, option_values(argv), default_setting, recipe_folder)
        else:
            known, _ = parser.parse_known_args(argv)
            own, folder = _folders(known.setting or default_setting, recipe_folder)
            path = recipe_path(known.recipe, folder)
            if known.recipe is None and folder is not None and folder != own:
                argv.append(f"--recipe={folder.name}")  # for the records, which else name the setting's own
            options = read_recipe(path) if path is not None else {}
            start = known.model_name_or_path or options.get("model_name_or_path")
            if default_setting is not None and start is None and not (known.setting or options.get("setting")):
                argv.append(f"--setting={default_setting}")
            if start is not None:
                # A recipe says how a fresh model is made; it must not change what stored weights compute.
                left_out = options.keys() & option_help(DSAConfig).keys()
                if known.recipe is not None and left_out:
                    logger.warning(
                        f"{path}: where a saved model is the start, what its recipe says of the model does not count "
                        f"({', '.join(sorted(left_out))}): give what is wanted as options."
                    )
                options = {name: value for name, value in options.items() if name not in left_out}
            parser.source = path
            of_recipe = parser.arguments_of(options, is_named=known.recipe is not None)
            parser.read(of_recipe)
        parser.source = None
        # The recipe comes first, so that the command line wins.
        *of_task, model, recipe, run, config = parser.read([*of_recipe, *argv])
        overrides = {name: value for name, value in vars(config).items() if value is not _OF_SETTING}
        is_of_recipe = recipe.embedding_learning_rate is not None and known.embedding_learning_rate is None
        if is_of_recipe and _freezes_words(model, overrides):
            recipe = replace(recipe, embedding_learning_rate=None)
    except ValueError as error:
        parser.error(str(error))
    return *of_task, model, recipe, run, overrides


def _folders(
    setting: str | None, recipe_folder: Callable[[Path], Path] | None
) -> tuple[Path, Path] | tuple[None, None]:
    """A setting's folder and the one whose recipe it takes; none without a setting."""
    if not setting:
        return None, None
    own = setting_folder(setting)
    return own, own if recipe_folder is None else recipe_folder(own)


def _show_recipe(
    parser: _Parser,
    given: dict[str, list[str]],
    default_setting: str | None,
    recipe_folder: Callable[[Path], Path] | None,
) -> None:
    """Make `--help` show the values of the recipe that the command line would have without it."""
    setting, recipe = (next(iter(given.get(name, ())), None) for name in ("setting", "recipe"))
    with suppress(ValueError):  # of which --help may be the remedy
        path = recipe_path(recipe, _folders(setting or default_setting, recipe_folder)[1])
        options = read_recipe(path) if path is not None else {}
        parser.set_defaults(**{name: value for name, value in options.items() if name in parser.kinds})
    parser.set_defaults(setting=setting or default_setting)


def _freezes_words(model: ModelArguments, overrides: dict[str, Any]) -> bool:
    if "freeze_embeddings" in overrides:
        return bool(overrides["freeze_embeddings"])
    if model.model_name_or_path is None and model.setting is None:
        return False
    return bool(read_config(model.source).get("freeze_embeddings", DSAConfig().freeze_embeddings))


def _option_name(argument: str) -> str:
    """As the scripts know it: they take `--output-dir` for `--output_dir`."""
    return argument[2:].split("=")[0].replace("-", "_")


def option_values(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The values of each option in a command line, by its name."""
    options: dict[str, list[str]] = {}
    values: list[str] = []
    for argument in arguments:
        if argument.startswith("--"):
            _, equals, value = argument.partition("=")
            values = options[_option_name(argument)] = [value] if equals else []
        else:
            values.append(argument)
    return options


def given_options(arguments: Sequence[str]) -> set[str]:
    """The names of the options in a command line."""
    return set(option_values(arguments))


def without_options(arguments: Sequence[str], names: Collection[str]) -> list[str]:
    """A command line without these options and their values."""
    kept, dropping = [], False
    for argument in arguments:
        if argument.startswith("--"):
            dropping = _option_name(argument) in names
        if not dropping:
            kept.append(argument)
    return kept
