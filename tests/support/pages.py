"""The pages that a user reads, and the snippets in them.

A fenced block is a snippet by the comment before it, `<!-- snippet: NAME -->`, or a command, `<!-- command: NAME -->`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "pages"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(SITE.rglob("*.md")))
_FENCE = re.compile(r"(?:^<!-- (snippet|command): (\S+) -->\n)?^```(\w+)\n(.*?)^```$", flags=re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block; `kind` and `name` are empty where no comment stands before it."""

    page: Path
    kind: str
    name: str
    language: str
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines of a shell script, continued ones in one piece."""
        return self.text.replace("\\\n", " ").splitlines()


BLOCKS = [
    Block(page, *(part or "" for part in found)) for page in PAGES for found in _FENCE.findall(page.read_text("utf-8"))
]
SNIPPETS = {block.name: block for block in BLOCKS if block.kind == "snippet"}
COMMANDS = {block.name: block for block in BLOCKS if block.kind == "command"}
