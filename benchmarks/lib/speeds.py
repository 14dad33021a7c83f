"""Sentences a second, of a list at once ("bulk") and of one call for each ("single")."""

import argparse
import functools
import statistics
from collections.abc import Callable, Mapping, Sequence

from modeling_dsa.command.command_line import whole_number

from .measuring import alternate
from .options import parse, reports_mistakes
from .peers import Encode
from .shipped import draw_lists

WARM_UP_ROUNDS = 1


def read_lists(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> tuple[argparse.Namespace, dict[str, list[list[str]]]]:
    """Read the command line, to which the sizes of the lists are added, and draw the lists, those to warm up too."""
    parser.add_argument("--bulk", type=whole_number(1), default=512, help="of a list (default: %(default)s)")
    parser.add_argument("--single", type=whole_number(1), default=20, help="one by one (default: %(default)s)")
    arguments = parse(parser, argv, {"rounds": 2, "bulk": 16, "single": 2})
    with reports_mistakes(parser):
        return arguments, draw_lists(arguments.rounds + WARM_UP_ROUNDS, arguments.bulk, arguments.single)


def sentences_per_second(encoders: Mapping[str, Encode], way: str, lists: Sequence[Sequence[str]]) -> dict[str, float]:
    """A median over the lists for each encoder, which take turns.

    Args:
        encoders: By name.
        way: "bulk" or "single".
        lists: Of one length; the first warm up.
    """
    runs: dict[str, Callable[[Sequence[str]], object]] = {
        name: encode if way == "bulk" else functools.partial(_one_at_a_time, encode)
        for name, encode in encoders.items()
    }
    seconds = alternate(runs, lists, f"Encoding, {way}", WARM_UP_ROUNDS)
    return {name: len(lists[0]) / statistics.median(taken) for name, taken in seconds.items()}


def _one_at_a_time(encode: Encode, sentences: Sequence[str]) -> None:
    for sentence in sentences:
        encode([sentence])
