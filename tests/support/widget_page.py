"""The page of model_cards/widget: built by npm once for all tests, and served from loopback."""

import hashlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from filelock import FileLock

from modeling_dsa.hub.static_space import BUILD

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "model_cards" / "widget"
CACHE = ROOT / ".cache"
_MADE = shutil.ignore_patterns("node_modules", "dist")


class NotBuiltError(RuntimeError):
    """npm is missing, or cannot reach its registry."""


def build_widget() -> Path:
    """A copy of model_cards/widget in which the documented command has run; the page is in its folder `dist`.

    Raises:
        NotBuiltError: It cannot be built here.
    """
    CACHE.mkdir(exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n", encoding="utf-8")
    made = [path for path in sorted(SOURCES.rglob("*")) if path.is_file()]
    sources = [path for path in made if not {"node_modules", "dist"}.intersection(path.relative_to(SOURCES).parts)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    folder = CACHE / f"widget-{digest}"
    with FileLock(CACHE / "widget.lock"):
        if not (folder / "dist" / "bundle.json").is_file():
            for old in CACHE.glob("widget-*"):
                shutil.rmtree(old)
            if shutil.which("npm") is None:
                raise NotBuiltError("there is no program `npm` to build the widget with")
            shutil.copytree(SOURCES, folder, ignore=_MADE)
            done = subprocess.run(BUILD, cwd=folder, shell=True, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                shutil.rmtree(folder)
                raise NotBuiltError(f"npm could not build the widget: {done.stderr.strip()}")
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder's files, as a static Space serves them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
