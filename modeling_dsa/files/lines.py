"""Lines of UTF-8 files, also packed ones, and of standard input."""

import sys
from collections.abc import Iterable, Iterator

from .remote_paths import AnyPath
from .unpacking import open_unpacked

DASH, STANDARD_INPUT = "-", "standard input"  # on a command line, and in messages


def read_lines(path: AnyPath) -> Iterator[tuple[str, str]]:
    """Read the lines of a UTF-8 file, also with `.gz` behind.

    Yields:
        Where the line is, such as `a.txt, line 7`, and the line without its end.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8 or a broken gzip file.
    """
    for number, line in enumerate(raw_lines(path), 1):
        yield f"{path}, line {number}", line.rstrip("\r\n")


def read_standard_input() -> Iterator[tuple[str, str]]:
    """Read the lines of standard input as they come; as in `read_lines`.

    Raises:
        ValueError: It is closed, or a line is not UTF-8.
    """
    if sys.stdin is None:
        raise ValueError("Standard input is closed: pipe sentences into it, or give a file.")
    for number, line in enumerate(_decoded(STANDARD_INPUT, sys.stdin.buffer), 1):
        yield f"{STANDARD_INPUT}, line {number}", line.rstrip("\r\n")


def raw_lines(path: AnyPath) -> Iterator[str]:
    """The lines of a file with their ends; as in `read_lines`."""
    with open_unpacked(path) as file:
        yield from _decoded(str(path), file)


def _decoded(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}, line {number} is not UTF-8: save it as UTF-8.") from error
        if number == 1:
            _refuse_other_lines(name, text)
        yield text


def _refuse_other_lines(name: str, first: str) -> None:
    """Refuse what would be read as UTF-8, but as other lines than were meant."""
    if "\0" in first:
        raise ValueError(f"{name}, line 1 holds a zero byte, as UTF-16 and files of programs do: save it as UTF-8.")
    if "\r" in first.rstrip("\r\n"):
        raise ValueError(
            f"{name}, line 1 holds a carriage return that ends no line, as in files of old Macs: end lines with \\n."
        )
