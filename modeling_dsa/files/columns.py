"""Which columns of a table hold the texts and the labels, where their names leave no doubt."""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from .label_values import as_number
from .rows import Row, require_column
from .tables import Table

logger = logging.getLogger(__name__)

PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("question", "answer"),
    ("question", "context"),
    ("question", "passage"),
    ("query", "passage"),
    ("query", "document"),
    ("sentence_a", "sentence_b"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text", "text_pair"),
    ("headline", "body"),
)
SINGLES = ("text", "sentence")
_LOOKED_AT = 200  # rows that tell whether a column holds texts


@dataclass(frozen=True)
class LabelNames:
    """How a column of labels may be called.

    Attributes:
        names: Its usual names.
        holds: What it holds, for messages.
        option: The option that names it where there is a doubt.
    """

    names: tuple[str, ...]
    holds: str = "labels"
    option: str = "--label_column"


LABELS = LabelNames(
    (
        *("label", "labels", "gold_label", "score", "class", "category", "target", "sentiment", "stance", "intent"),
        *("emotion", "topic", "rating", "stars", "similarity", "similarity_score"),
    )
)
_USUAL = {*LABELS.names, *SINGLES, *itertools.chain.from_iterable(PAIRS)}


def check_text_columns(columns: Sequence[str]) -> None:
    """Refuse names of columns that hold neither texts nor pairs.

    Raises:
        ValueError: There are more than two, or one twice.
    """
    if len(columns) > 2 or len(set(columns)) < len(columns):
        raise ValueError("--text_column takes one column, or the two different ones of pairs.")


def find_columns(
    table: Table, texts: Sequence[str] | None = None, label: str | None = None, label_names: LabelNames = LABELS
) -> tuple[tuple[str, ...], str]:
    """The one or two columns of texts, and that of labels.

    Names of columns count in any case. Without a usual name the texts are the only column of texts that is left.

    Args:
        table: The training data.
        texts: The columns of texts, where they are known.
        label: The column of labels, where it is known.
        label_names: How else it may be called.

    Raises:
        ValueError: A column that was given is not there or is given twice, or the names leave a doubt. The message
            says which option names the column.
    """
    check_text_columns(texts or ())
    rows, columns = _first_rows(table)
    if not rows:
        raise ValueError(f"{table.name}: there are no rows")
    for column in (*(texts or ()), *([] if label is None else [label])):
        require_column(table.name, column, columns)
    if label is None:
        label = _label_column([column for column in columns if column not in (texts or ())], table, label_names)
    found = tuple(texts) if texts else _text_columns([column for column in columns if column != label], rows, table)
    if label in found:
        raise ValueError(
            f"The column {label!r} cannot hold both texts and {label_names.holds}: name two with --text_column and "
            f"{label_names.option}"
        )
    return found, label


def has_label_column(table: Table) -> bool:
    """Whether a column is called as labels are."""
    return any(_plain(column) in LABELS.names for column in _first_rows(table)[1])


def find_text_columns(table: Table, *, pairs: bool | None) -> tuple[str, ...]:
    """The column of texts, or the two of pairs, of a table to predict for or to encode; the log says which.

    They are found as for training. A column that is called as labels are holds no texts, unless it is the only one.

    Args:
        table: The texts, and maybe more.
        pairs: Whether pairs are read; None takes either.

    Returns:
        Their names; none where the table has no rows.

    Raises:
        ValueError: The table has no header, holds pairs where single texts are read, or its names leave a doubt.
    """
    rows, columns = _first_rows(table)
    if not rows:
        return ()
    _refuse_values(table, columns)
    if len(columns) == 1 and not pairs:
        found: tuple[str, ...] = tuple(columns)
    else:
        found = _text_columns([name for name in columns if _plain(name) not in LABELS.names], rows, table, bool(pairs))
    if len(found) == 2 and pairs is False:
        raise ValueError(
            f"{table.name} holds pairs ({' and '.join(found)}), but single texts are read: say with --text_column "
            "which column to read."
        )
    if not table.has_types and any(map(_is_no_name, found)):
        raise ValueError(
            f"{table.name}: its first line is {found[0][:80]!r}, which is taken for the name of a column and looks "
            "like a text: give the file a first line `text`, or name it .txt."
        )
    logger.info(f"{table.name}: the texts are in {' and '.join(map(_shown, found))}.")
    return found


def _refuse_values(table: Table, columns: Sequence[str]) -> None:
    """Refuse a first line with a number in it, which names no columns, unless another one has a usual name: `2020`
    beside `text` is a name.
    """
    if table.has_types or any(_plain(column) in _USUAL for column in columns):
        return
    number = next((column for column in columns if as_number(column) is not None), None)
    if number is not None:
        raise ValueError(
            f"{table.name}: its first line is taken for the names of the columns and holds the number {number!r:.80}: "
            "give the file a first line with names, such as `text`; if these are, say with --text_column which to read."
        )


def _is_no_name(column: str) -> bool:
    """Whether what stands for the name of a column looks like a value, so that a table has no header."""
    return as_number(column) is not None or len(column.split()) > 4


def example_texts(table: Table, columns: Sequence[str]) -> tuple[str, ...]:
    """The texts of the shortest example among the first ones, to show how a model is used."""
    rows = (row for _, row in itertools.islice(table.read(columns), _LOOKED_AT))
    examples = [tuple(row[column] for column in columns) for row in rows]
    texts = [example for example in examples if all(isinstance(text, str) and text.strip() for text in example)]
    return min(texts, key=lambda example: sum(map(len, example)), default=())


def _first_rows(table: Table) -> tuple[list[Row], list[str]]:
    """Some rows, and the names of their columns."""
    rows = [row for _, row in itertools.islice(table.read(None), _LOOKED_AT)]
    return rows, list(dict.fromkeys(itertools.chain.from_iterable(rows)))


def _label_column(columns: Sequence[str], table: Table, label_names: LabelNames) -> str:
    found = [column for column in columns if _plain(column) in label_names.names]
    if len(found) == 1:
        return found[0]
    several = (
        f"{_list(found)} may each hold the {label_names.holds}"
        if found
        else f"none of the columns {_list(columns)} is called {label_names.names[0]!r}"
    )
    hint = _about_header(columns, table)
    raise ValueError(f"{table.name}: {several}; say which does with {label_names.option}{hint}")


def _text_columns(
    columns: Sequence[str], rows: Sequence[Row], table: Table, pairs_alone: bool = False
) -> tuple[str, ...]:
    named = {_plain(column): column for column in columns}
    pairs = [(named[first], named[second]) for first, second in PAIRS if first in named and second in named]
    paired = set(itertools.chain.from_iterable(pairs))
    singles = [(named[name],) for name in SINGLES if name in named and named[name] not in paired]
    usual = pairs if pairs_alone else [*pairs, *singles]
    if len(usual) == 1:
        names = {_plain(column) for column in usual[0]}
        alike = [column for column in columns if _plain(column) in names]
        if len(alike) > len(usual[0]):
            raise ValueError(f"{table.name}: {_list(alike)} are called alike; say with --text_column which to read.")
        return usual[0]
    textual = [column for column in columns if _holds_texts([row.get(column) for row in rows], table)]
    if not usual and len(textual) == 1:
        if pairs_alone:
            raise ValueError(
                f"{table.name}: a pair has two texts, and only {_list(textual)} holds any: add the other ones."
            )
        return (textual[0],)
    several = _list([" and ".join(found) for found in usual] or textual or columns)
    raise ValueError(
        f"{table.name}: it is not clear which of {several} holds the texts; say it with --text_column, "
        f"and two columns for pairs{_about_header(columns, table)}"
    )


def _holds_texts(values: Sequence[object], table: Table) -> bool:
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    if not texts or any(value is not None and not isinstance(value, str) for value in values):
        return False
    return table.has_types or not all(as_number(text) is not None for text in texts)


def _about_header(columns: Sequence[str], table: Table) -> str:
    """A hint where the first row is taken for the names of the columns, and looks like data."""
    headless = not table.has_types and any(map(_is_no_name, columns))
    return "; or give the file a first line with the names of its columns, if it has none" if headless else ""


def _plain(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(_shown, names))


def _shown(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:37]}...")
