"""The command `dsa`. Each verb has a module, which imports torch and transformers only when it runs."""

import argparse
import logging
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import entry_points, version
from typing import Any, NoReturn

from modeling_dsa.command.command_line import Parser, unknown_option
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.command.messages import one_line
from modeling_dsa.command.standard_output import check_standard_output

from . import encode, evaluate, explain, init, onnx, predict, push, widget

logger = logging.getLogger(__name__)

_VERBS = (init, encode, predict, explain, evaluate, onnx, widget, push)
_VERBS_OF_OTHERS = "modeling_dsa.verbs"  # entry points of packages that use this one: modules like those


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The command line's arguments; default: the process's own.

    Returns:
        As `exit_code_of`, or 1 where the Hub did not take a model.

    Raises:
        SystemExit: After --help and --version, and with code 2 where the command line itself is wrong.
    """
    argv = sys.argv[1:] if argv is None else argv
    return exit_code_of(partial(_run, argv), argv)


def _run(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    arguments.command = shlex.join(["dsa", *argv])

    run: Callable[[argparse.Namespace], int] = arguments.run
    for package in {"modeling_dsa", run.__module__.partition(".")[0]}:
        logging.getLogger(package).setLevel(logging.INFO)
    from transformers.utils import logging as transformers_logging  # takes seconds

    transformers_logging.disable_progress_bar()
    check_standard_output()
    return run(arguments)


class _Parser(Parser):
    """Refuses a mistake with one sentence and exit code 2, also in a verb."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # argparse asks a verb's parser for this alone, and would hand what it leaves to the parser above.
        arguments, left = super().parse_known_args(args, namespace)
        option = next((word for word in left if word.startswith("-") and word.strip("-")), None)
        if option is not None:
            self.error(unknown_option(option, self._option_string_actions))
        if left:
            taken = [action.metavar or action.dest for action in self._get_positional_actions()]
            self.error(f"{left[0]!r} is one argument too many: {self.prog} takes {' '.join(map(str, taken))}.")
        return arguments, left

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\nSee {self.prog} --help.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dsa", description="Dynamic Self-Attention sentence encoders.")
    parser.add_argument("--version", action="version", version=f"dsa-transformers {version('dsa-transformers')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for verb in (*_VERBS, *_verbs_of_others()):
        verb.add_parser(commands)
    return parser


def _verbs_of_others() -> Iterator[Any]:
    for entry in entry_points(group=_VERBS_OF_OTHERS):
        try:
            verb = entry.load()
        except Exception as error:  # other code, which may raise anything: the verbs of this package work all the same
            reason = one_line(f"{type(error).__name__}: {error}")
            logger.warning(
                f"There is no 'dsa {entry.name}', as the entry point {entry.value} cannot be imported ({reason}): "
                "install its package again."
            )
        else:
            yield verb


if __name__ == "__main__":
    sys.exit(main())
