"""The accelerator of a run, and the seeds that its processes derive from the run's."""

import importlib.util
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, DistributedType
from torch.distributed.fsdp import CPUOffloadPolicy

from modeling_dsa.command.launchers import started_processes

from .half_precision import computes_in_bf16
from .recipe import RunArguments

logger = logging.getLogger(__name__)

# What training needs of FSDP. Else buffers are left to one process, weights get other names or are split where nothing
# puts them together, or all are halved in precision, batch normalisation's too.
_SHARED_OUT: dict[str, Any] = {
    "fsdp_version": 2,
    "fsdp_cpu_ram_efficient_loading": False,
    "fsdp_activation_checkpointing": False,
    "fsdp_auto_wrap_policy": "NO_WRAP",
    "fsdp_offload_params": False,
    "mixed_precision": "no",
}
LONGEST_MEETING = 300.0  # seconds; torch waits half an hour for a process that died before it came, and so do its GPUs


def make_accelerator(run: RunArguments, output_dir: Path) -> Accelerator:
    """The accelerator of a run.

    Raises:
        ValueError: The launcher started several processes that do not know each other, or an option does not fit the
            machine or the launcher.
    """
    tracker = run.report_to
    if tracker == "auto":
        tracker = "tensorboard" if _is_installed("tensorboard") else "none"
    elif tracker != "none" and not _is_installed(tracker):
        raise ValueError(f"--report_to {tracker} needs the package {tracker}, which is not installed.")
    world = started_processes()
    with _bounded_meeting(world):
        accelerator = Accelerator(
            cpu=run.cpu,
            mixed_precision=run.mixed_precision,
            # The order of an epoch is a function of the seed and the epoch's number, so that a resumed run finds it
            # again. accelerate adds the two up: derived seeds keep the orders of neighbouring seeds apart.
            dataloader_config=DataLoaderConfiguration(
                use_seedable_sampler=True, data_seed=derived_seed(run.seed) >> 2, non_blocking=True
            ),
            log_with=None if tracker == "none" else tracker,
            project_dir=str(output_dir),
        )
    if world > accelerator.num_processes:
        raise ValueError(
            f"The launcher started {world} processes, but accelerate sees {accelerator.num_processes}: each would "
            "train alone. Start one `accelerate launch` on each node, as configuration/slurm/train.sbatch does; on a "
            "CPU give the script --cpu and the launcher --multi_gpu."
        )
    if accelerator.distributed_type in (DistributedType.DEEPSPEED, DistributedType.MEGATRON_LM):
        raise ValueError(
            f"The launch file asks for {accelerator.distributed_type.value}: training keeps all weights in each "
            "process (DDP) or shares them out by FSDP, as the files of configuration/accelerate say."
        )
    if accelerator.distributed_type == DistributedType.FSDP:
        _refuse_other_sharing(accelerator, run)
    if accelerator.gradient_accumulation_steps != 1:
        raise ValueError("Give --gradient_accumulation_steps to the script, behind its name, and not to the launcher.")
    if accelerator.mixed_precision == "fp16" and accelerator.device.type == "cpu":
        raise ValueError("--mixed_precision fp16 needs a GPU; a CPU computes with no or bf16.")
    device = accelerator.device
    is_emulated = accelerator.mixed_precision == "bf16" and not computes_in_bf16(device)
    if is_emulated and device.type in ("cpu", "cuda") and accelerator.is_main_process:
        logger.warning(
            "This machine has no instructions for bf16 and emulates them, which can take many times as long as "
            "float32: give --mixed_precision no."
        )
    return accelerator


def _refuse_other_sharing(accelerator: Accelerator, run: RunArguments) -> None:
    """Refuse what FSDP can do and this engine cannot, before anything is trained."""
    plugin = accelerator.state.fsdp_plugin
    has = {
        "fsdp_version": plugin.fsdp_version,
        "fsdp_cpu_ram_efficient_loading": plugin.cpu_ram_efficient_loading,
        "fsdp_activation_checkpointing": plugin.activation_checkpointing,
        "fsdp_auto_wrap_policy": "NO_WRAP" if plugin.auto_wrap_policy is None else "another",
        "fsdp_offload_params": isinstance(plugin.cpu_offload, CPUOffloadPolicy),
        "mixed_precision": accelerator.mixed_precision,
    }
    for name, value in _SHARED_OUT.items():
        if has[name] != value:
            raise ValueError(
                f"The launch file asks for FSDP with {name} {has[name]}, which training cannot do: give it "
                f"{value}, as configuration/accelerate/shared_weights.yaml does."
            )
    if run.hub_strategy == "every_save":
        raise ValueError("--hub_strategy every_save needs all weights in one process, not FSDP: leave one of them out.")


@contextmanager
def _bounded_meeting(processes: int) -> Iterator[None]:
    """End this process where the others of its run do not come.

    torch has one limit for the meeting and for all that follows, where a process may well compute for longer alone.
    """

    def leave() -> None:
        logger.error(
            f"error: Of {processes} processes not all have come within {LONGEST_MEETING:g} seconds: look why one died, "
            "and start all again."
        )
        os._exit(1)  # the main thread is in torch, which nothing interrupts

    timer = threading.Timer(LONGEST_MEETING, leave)
    timer.daemon = True
    if processes > 1:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def derived_seed(*numbers: int) -> int:
    """A seed of 64 bits, a hash of numbers that are not negative."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
