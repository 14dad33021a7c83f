"""Words of a command line that are no text."""

import sys
from collections.abc import Iterable


def refuse_undecoded(words: Iterable[str]) -> None:
    """Refuse bytes that Python could not decode: a classifier would read other characters than were typed, and neither
    safetensors, JSON nor Parquet takes such a path, which would come to light after hours of work.

    Args:
        words: The command line's.

    Raises:
        ValueError: One has such bytes.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{word[:200]!r} is no text in {sys.getfilesystemencoding()}, which this system says it writes: type "
                "it so, rename the file, or set PYTHONUTF8=1 where it is UTF-8."
            ) from None
