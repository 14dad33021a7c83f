"""Command lines: a parser, and what is refused in them, words that are no text and options that are given twice."""

import argparse
import sys
from collections.abc import Iterable, Sequence


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that shows a module's own text as it is, and takes no option for another one that it begins."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


def refuse_undecoded(words: Iterable[str]) -> None:
    """Refuse bytes that Python could not decode: a classifier would read other characters than were typed, and neither
    safetensors, JSON nor Parquet takes such a path, which would come to light after hours of work.

    Args:
        words: The command line's.

    Raises:
        ValueError: One has such bytes.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{word[:200]!r} is no text in {sys.getfilesystemencoding()}, which this system says it writes: type "
                "it so, rename the file, or set PYTHONUTF8=1 where it is UTF-8."
            ) from None


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
