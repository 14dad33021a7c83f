"""Requests to stop: a run that gets one writes a checkpoint before it ends."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818  (not an error: the same command resumes the run)
    """The run was asked to stop and has written a checkpoint."""


# Ctrl-C, a scheduler's, SLURM's before its time is up, and a closed terminal's.
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


@contextmanager
def handled_stops(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Inside the block a function handles requests to stop, but no SIGHUP that this process ignores, as under nohup."""
    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else set()
    previous = {number: signal.signal(number, handler) for number in _STOPS if number not in ignored}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextmanager
def catch_signals() -> Iterator[list[int]]:
    """A list that requests to stop fill; a second one ends the run."""
    received: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    with handled_stops(remember):
        yield received
