"""Paths as records and cards show them: they are read elsewhere, so a machine's folders have no business there."""

import re
import shlex


def without_folders(argument: str) -> str:
    """An argument of a command line without the folders that tell of a machine, also behind `--option=`, `teacher:`."""
    return re.sub(r"((?:^|=)(?:teacher:)?)(?:~|\.{1,2}(?=/)|/)(?:.*/)?([^/]+)/*\Z", r"\1\2", argument, flags=re.S)


def last_part(model: str) -> str:
    """The name of a model's folder or repository alone, as titles show it."""
    return re.split(r"[\\/]+", model.rstrip("/\\"))[-1] or model


def command_without_folders(command: str) -> str:
    """A command line whose arguments are all without such folders."""
    return shlex.join(map(without_folders, shlex.split(command)))
