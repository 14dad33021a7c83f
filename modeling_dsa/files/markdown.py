"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], rules: Sequence[str] | None = None) -> str:
    """A table whose cells may hold any text of one line.

    Args:
        header: The columns' names.
        rows: The cells of each row, as many as there are columns.
        rules: What stands under each name, such as `---:` for numbers on the right; None: `---`, without blanks.

    Returns:
        Its lines, without a line break at the end.
    """
    rule = "|---" * len(header) + "|" if rules is None else f"| {' | '.join(rules)} |"
    return "\n".join([_line(header), rule, *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    # A bar ends a cell unless a backslash, chr(92), stands before it.
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
