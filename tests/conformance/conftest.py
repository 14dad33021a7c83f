"""Fetches transformers' own tests and makes known their marks."""

import os

import pytest

from conformance import transformers_sources


def pytest_configure(config: pytest.Config) -> None:
    """Where the tests cannot be had, test_conformance.py is skipped, but not in CI."""
    try:
        package = transformers_sources.fetch(config.rootpath / ".cache")
    except ConnectionError as error:
        if os.environ.get("CI"):
            raise pytest.UsageError(str(error)) from error
        return
    transformers_sources.make_importable(package)
    for name in [*transformers_sources.marks(package), "is_training_test"]:
        config.addinivalue_line("markers", f"{name}: a mark of transformers' own tests")
