"""Streams of texts in windows: enough texts to sort by length and to find repeated ones, few enough for the memory."""

import itertools
from collections.abc import Iterator
from typing import TypeVar

from modeling_dsa.batching_dsa import Text

AnyText = TypeVar("AnyText", bound=Text)

_TEXTS = 8192
_CHARACTERS = 1 << 21


def windows(texts: Iterator[AnyText]) -> Iterator[list[AnyText]]:
    """The texts of a stream, or its pairs of texts, in lists of at most 8,192 and of about two million characters."""
    while window := _window(texts):
        yield window


def _window(texts: Iterator[AnyText]) -> list[AnyText]:
    window, characters = [], 0
    for text in itertools.islice(texts, _TEXTS):
        window.append(text)
        characters += len(text) if isinstance(text, str) else sum(map(len, text))
        if characters >= _CHARACTERS:
            break
    return window
