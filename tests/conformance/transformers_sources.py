"""transformers' own tests, which its source distribution holds and its wheel does not.

They become the package `transformers_tests`; under their own name, `tests`, they might be mistaken for ours.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import transformers
from filelock import FileLock

from conformance import unshipped

PACKAGE = "transformers_tests"
# Modules that a test module of the distribution imports, although the distribution lacks them.
_UNSHIPPED = ("exporters.test_export", "generation.test_utils", "utils.test_configuration_utils")


def fetch(folder: Path) -> Path:
    """Download the source distribution of the installed transformers with pip, and keep its tests in `folder`.

    What is there already is not fetched again. Processes that ask at the same time wait for the first.

    Returns:
        The folder of the package, a folder of `folder`.

    Raises:
        ConnectionError: pip could not download it.
    """
    release = f"transformers-{transformers.__version__}"
    package = folder / release / PACKAGE
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    with FileLock(folder / f"{release}.lock"):
        if package.exists():
            return package
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            unpacked = Path(scratch)
            _download(unpacked)
            with tarfile.open(unpacked / f"{release}.tar.gz") as archive:
                tests = [member for member in archive if member.name.startswith(f"{release}/tests/")]
                archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
                archive.extractall(unpacked, tests)
            (unpacked / release / "tests" / "__init__.py").touch()
            package.parent.mkdir(exist_ok=True)
            (unpacked / release / "tests").replace(package)
    return package


def _download(folder: Path) -> None:
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--no-binary", "transformers"]
    requirement = f"transformers=={transformers.__version__}"
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConnectionError(f"pip could not download the source of {requirement}: {done.stderr.strip()}")


def marks(package: Path) -> list[str]:
    """Names of the pytest marks in the test modules of the folder."""
    found = (re.findall(r"\bmark\.(\w+)", module.read_text(encoding="utf-8")) for module in package.glob("*.py"))
    return sorted({name for names in found for name in names})


def make_importable(package: Path) -> None:
    """Let `PACKAGE` be imported, with what `unshipped` has for the modules that the distribution lacks."""
    sys.path.append(os.fspath(package.parent))
    for name in _UNSHIPPED:
        sys.modules[f"{PACKAGE}.{name}"] = unshipped
