"""The options that all benchmarks have."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from modeling_dsa.command import command_line
from modeling_dsa.command.command_line import whole_number


def make_parser(
    description: str | None, rounds: int, meaning_of_rounds: str, quick: str, *, threads: bool = True
) -> argparse.ArgumentParser:
    """A parser with the options that all benchmarks have.

    Args:
        description: The script's own text.
        rounds: Default of `--rounds`.
        meaning_of_rounds: What there are as many of.
        quick: What `--quick` does.
        threads: Whether the script computes with torch, and so has `--threads`.
    """
    parser = command_line.make_parser(description)
    parser.add_argument(
        "--rounds",
        type=whole_number(1),
        default=rounds,
        help=f"{meaning_of_rounds} (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help=f"{quick}, whatever else is given")
    parser.add_argument(
        "--output",
        type=Path,
        help="write the figures to this JSON file too, and their table into a README.md beside it",
    )
    if threads:
        parser.add_argument(
            "--threads", type=whole_number(1), default=2, help="threads of torch (default: %(default)s)"
        )
    return parser


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None, quick: Mapping[str, Any]) -> argparse.Namespace:
    """Parse the command line; with `--quick` the options of `quick` have their values from there."""
    arguments = parser.parse_args(argv)
    if arguments.quick:
        vars(arguments).update(quick)
    return arguments


@contextmanager
def reports_mistakes(parser: argparse.ArgumentParser) -> Iterator[None]:
    """End the script with one sentence, as the parser's own errors do, where the block finds a mistake in an option."""
    try:
        yield
    except (ValueError, OSError) as error:
        parser.error(str(error))


def recorded_options(arguments: argparse.Namespace, *left_out: str) -> dict[str, Any]:
    """The options that figures depend on, for their record."""
    return {name: value for name, value in vars(arguments).items() if name not in {"output", *left_out}}
