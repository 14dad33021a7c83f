"""How the benchmarks measure: competitors take turns, a training step, memory, and growth as a power."""

import ctypes
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from modeling_dsa import DSAModel

Name = TypeVar("Name", bound=Hashable)
Turn = TypeVar("Turn")
Batch = TypeVar("Batch")


def alternate(
    competitors: Mapping[Name, Callable[[Turn], object]], turns: Sequence[Turn], title: str, warm_up: int = 0
) -> dict[Name, list[float]]:
    """Seconds of each competitor on each turn after the first `warm_up`, the competitors one after another in each.

    Other work on the machine then meets all alike.
    """
    seconds: dict[Name, list[float]] = {name: [] for name in competitors}
    with tqdm(total=len(turns) * len(competitors), desc=title, unit=" runs") as bar:
        for number, turn in enumerate(turns):
            for name, run in competitors.items():
                start = time.perf_counter()
                run(turn)
                if number >= warm_up:
                    seconds[name].append(time.perf_counter() - start)
                bar.update()
    return seconds


def median_rate(amounts: Sequence[float], seconds: Sequence[float]) -> float:
    """Amounts a second, a median."""
    return statistics.median(amount / took for amount, took in zip(amounts, seconds, strict=True))


def exponent(sizes: Sequence[float], figures: Sequence[float], fitted_from: float) -> float | None:
    """The power of a size that fits the figures from some size on; None with fewer than two figures above 0.

    By least squares of logarithms: 0 is constant, 1 linear, 2 quadratic.
    """
    large = [(size, figure) for size, figure in zip(sizes, figures, strict=True) if size >= fitted_from and figure > 0]
    if len(large) < 2:
        return None
    logarithms = np.log(np.asarray(large))  # (points, 2)
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])


def keep_freed_memory() -> None:
    """Keep what a competitor frees for the next one, where the C library is glibc.

    Otherwise what one frees goes back to the system or not, by its last arrays' sizes, and the next one pays for fresh
    pages that it would have had already, were it alone.
    """
    if platform.libc_ver()[0] == "glibc":
        trim_threshold, mmap_max = -1, -4  # malloc.h
        ctypes.CDLL(None).mallopt(trim_threshold, 2**31 - 1)
        ctypes.CDLL(None).mallopt(mmap_max, 0)


def memory(figure: str) -> float:
    """A figure of this process's memory from Linux's /proc/self/status, such as VmRSS (now) or VmHWM (peak), in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith(f"{figure}:"))
    return int(kibibytes) * 1024 / 1e6


class ProcessMemory(NamedTuple):
    """What a process of Python held, in MB of 10^6 bytes, as Linux counts it.

    Attributes:
        peak: Its largest resident set (VmHWM).
        private: What it held at its end that no other process can share with it (RssAnon), no mapped file.
    """

    peak: float
    private: float


def memory_of(code: str, *arguments: str, threads: int | None = None) -> ProcessMemory:
    """The memory of a process that runs `code`.

    What a parent asks the system of a child would hold the parent's own memory, of which a forked process is a copy.

    Args:
        code: What it runs.
        arguments: Its `sys.argv[1:]`.
        threads: Of OpenMP; default: its own choice.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    told = "print(*re.findall(r'(?:VmHWM|RssAnon):\\s+(\\d+) kB', Path('/proc/self/status').read_text()))"
    done = subprocess.run(
        [sys.executable, "-c", f"import re, sys\nfrom pathlib import Path\n{code}\n{told}", *arguments],
        env=os.environ | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)}),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return ProcessMemory(*(int(kilobytes) * 1024 / 1e6 for kilobytes in done.stdout.split()[-2:]))


def count_parameters(model: nn.Module) -> int:
    """All that is trained: the word table is frozen."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def loss_of(model: nn.Module) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The loss that a model of this package computes itself, of its arguments with their labels."""

    def loss(batch: Mapping[str, Tensor]) -> Tensor:
        value: Tensor = model(**batch).loss
        return value

    return loss


def training_step(
    model: nn.Module, loss: Callable[[Batch], Tensor], *, device: str = "cpu", bf16: bool = False
) -> Callable[[Batch], None]:
    """One training step: forward, backward, fused AdamW; with `bf16` the forward pass is under autocast."""
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], fused=True)

    def step(batch: Batch) -> None:
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            value = loss(batch)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def encode_and_backpropagate(model: DSAModel, batch: Mapping[str, Tensor]) -> None:
    """Encode a batch and send a gradient through all that the vectors depend on, the posterior included.

    Without an encoder and with mean pooling there is nothing to send it to.
    """
    outputs = model(**batch, output_tokens=False)
    vectors = [outputs.pooler_output, outputs.second_pooler_output]
    loss = sum(vector.square().sum() for vector in vectors if vector is not None)
    if outputs.kl is not None:
        loss = loss + outputs.kl.sum()
    if loss.requires_grad:
        loss.backward()
    model.zero_grad()
