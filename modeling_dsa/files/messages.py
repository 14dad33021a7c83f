"""Words of messages to people."""

import difflib
from collections.abc import Iterable


def one_line(what: object) -> str:
    """An error's words without its line breaks."""
    return " ".join(str(what).split())


def suggestion(name: str, names: Iterable[str]) -> str:
    """The end of the sentence about an unknown name: the one that it is close to, or all there are."""
    names = sorted(names)
    close = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(names) or 'none'}."


def listed(names: Iterable[str]) -> str:
    """Names for a sentence: in one line, whatever they hold."""
    return " ".join(", ".join(names).split())[:500] or "none"


def it_has(name: str, names: Iterable[str]) -> str:
    """The end of the sentence that something has no part of that name: those that it has, and which one is close."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1)
    return f"it has {listed(names)}" + (f"; did you mean {close[0]!r}?" if close else ".")
