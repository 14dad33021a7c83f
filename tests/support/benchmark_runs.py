"""Quick runs of the benchmarks."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import torch
from lib.records import Record, read_record

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run_quick(
    main: Callable[[Sequence[str]], None], output: Path, *options: str, pictures: Sequence[str] = ()
) -> Record:
    """Run a benchmark's `--quick` in this process: its files are there, its figures finite."""
    with _process_as_it_was():
        main(["--quick", "--output", str(output), *options])
    return _check(output, pictures)


def run_script(name: str, output: Path, *options: str, pictures: Sequence[str] = ()) -> Record:
    """The same as users run it, in a process of its own."""
    command = [sys.executable, str(BENCHMARKS / name), "--quick", *options, "--output", str(output)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert finished.returncode == 0, finished.stderr
    return _check(output, pictures)


@contextmanager
def _process_as_it_was() -> Iterator[None]:
    """What a benchmark sets for its whole process is put back."""
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    tf32, fail = torch.backends.cudnn.allow_tf32, torch._dynamo.config.fail_on_recompile_limit_hit
    try:
        with patch.dict(os.environ):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32, torch._dynamo.config.fail_on_recompile_limit_hit = tf32, fail


def _check(output: Path, pictures: Sequence[str]) -> Record:
    assert {path.name for path in output.parent.iterdir()} == {output.name, *pictures}
    assert all(math.isfinite(number) for number in _numbers(json.loads(output.read_text(encoding="utf-8"))))
    return read_record(output)


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
    elif isinstance(value, int | float):
        yield value
