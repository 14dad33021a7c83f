"""Requests to stop: a run that gets one writes a checkpoint before it ends."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818  (not an error: the same command resumes the run)
    """The run was asked to stop and has written a checkpoint."""


@contextmanager
def handled_signals(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Inside the block a function handles these signals."""
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextmanager
def catch_signals() -> Iterator[list[int]]:
    """A list that SIGINT, SIGTERM and SLURM's SIGUSR1 fill instead of ending the process; a second one ends it."""
    received: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    with handled_signals(remember, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        yield received
