"""A command in a process of its own, which a request to stop reaches."""

import subprocess
from collections.abc import Sequence
from types import FrameType

from run_glue_style.training.interruption import handled_stops


def run_to_end(command: Sequence[str]) -> int:
    """Exit code of a command. A request to stop goes on to it once, whoever sent it, and counts when it has ended.

    Raises:
        KeyboardInterrupt: This process or the command was asked to stop.
    """
    asked: list[int] = []
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        for child in children:
            child.terminate()

    with (
        handled_stops(pass_on),
        # In a process group of its own: a terminal's Ctrl-C would reach it beside ours, and a second one is a kill.
        subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0) as child,
    ):
        children.append(child)
        code = child.wait()
    if asked or code == 130:
        raise KeyboardInterrupt
    return code
