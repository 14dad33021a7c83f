import argparse
from pathlib import Path

import pytest
from lib.options import make_parser, parse, recorded_options, reports_mistakes

from modeling_dsa.command.command_line import whole_number


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = make_parser("What it does.", 7, "timed runs", "little")
    parser.add_argument("--size", type=whole_number(2), default=5)
    return parser


def test_quick_overrides_what_is_given(parser: argparse.ArgumentParser) -> None:
    options = parse(parser, ["--output", "x.json", "--size", "3"], {"size": 2})
    assert (options.rounds, options.threads, options.size, options.output) == (7, 2, 3, Path("x.json"))
    quick = parse(parser, ["--quick", "--size", "3"], {"size": 2})
    assert recorded_options(quick, "threads") == {"rounds": 7, "quick": True, "size": 2}


@pytest.mark.parametrize("given", ["1", "two", "-3"])
def test_a_size_out_of_bounds_is_one_sentence(
    parser: argparse.ArgumentParser, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(parser, ["--size", given], {})
    expected = f"argument --size: '{given}' is no whole number of at least 2"
    assert capsys.readouterr().err.splitlines()[-1].endswith(expected)


def test_a_mistake_that_shows_later_is_one_sentence(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"), reports_mistakes(parser):
        raise ValueError("Too few sentences.")
    assert capsys.readouterr().err.splitlines()[-1].endswith("error: Too few sentences.")
