"""Requests to stop: a run that gets one writes a checkpoint before it ends."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818  (not an error: the same command resumes the run)
    """The run was asked to stop and has written a checkpoint."""


@contextmanager
def catch_signals() -> Iterator[list[int]]:
    """A list that SIGINT, SIGTERM and SLURM's SIGUSR1 fill instead of ending the process; a second one ends it."""
    received: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    previous = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
