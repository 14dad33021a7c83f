"""run_glue_style.training.accelerator: what a launcher says of itself, and processes that do not come."""

import logging
import multiprocessing
import os
import socket
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

from run_glue_style.training import accelerator
from run_glue_style.training.accelerator import make_accelerator
from run_glue_style.training.recipe import RunArguments

PUSHED = {"push_to_hub": True, "hub_model_id": "ada/mine"}


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


@pytest.mark.parametrize(
    ("kind", "options", "run", "message"),
    [
        ("DEEPSPEED", {}, {}, r"asks for DEEPSPEED: training keeps all weights in each process \(DDP\) or shares"),
        ("FSDP", {"fsdp_version": 1}, {}, "FSDP with fsdp_version 1, which training cannot do: give it 2, as config"),
        ("FSDP", {"cpu_ram_efficient_loading": True}, {}, "fsdp_cpu_ram_efficient_loading True, .* give it False, as"),
        ("FSDP", {"activation_checkpointing": True}, {}, "fsdp_activation_checkpointing True, .* give it False, as"),
        ("FSDP", {"auto_wrap_policy": "size_based_wrap"}, {}, "fsdp_auto_wrap_policy another, .* give it NO_WRAP, as"),
        ("FSDP", {"cpu_offload": True}, {}, "fsdp_offload_params True, .* give it False, as"),
        ("FSDP", {}, {"mixed_precision": "bf16"}, "mixed_precision bf16, .* give it no, as"),
        ("FSDP", {}, PUSHED | {"hub_strategy": "every_save"}, "every_save needs all weights in one process"),
    ],
)
def test_weights_that_are_shared_out_in_another_way_are_refused(
    kind: str,
    options: dict[str, Any],
    run: dict[str, Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    plugin = FullyShardedDataParallelPlugin(**({"fsdp_version": 2, "cpu_ram_efficient_loading": False} | options))
    monkeypatch.setattr(Accelerator, "distributed_type", DistributedType[kind])  # which takes a GPU
    monkeypatch.setattr(AcceleratorState, "fsdp_plugin", plugin, raising=False)
    with pytest.raises(ValueError, match=message):
        make_accelerator(RunArguments(output_dir=tmp_path, cpu=True, report_to="none", **run), tmp_path)


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
