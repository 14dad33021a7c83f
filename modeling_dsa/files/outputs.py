"""What a command line may name as an output: told before the work, and nothing is written."""

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .model_folder import holds_model


def refuse_input(output: Path, inputs: Iterable[str | Path], option: str) -> None:
    """Refuse a file to write that would replace what is read, or where a folder is, or whose name is a URL.

    Args:
        output: The file.
        inputs: What is read; what is no file is a text.
        option: Which says where the output goes.

    Raises:
        ValueError: It is one of them, or a folder, or a URL.
    """
    _refuse_url(output, option)
    if output.is_dir():
        raise ValueError(f"{output} is a folder: give another {option}.")
    for given in inputs:
        is_there = os.path.exists(given)  # noqa: PTH110  (pathlib's fails for a text too long for a name)
        if is_there and output.exists() and output.samefile(given):
            raise ValueError(f"{output} is an input, and would be replaced: give another {option}.")


def refuse_other_files(paths: Iterable[Path], option: str) -> None:
    """Refuse to replace files of the names that a command writes, in a folder that holds nothing of that command.

    Args:
        paths: What the command writes or removes there.
        option: Which says where they go.

    Raises:
        ValueError: One of them is there.
    """
    for path in paths:
        if path.exists():
            raise ValueError(f"{path} is there, and no file of this command: give another {option}, or move it away.")


def refuse_other_report(
    report: Path, beside: Iterable[Path], read: Callable[[dict[str, Any]], object], option: str
) -> None:
    """Refuse to replace a JSON file of the name of a command's report that is none, or what it writes beside one.

    Args:
        report: The file.
        beside: What else the command writes there.
        read: Reads the content of a report, with a ValueError where it is none.
        option: Which says where they go.

    Raises:
        ValueError: It is another file, or the others are there without a report.
    """
    if not report.is_file():
        refuse_other_files(beside, option)
        return
    try:
        read(json.loads(report.read_text(encoding="utf-8")))
    except (ValueError, RecursionError):
        refuse_other_files([report], option)


def refuse_model_folder(output: Path, option: str) -> None:
    """Refuse a file to write in the folder of a model, which a push would take along.

    Raises:
        ValueError: It is in one.
    """
    if holds_model(output.parent):
        raise ValueError(f"{output} is in the folder of a model: give another {option}.")


def require_folder(folder: Path, option: str) -> None:
    """Require the name of a folder that is one or can become one: no file, nothing within one, no URL; none is made.

    Args:
        folder: What was given.
        option: What it was given with, for the sentence.

    Raises:
        ValueError: A file is there, or it is a URL.
    """
    _refuse_url(folder, option)
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"{there} is a file: give {option} a folder.")


def _refuse_url(path: Path, option: str) -> None:
    """Refuse what was typed as a URL, such as `s3://bucket/a.csv`: as a path it is in a folder `s3:` here."""
    if re.match(r"[a-z][a-z0-9+.-]+:/", path.as_posix(), re.IGNORECASE):
        raise ValueError(f"{path} is a URL, and this is written on this machine alone: give another {option}.")
