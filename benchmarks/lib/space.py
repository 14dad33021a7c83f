"""The demo, started as its README says."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .shipped import REPOSITORY

_PATIENCE = 120  # seconds until the page must be up


@contextmanager
def running_space(log: Path, *models: str) -> Iterator[str]:
    """The page's address, while it runs, with `models` on the command line; it answers from then on.

    Raises:
        RuntimeError: It has not started within two minutes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "model_cards/space/app.py", *models]
    with log.open("wb") as output:
        space = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _answers(url):
            if space.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the Space did not start: {log.read_text('utf-8')}")
            time.sleep(0.05)
        yield url
    finally:
        space.terminate()
        space.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except urllib.error.URLError:
        return False
