"""Texts that stand in a card as they are, whatever they hold."""

import json
import re

from modeling_dsa.command.messages import one_line


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f} %"


def quoted(text: str) -> str:
    """Text as a string of Python and JSON."""
    return json.dumps(text, ensure_ascii=False)


def plain(text: object) -> str:
    """Text that Markdown shows as it is, on one line, also in a table."""
    words = one_line(text)
    return re.sub(r"[\\`*{}\[\]<>|#&~$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", words)
