"""The Space in a real browser: starts the page, opens headless Chromium, and takes the picture of it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE = 120  # seconds until the page must be up


@contextmanager
def running_space(log: Path, *models: str) -> Iterator[str]:
    """The page's address, while it runs as its README says, with `models` on the command line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "model_cards/space/app.py", *models]
    with log.open("wb") as output:
        space = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _answers(url):
            if space.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the Space did not start: {log.read_text('utf-8')}")
            time.sleep(0.1)
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


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's headless Chromium, which asks nobody outside for anything by itself."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET))
        yield browser
        browser.close()


def take_picture(url: str, path: Path) -> None:
    """The page with one of its examples, 1280 pixels wide."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 400})
        page.goto(url)
        page.locator(".message").wait_for()
        page.get_by_text("A woman in a red coat is waiting for a bus.").click()
        page.locator(".nearest").wait_for()
        page.wait_for_timeout(1000)  # the bars of the classes grow
        page.mouse.move(0, 0)
        page.screenshot(path=path, full_page=True)
