"""One run at a time in a folder: two would delete each other's checkpoints, and finish with each other's weights."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from modeling_dsa.files.outputs import require_folder
from modeling_dsa.files.replacing import write_json

_LOCK, _HOLDER = ".lock", ".lock-holder.json"


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no other process on any machine that shares it does.

    The system releases the lock of a process that died, whatever killed it. On a file system without such locks (some
    network file systems) `filelock` warns and lets the existence of the file `.lock` decide, which a killed run leaves.

    Args:
        folder: Made where it does not exist, and removed again where the block leaves nothing in it.

    Raises:
        ValueError: It is a file, or another process holds it; the sentence says which.
    """
    require_folder(folder, "--output_dir")
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path, holder = folder / _LOCK, folder / _HOLDER
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(
            f"{folder} is in use by another run ({_describe(holder)}): wait for its end, or give another --output_dir."
        ) from None
    try:
        write_json({"host": socket.gethostname(), "process": os.getpid()}, holder)
        yield
    finally:
        holder.unlink(missing_ok=True)
        path.unlink(missing_ok=True)  # before the release: afterwards it may be another run's
        lock.release()
        with suppress(OSError):  # it is not empty
            for made in missing:
                made.rmdir()


def _describe(holder: Path) -> str:
    try:
        found = json.loads(holder.read_text(encoding="utf-8"))
        return f"process {found['process']} on {found['host']}"
    except (OSError, ValueError, KeyError):  # it has the lock and not yet said who it is
        return "which is just starting"
