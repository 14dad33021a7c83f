"""Standard output that is closed or full, that nobody reads any more, or that cannot show some character."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Where a command prints its answer; all of it is there at the end of the block.

    A reader that has enough, such as `head`, ends the block without an error. Hence no other pipe is written within it,
    such as standard error's by a bar of progress: what breaks that one has stopped the work.

    Raises:
        ValueError: It is closed.
        OSError: It cannot be written, such as on a full disk.
    """
    check_standard_output()
    # The terminal of another time shows an escape in place of what it has no sign for.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a TextIOWrapper
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if isinstance(error, BrokenPipeError):
            return
        if error.errno == errno.ENOSPC and error.filename is None:
            error.filename = "standard output"
        raise


def check_standard_output() -> None:
    """Tell before the work that its answer would go nowhere.

    Raises:
        ValueError: Standard output is closed.
    """
    if sys.stdout is None:
        raise ValueError("Standard output is closed: send it to a file or to /dev/null.")


def _drop_output() -> None:
    """Leave nothing behind that Python would try to write once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
