"""What the benchmarks share: their options, the turns that competitors take, a training step, and what is kept."""

import argparse
import ctypes
import os
import platform
import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from modeling_dsa import DSAModel
from modeling_dsa.files.replacing import write_json
from run_glue_style.training.environment import environment

Name = TypeVar("Name", bound=Hashable)
Turn = TypeVar("Turn")
Batch = TypeVar("Batch")


def make_parser(description: str | None, rounds: int, meaning_of_rounds: str, quick: str) -> argparse.ArgumentParser:
    """The options that all benchmarks have.

    Args:
        description: The script's own text.
        rounds: Default of `--rounds`.
        meaning_of_rounds: What there are as many of.
        quick: What `--quick` does.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"{meaning_of_rounds} (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help=f"{quick}, whatever else is said")
    parser.add_argument(
        "--output", type=Path, help="write the figures to this JSON file too, and their table to a README.md beside it"
    )
    return parser


def add_threads(parser: argparse.ArgumentParser) -> None:
    """The option of those that compute with torch."""
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: %(default)s)")


def machine() -> dict[str, Any]:
    """What figures depend on besides the options. To be asked before measuring, which is load itself."""
    return {
        "environment": environment(),
        "processor": torch.cpu.get_capabilities().get("cpu_name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def keep_freed_memory() -> None:
    """Keep what a competitor frees for the next one, where the C library is glibc.

    Otherwise what one frees goes back to the system or not, by its last arrays' sizes, and the next one pays for fresh
    pages that it would have had already, were it alone.
    """
    if platform.libc_ver()[0] == "glibc":
        trim_threshold, mmap_max = -1, -4  # malloc.h
        ctypes.CDLL(None).mallopt(trim_threshold, 2**31 - 1)
        ctypes.CDLL(None).mallopt(mmap_max, 0)


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


def training_step(model: nn.Module, loss: Callable[[Batch], Tensor], bf16: bool = False) -> Callable[[Batch], None]:
    """One training step: forward, backward, fused AdamW."""
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], fused=True)

    def step(batch: Batch) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            value = loss(batch)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def encode_and_go_back(model: DSAModel, batch: Mapping[str, Tensor]) -> None:
    """Encode a batch and send a gradient through all that the vectors depend on, the posterior included.

    Without an encoder and with mean pooling there is nothing to send it to.
    """
    outputs = model(**batch, output_words=False)
    vectors = [outputs.pooler_output, outputs.second_pooler_output]
    loss = sum(vector.square().sum() for vector in vectors if vector is not None)
    if outputs.kl is not None:
        loss = loss + outputs.kl.sum()
    if loss.requires_grad:
        loss.backward()
    model.zero_grad()


def keep(record: Mapping[str, Any], table: str, output: Path) -> None:
    """Write the figures, and their table where a README.md beside them has a place for the table of this file.

    The place is what stands between the lines `<!-- table: NAME.json -->` and `<!-- end of table -->`.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    write_json(record, output)
    readme = output.with_name("README.md")
    if readme.is_file():
        place = rf"(<!-- table: {re.escape(output.name)} -->\n).*?(<!-- end of table -->)"
        text = readme.read_text(encoding="utf-8")
        text = re.sub(place, lambda lines: f"{lines[1]}{table}\n{lines[2]}", text, flags=re.S)
        beside = readme.with_name(".README.md")
        beside.write_text(text, encoding="utf-8")
        beside.replace(readme)
