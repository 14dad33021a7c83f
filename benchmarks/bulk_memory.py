"""Peak memory of `dsa encode`, and its speed, for more and more lines.

    python benchmarks/bulk_memory.py --output benchmarks/bulk_memory.json

The command runs as a user runs it, in a process of its own, from a text file to a folder of Parquet shards, with the
model that ships in model_cards/dsa-snli. The lines are words of SNLI's sample, drawn at random, as many in a line as a
sentence has there; hardly any line comes twice. Peak memory is the process's resident set, as the system counts it,
with Python, torch and the model. Seconds are those of the whole command, loading included. The last column says what
10,000,000 lines would add.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from measuring import add_threads, keep, machine, make_parser
from tqdm.auto import tqdm

from run_glue_style.sample import SAMPLE_FILES

MODEL = Path(__file__).parents[1] / "model_cards" / "dsa-snli"
LINES = (10_000, 100_000, 1_000_000)
QUICK_LINES = (100, 200)
WRITTEN_AT_ONCE = 10_000


def write_lines(path: Path, count: int) -> int:
    """Write a text file of so many lines and return its words."""
    sentences = parquet.read_table(SAMPLE_FILES["train"], columns=["hypothesis"])["hypothesis"].to_pylist()
    words = np.array([word for sentence in sentences for word in sentence.split()])
    lengths = np.array([len(sentence.split()) for sentence in sentences])
    generator, written = np.random.default_rng(0), 0
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, count, WRITTEN_AT_ONCE):
            drawn = generator.choice(lengths, min(WRITTEN_AT_ONCE, count - start))
            chosen = generator.choice(words, drawn.sum())
            file.writelines(" ".join(line) + "\n" for line in np.split(chosen, drawn.cumsum()[:-1]))
            written += int(drawn.sum())
    return written


def run(lines: Path, output: Path, threads: int) -> tuple[float, int]:
    """Seconds of the command, and its peak memory in bytes.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    dsa = Path(sys.executable).with_name("dsa")
    command = [str(dsa), "encode", str(lines), str(output), "--model", str(MODEL), "--dtype", "float16"]
    start = time.perf_counter()
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": str(threads)}, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, usage.ru_maxrss * 1024


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table, a row for each input."""
    lines = [
        "| lines | words | seconds | lines/s | peak memory, MB | bytes for each further line |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    before: Mapping[str, Any] | None = None
    for result in record["results"]:
        further = ""
        if before is not None:
            further = f"{(result['peak'] - before['peak']) / (result['lines'] - before['lines']):,.0f}"
        lines.append(
            f"| {result['lines']:,} | {result['words']:,} | {result['seconds']:,.0f} "
            f"| {result['lines'] / result['seconds']:,.0f} | {result['peak'] / 1e6:,.0f} | {further} |"
        )
        before = result
    return "\n".join(lines)


def main() -> None:
    """Encode files of more and more lines, print the table."""
    parser = make_parser(
        __doc__, 1, "runs of each input, of which the largest peak and the shortest time count", "200 lines"
    )
    add_threads(parser)
    arguments = parser.parse_args()
    counts: Sequence[int] = QUICK_LINES if arguments.quick else LINES
    rounds = 1 if arguments.quick else arguments.rounds
    if arguments.threads < 1 or rounds < 1:
        parser.error("give at least 1 thread and 1 round")
    on, results = machine(), []
    for count in tqdm(counts, desc="Encoding files", unit=" files"):
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / "lines.txt"
            words = write_lines(lines, count)
            runs = [run(lines, Path(folder) / f"vectors-{number}", arguments.threads) for number in range(rounds)]
        seconds, peaks = zip(*runs, strict=True)
        results.append({"lines": count, "words": words, "seconds": min(seconds), "peak": max(peaks)})
    record = {"rounds": rounds, "threads": arguments.threads, **on, "results": results}
    print(
        f"`dsa encode` on {arguments.threads} threads; load before: {on['load_before']:.1f}.\n\n{as_markdown(record)}"
    )
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)


if __name__ == "__main__":
    main()
