"""Command lines: a parser, numbers as values, and what is refused: words that are not what was typed, options given
twice.
"""

import argparse
import difflib
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_WORDS_OF_A_PATH = 4  # what begins as a path and has more is a text


class Parser(argparse.ArgumentParser):
    """Takes no option for another one that it begins, and refuses one that is given twice."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: D102  (argparse's)
        if repeated := repeated_option(self, sys.argv[1:] if args is None else args):
            self.error(repeated)
        return super().parse_known_args(args, namespace)


def make_parser(description: str | None) -> Parser:
    """A parser that shows a module's own text as it is."""
    return Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def whole_number(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    """What reads an option's value as a whole number within bounds, both included."""
    bounds = f"of at least {lowest}" if highest is None else f"from {lowest} to {highest}"

    def parse(value: str) -> int:
        number = int(value) if re.fullmatch(r"-?[0-9]{1,30}", value) else None
        if number is None or number < lowest or (highest is not None and number > highest):
            raise argparse.ArgumentTypeError(f"{value!r} is no whole number {bounds}")
        return number

    return parse


def positive_number(value: str) -> float:
    """Read an option's value as a number above 0."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{value!r} is no number above 0")
    return number


def refuse_mistyped(words: Iterable[str]) -> None:
    """Refuse words that are not what was typed: bytes that Python could not decode, and a `~` that the shell left.

    Of such bytes a classifier would read other characters, and neither safetensors, JSON nor Parquet takes such a path,
    which would come to light after hours of work. A path with a `~` would be that of a folder of this name.

    Args:
        words: The command line's.

    Raises:
        ValueError: One is so.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{word[:200]!r} is no text in {sys.getfilesystemencoding()}, which this system says it writes: type "
                "it so, rename the file, or set PYTHONUTF8=1 where it is UTF-8."
            ) from None
        path = re.sub(r"^--[\w-]+=", "", word)
        if re.fullmatch(r"~|~[\w.-]*/(\S.*)?", path) and len(path.split()) <= _WORDS_OF_A_PATH:
            whole = os.path.expanduser(path)  # noqa: PTH111  (pathlib's fails for an unknown user)
            instead = "the whole path" if whole == path else whole
            raise ValueError(
                f"{word[:200]!r} would be in a folder called {path.partition('/')[0]}, as a shell leaves ~ alone in "
                f"quotes and behind =: write {instead}."
            )


def unknown_option(argument: str, options: Iterable[str]) -> str:
    """What to say of an option that there is not: the one that it begins, or that is close to it.

    Args:
        argument: Such as `--sim` or `--sim=a.csv`.
        options: Those that there are.
    """
    name, options = argument.partition("=")[0], list(options)
    begun = [option for option in options if option.startswith(name)]
    close = begun or difflib.get_close_matches(name, options, n=1, cutoff=0.7)
    return f"there is no option '{name}'." + (f" Did you mean '{close[0]}'?" if close else "")


def repeated_option(parser: argparse.ArgumentParser, argv: Sequence[str]) -> str | None:
    """What to say of an option that is given twice, of which argparse would silently take the last; else None.

    Args:
        parser: Its options that collect values may be given again.
        argv: The arguments; what stands behind `--` are no options.
    """
    given: set[str] = set()
    for word in argv:
        if word == "--":
            break
        action = parser._option_string_actions.get(word.partition("=")[0])
        if action is None or isinstance(action, argparse._AppendAction):
            continue
        if action.dest in given:
            values = "all its values behind one" if action.nargs in ("+", "*") else "it once"
            return f"{action.option_strings[0]} is given twice: give {values}."
        given.add(action.dest)
    return None
