"""run_glue_style.training.accelerator: what a launcher says of itself, and processes that do not come."""

import logging
import multiprocessing
import os
import socket
from pathlib import Path
from typing import Literal

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import DistributedType

from run_glue_style.training import accelerator
from run_glue_style.training.accelerator import make_accelerator
from run_glue_style.training.recipe import RunArguments


def test_tasks_of_slurm_that_do_not_know_each_other_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(ValueError, match="The launcher started 4 processes, but accelerate sees 1: each would train"):
        make_accelerator(RunArguments(output_dir=tmp_path, cpu=True, report_to="none"), tmp_path)


@pytest.mark.parametrize(
    ("precision", "has_instructions", "is_told"), [("bf16", False, True), ("bf16", True, False), ("no", False, False)]
)
def test_bf16_that_is_emulated_is_told_of(
    precision: Literal["bf16", "no"],
    has_instructions: bool,
    is_told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": has_instructions})
    run = RunArguments(output_dir=tmp_path, cpu=True, report_to="none", mixed_precision=precision)
    assert make_accelerator(run, tmp_path).mixed_precision == precision
    assert ("This machine has no instructions for bf16" in caplog.text) is is_told


def test_launch_files_that_share_out_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    monkeypatch.setattr(Accelerator, "distributed_type", DistributedType.FSDP)  # which takes a GPU
    with pytest.raises(ValueError, match=r"asks for FSDP, .*: training keeps all of them in each process \(DDP\)"):
        make_accelerator(RunArguments(output_dir=tmp_path, cpu=True, report_to="none"), tmp_path)


def wait_alone(folder: Path, errors: Path) -> None:
    logging.basicConfig(filename=errors, format="%(message)s", force=True)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    variables = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    os.environ |= variables | {"MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "true"}
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    accelerator.LONGEST_MEETING = 0.5
    make_accelerator(RunArguments(output_dir=folder, cpu=True, report_to="none"), folder)


def test_a_process_whose_others_never_come_ends_and_says_so(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=wait_alone, args=(tmp_path, tmp_path / "errors"))
    process.start()
    process.join(60)
    assert process.exitcode == 1
    assert (tmp_path / "errors").read_text() == (
        "error: Of 2 processes not all have come within 0.5 seconds: look why one died, and start all again.\n"
    )
