"""A real browser for the pages of this package: headless Chromium, and the picture of the demo."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no program `chromium` to open the page with")
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
