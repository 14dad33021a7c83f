"""A model's card, and sections of it that commands write anew each time while all else stays."""

import re
from pathlib import Path
from typing import cast

from huggingface_hub import ModelCard, ModelCardData
from yaml import YAMLError

from .messages import cause_of
from .replacing import replaced_file

CARD = "README.md"
_OWN_WORDS = re.compile(r"<!-- own words -->\n.*?<!-- end of own words -->", re.S)


def read_card(folder: Path) -> ModelCard:
    """Read a model's card.

    Raises:
        FileNotFoundError: The folder has none.
        ValueError: Its metadata are broken.
    """
    path = folder / CARD
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {CARD}: --card adds figures to the card of a model's folder.")
    try:
        return cast(ModelCard, ModelCard.load(path))
    except (YAMLError, ValueError) as error:
        raise ValueError(
            f"{path}: the metadata between the --- lines are broken ({cause_of(error)}): fix them."
        ) from error


def put_section(card: ModelCard, command: str, section: str) -> None:
    """Put a section into a card in place of the one before, or at its end.

    Args:
        card: What `read_card` gives.
        command: Whose section it is, such as `dsa evaluate`.
        section: Its Markdown, with the heading.
    """
    start, end = f"<!-- {command}: this section is written anew by each evaluation -->", f"<!-- end of {command} -->"
    marked = f"{start}\n{section}\n{end}"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.S)
    text = card.text
    if pattern.search(text):
        card.text = pattern.sub(lambda _: marked, text, count=1)
    else:
        card.text = f"{text.rstrip()}\n\n{marked}\n"


def keep_own_words(card: ModelCard, old: ModelCard) -> None:
    """Take over what only people know from the card that is replaced.

    Args:
        card: The new one. Its end gets the text between each `<!-- own words -->` and `<!-- end of own words -->`,
            and it language and licence, where it names none.
        old: The one before.
    """
    for words in _OWN_WORDS.findall(old.text):
        card.text = f"{card.text.rstrip()}\n\n{words}\n"
    new_data, old_data = cast(ModelCardData, card.data), cast(ModelCardData, old.data)
    new_data.language = new_data.language or old_data.language
    new_data.license = new_data.license or old_data.license


def save_card(card: ModelCard, path: Path) -> None:
    """Write a card to a file."""
    with replaced_file(path) as beside:
        beside.write_text(str(card), encoding="utf-8", newline="")
