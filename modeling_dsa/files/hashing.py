"""What a file holds, as one number that tells it from all others."""

import hashlib
from pathlib import Path


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
