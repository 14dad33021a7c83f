"""Texts and pairs of texts to classify: given themselves, or read one after another from a file or standard input."""

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from modeling_dsa.batching_dsa import Text
from modeling_dsa.files.columns import check_text_columns, find_text_columns
from modeling_dsa.files.lines import DASH, STANDARD_INPUT, read_lines, read_standard_input
from modeling_dsa.files.tables import file_table
from modeling_dsa.files.text_files import file_extension, read_rows
from modeling_dsa.files.text_values import required_text, row_texts

_EXTENSION = re.compile(r"\w\.[a-zA-Z]{2,7}$")


def open_texts(source: str, text_pair: str | None, columns: Sequence[str], *, pairs: bool) -> Iterator[Text]:
    """Find the texts to classify.

    Args:
        source: `-` for standard input, a file of those that `read_rows` and `read_lines` read, or a text. What has no
            space and looks like the name of a file is no text.
        text_pair: The second text where `source` is the first of a pair.
        columns: Columns of a file: one, or two for pairs. Where none are named they are found by their usual names; a
            `.txt` is then no table, but has one text a line, or two with a tab between them.
        pairs: Whether the model reads pairs.

    Returns:
        The texts, or pairs of them, read as they are asked for. Mistakes after the first text come to light then.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The model reads another number of texts, there is no text, or a file is broken or lacks a column.
    """
    is_file = source != DASH and names_file(source)
    if text_pair is not None and (is_file or source == DASH):
        raise ValueError(f"{source} gives the texts itself: leave out {text_pair!r}.")
    if columns and not is_file:
        raise ValueError("--text_column names columns of a file: leave it out for a text and for standard input.")
    check_text_columns(columns)
    if len(columns) not in (0, 1 + pairs):
        wanted = "pairs of texts: name two columns" if pairs else "single texts: name one column"
        raise ValueError(f"The model reads {wanted} with --text_column.")
    if is_file:
        texts = _file_texts(Path(source), columns, pairs=pairs)
    elif source == DASH:
        texts = _line_texts(read_standard_input(), pairs=pairs)
    else:
        texts = iter([_given(source, text_pair, pairs=pairs)])
    first = next(texts, None)  # a mistake that can be told before a model is loaded
    if first is None:
        raise ValueError(f"{STANDARD_INPUT if source == DASH else source} holds no text.")
    return itertools.chain([first], texts)


def names_file(source: str) -> bool:
    """Whether the texts are in a file of that name, or a folder has it.

    Args:
        source: A text, or the name of what holds texts.

    Raises:
        FileNotFoundError: There is none, and a text would look otherwise.
    """
    try:
        if source and Path(source).exists():
            return True
        is_in_folder = "/" in source and Path(source).parent.is_dir()
    except (OSError, ValueError):  # a text that is too long for a name
        return False
    if re.search(r"\s", source) is None and ("://" in source or is_in_folder or _EXTENSION.search(source)):
        raise FileNotFoundError(f"There is no file {source}: check its name, or add a blank where it is a text.")
    return False


def _given(text: str, text_pair: str | None, *, pairs: bool) -> Text:
    for given in (text, text_pair):
        if given is not None and not given.strip():
            raise ValueError(f"{given!r} is an empty text: give one to classify.")
    if text_pair is not None and not pairs:
        raise ValueError("The model reads single texts, but two were given: leave out the second.")
    if text_pair is None and pairs:
        raise ValueError("The model reads pairs of texts, but one was given: give the second too.")
    return text if text_pair is None else (text, text_pair)


def _file_texts(path: Path, columns: Sequence[str], *, pairs: bool) -> Iterator[Text]:
    if file_extension(path) == ".txt" and not columns:
        yield from _line_texts(read_lines(path), pairs=pairs)
        return
    if not columns:
        columns = find_text_columns(file_table(path), pairs=pairs)
        if not columns:
            return
    for location, row in read_rows(path, columns):
        values = row_texts(row, columns, location)
        yield (values[0], values[1]) if pairs else values[0]


def _line_texts(lines: Iterator[tuple[str, str]], *, pairs: bool) -> Iterator[Text]:
    for location, line in lines:
        if not pairs:
            yield required_text(line, location)
            continue
        parts = line.split("\t")
        if len(parts) != 2:
            raise ValueError(
                f"{location}: {line[:80]!r} is no pair of texts, which the model reads: write the first text, a tab "
                "and the second text."
            )
        first, second = (required_text(part, location) for part in parts)
        yield first, second
