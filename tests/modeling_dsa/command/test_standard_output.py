"""modeling_dsa.command.standard_output: an answer that cannot go where it shall."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from small_repositories import save_system

from modeling_dsa.cli.main import main
from modeling_dsa.command.standard_output import standard_output
from run_glue_style.studies.command import run_command


@contextmanager
def unread(name: str) -> Iterator[None]:
    """A standard stream whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, name, stream)
        yield
    with suppress(BrokenPipeError):  # what standard error still holds
        stream.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_system(tmp_path_factory.mktemp("models"), "vsam").folder


def test_a_reader_that_has_enough_is_no_error_and_a_broken_bar_of_progress_is(model: Path, tmp_path: Path) -> None:
    for verb in ("predict", "explain"):
        with unread("stdout"):
            assert main([verb, str(model), "A man sleeps."]) == 0
    (tmp_path / "a.txt").write_text("A man sleeps.\n")
    for output in (tmp_path / "a.npy", tmp_path / "a"):
        with unread("stderr"):
            assert main(["encode", str(tmp_path / "a.txt"), str(output), "--model", str(model)]) == 2
    assert not list(tmp_path.rglob("*.npy"))


def test_a_table_that_nobody_can_read_is_one_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with unread("stdout"):
        assert run_command(lambda: (tmp_path, "90.0 ± 0.1"), []) == 0
    with pytest.MonkeyPatch.context() as patch, Path("/dev/full").open("w") as full:
        patch.setattr(sys, "stdout", full)
        assert run_command(lambda: (tmp_path, "90.0 ± 0.1"), []) == 2
    assert caplog.messages[-1] == "error: [Errno 28] No space left on device: 'standard output'"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert run_command(lambda: (tmp_path, "90.0 ± 0.1"), []) == 2
    assert caplog.messages[-1].startswith("error: Standard output is closed: ")


def test_what_a_terminal_has_no_sign_for_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with pytest.MonkeyPatch.context() as patch, path.open("w", encoding="ascii") as stream:
        patch.setattr(sys, "stdout", stream)
        with standard_output() as answer:
            print("90.0 ± 0.1", file=answer)
    assert path.read_text() == "90.0 \\xb1 0.1\n"
