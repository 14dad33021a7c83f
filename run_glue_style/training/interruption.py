"""Requests to stop: a run that gets one writes a checkpoint before it ends."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818  (not an error: the same command resumes the run)
    """The run was asked to stop and has written a checkpoint."""


@contextmanager
def handled_signals(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Inside the block a function handles these signals, but no SIGHUP that this process ignores, as under `nohup`."""
    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else set()
    previous = {number: signal.signal(number, handler) for number in numbers if number not in ignored}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextmanager
def catch_signals() -> Iterator[list[int]]:
    """A list that SIGINT, SIGTERM, SLURM's SIGUSR1 and a closed terminal's SIGHUP fill; a second one ends the run."""
    received: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    with handled_signals(remember, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        yield received
