"""Packages that only some commands need, and which extra of this one brings them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def optional_packages(user: str, extra: str, *packages: str) -> Iterator[None]:
    """Import inside the block what needs packages that may be missing.

    Args:
        user: What needs them, as the error says it.
        extra: Of this package, which brings them.
        packages: The names by which they are imported.

    Raises:
        ValueError: One of them is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in packages:
            raise
        name = missing.replace("_", "-")
        raise ValueError(f'{user} needs {name}: pip install ".[{extra}]" in a clone of dsa-transformers.') from error
