"""How a command ends: an exit code, and one sentence after a user's mistake or an interrupt."""

import logging
import sys
from collections.abc import Callable, Sequence

from safetensors import SafetensorError

from .command_line import refuse_mistyped

logger = logging.getLogger(__name__)


def exit_code_of(
    command: Callable[[], int | None],
    argv: Sequence[str] | None,
    *,
    level: int = logging.WARNING,
    stopped: str = "Stopped.",
) -> int:
    """Run a command, whose messages go to standard error as they are.

    Args:
        command: What it does; raises a ValueError or an OSError after a user's mistake.
        argv: The command line's arguments, which `refuse_mistyped` reads first; None: the process's own.
        level: Of the messages that are shown.
        stopped: What is said after an interrupt.

    Returns:
        What the command returns, 0 for None; 2 after a user's mistake, 130 after an interrupt.
    """
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr)
    logging.getLogger("huggingface_hub").propagate = False  # it has a handler of its own
    try:
        refuse_mistyped(sys.argv[1:] if argv is None else argv)
        return command() or 0
    except KeyboardInterrupt:
        logger.warning(stopped)
        return 130
    except (ValueError, OSError, SafetensorError) as error:
        logger.error(f"error: {error}")
        return 2
