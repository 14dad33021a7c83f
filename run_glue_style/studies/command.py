"""What the commands that make a table of many runs share: how they read their command line, and how they end."""

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from modeling_dsa.command.command_line import unknown_option
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.command.standard_output import check_standard_output, standard_output
from run_glue_style.training.arguments import given_options

logger = logging.getLogger(__name__)


def run_study(
    parser: argparse.ArgumentParser,
    left_out: Mapping[str, str],
    make: Callable[[argparse.Namespace, Sequence[str]], tuple[Path, str]],
    argv: Sequence[str] | None,
) -> int:
    """Read the command line of a study, make its table and print it.

    Args:
        parser: Of the study's own options.
        left_out: Names of options that the script has and the study does not pass on, and why.
        make: As in `run_command`, of those and of all others, which are for the script that trains.
        argv: The command line's arguments; None: the process's own.

    Returns:
        As `run_command`.

    Raises:
        SystemExit: The command line has a mistake.
    """
    arguments, options = parser.parse_known_args(argv)

    def checked() -> tuple[Path, str]:
        _check_spelling(options)
        for name in left_out.keys() & given_options(options):
            raise ValueError(f"Leave out --{name}: {left_out[name]}.")
        _refuse_near_miss(parser, options)
        return make(arguments, options)

    return run_command(checked, argv, stopped="Stopped. The same command resumes here.")


def _refuse_near_miss(parser: argparse.ArgumentParser, options: Sequence[str]) -> None:
    """Refuse `--rows` for the study's own `--row`, which no script has."""
    own = [option for option in parser._option_string_actions if option.startswith("--")]
    for name in given_options(options):
        if any(f"--{name}".startswith(option) or option.startswith(f"--{name}") for option in own):
            raise ValueError(unknown_option(f"--{name}", own))


def _check_spelling(options: Sequence[str]) -> None:
    """Refuse `--output-dir`, which the scripts take for `--output_dir`: what a study sets is known by one name."""
    for option in options:
        name = option.split("=")[0]
        if name.startswith("--") and "-" in name[2:]:
            raise ValueError(f"Write --{name[2:].replace('-', '_')} in place of {name}.")


def run_command(make: Callable[[], tuple[Path, str]], argv: Sequence[str] | None, *, stopped: str = "Stopped.") -> int:
    """Make a table and print it.

    Args:
        make: Makes it, and gives its folder and its Markdown.
        argv: As for `exit_code_of`.
        stopped: Likewise.

    Returns:
        As `exit_code_of`: 2 also after a failed run.
    """
    return exit_code_of(partial(_make_and_print, make), argv, level=logging.INFO, stopped=stopped)


def _make_and_print(make: Callable[[], tuple[Path, str]]) -> None:
    check_standard_output()
    folder, table = make()
    logger.info(f"The table is {folder / 'table.md'}, its picture {folder / 'plot.png'}.")
    with standard_output() as answer:
        print(table, file=answer)
