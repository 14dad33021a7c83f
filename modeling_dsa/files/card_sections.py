"""A model's card, and sections of it that commands write anew each time while all else stays."""

import re
from pathlib import Path
from typing import Any, cast

import yaml
from huggingface_hub import ModelCard, ModelCardData
from huggingface_hub.repocard import REGEX_YAML_BLOCK

from modeling_dsa.command.messages import cause_of

from .replacing import replaced_file

CARD = "README.md"
_NORWEGIAN = "no"
_KEY = re.compile(r"([\w.-]+):(?:\s|$)")
_OWN_WORDS = re.compile(r"<!-- own words -->\n.*?<!-- end of own words -->", re.S)


def read_card(folder: Path) -> ModelCard:
    """Read a model's card. The language `no`, which YAML takes for false, is Norwegian.

    Raises:
        FileNotFoundError: The folder has none.
        ValueError: Its metadata are broken.
    """
    path = folder / CARD
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {CARD}: --card adds figures to the card of a model's folder.")
    try:
        card = cast(ModelCard, ModelCard.load(path))
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(
            f"{path}: the metadata between the --- lines are broken ({cause_of(error)}): fix them."
        ) from error
    data = cast(Any, card.data)  # its types know nothing of what YAML makes of `no`
    if isinstance(data.language, list):
        data.language = [_NORWEGIAN if language is False else language for language in data.language]
    elif data.language is False:
        data.language = _NORWEGIAN
    return card


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
    for words in _OWN_WORDS.findall(old.text.replace("\r\n", "\n")):
        card.text = f"{card.text.rstrip()}\n\n{words}\n"
    new_data, old_data = cast(ModelCardData, card.data), cast(ModelCardData, old.data)
    new_data.language = new_data.language or old_data.language
    new_data.license = new_data.license or old_data.license


def save_card(card: ModelCard, path: Path) -> None:
    """Write a card to a file."""
    with replaced_file(path) as beside:
        beside.write_text(str(card), encoding="utf-8", newline="")


def save_changed_card(card: ModelCard, path: Path) -> None:
    """Write a card over the file that it was read from: metadata that have not changed stay as they are there."""
    before = path.read_bytes().decode("utf-8")
    with replaced_file(path) as beside:
        beside.write_text(_with_metadata_as_written(before, str(card)), encoding="utf-8", newline="")


def _with_metadata_as_written(before: str, after: str) -> str:
    """A card with the text of another's metadata where both say the same.

    YAML that is written anew has no comments, no empty values, and 1.1 in place of 1.10.
    """
    old, new = REGEX_YAML_BLOCK.search(before), REGEX_YAML_BLOCK.search(after)
    if old is None or new is None:
        return after
    was, now = _entries(old.group(2)), _entries(new.group(2))
    values = yaml.safe_load(old.group(2)) or {}, yaml.safe_load(new.group(2)) or {}
    if was.keys() != values[0].keys() or now.keys() != values[1].keys():  # one of YAML's rarer forms
        return after
    lines: list[str] = []
    for key, (remarks, entry) in was.items():
        is_changed = key in now and values[0][key] != values[1][key]
        lines += [*remarks, *(now[key][1] if is_changed else entry)]
    lines += [line for key, (_, entry) in now.items() if key not in was for line in entry]
    line_break = "\r\n" if "\r\n" in old.group(0) else "\n"
    return after[: new.start(2)] + line_break.join(lines) + after[new.end(2) :]


def _entries(metadata: str) -> dict[str, tuple[list[str], list[str]]]:
    """The lines of each key of a YAML mapping in block style, and those of the remarks above it."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    remarks: list[str] = []
    entry: list[str] = []
    for line in metadata.splitlines():
        key = _KEY.match(line)
        if key is not None:
            entry = []
            found[key.group(1)] = (remarks, entry)
            remarks = []
        if line.startswith("#"):
            remarks.append(line)
        else:
            entry.extend([*remarks, line])  # remarks within an entry
            remarks = []
    entry.extend(remarks)
    return found
