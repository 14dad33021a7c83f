"""Words of messages to people."""

import difflib
import re
from collections.abc import Iterable


def one_line(what: object) -> str:
    """An error's words without its line breaks."""
    return " ".join(str(what).split())


def cause_of(error: Exception) -> str:
    """Why something failed: the first sentence of what a library says of it, at most 300 characters long."""
    from huggingface_hub.errors import StrictDataclassError

    cause = error.__cause__ or error if isinstance(error, StrictDataclassError) else error
    if "ignore_mismatched_sizes" in str(cause):  # transformers names the tensors in a table that it logs
        return "weights have other shapes than its config says"
    return (re.split(r"[.:]?\s*\n|\. ", str(cause).strip())[0].rstrip(".:") or type(cause).__name__)[:300]


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
