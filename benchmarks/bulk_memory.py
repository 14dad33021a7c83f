"""Peak memory of `dsa encode`, and its speed, for more and more lines.

    python benchmarks/bulk_memory.py --output benchmarks/bulk_memory.json

The command runs as a user runs it, in a process of its own, from a text file to a folder of Parquet shards, with the
model that ships in model_cards/dsa-snli. The lines are words of SNLI's sample, drawn at random, as many in a line as a
sentence has there; hardly any line comes twice. Peak memory is the process's largest resident set, as Linux counts it
(VmHWM), with Python, torch and the model. Seconds are those of the whole command, loading included. The last column
says what 10,000,000 lines would add.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lib.measuring import memory_of
from lib.options import make_parser, parse, recorded_options
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import SHIPPED_MODEL, read_pairs
from tqdm.auto import tqdm

LINES = (10_000, 100_000, 1_000_000)
QUICK_LINES = (100, 200)
WRITTEN_AT_ONCE = 10_000
CHILD = """
from modeling_dsa.cli.main import main
code = main(sys.argv[1:])
if code:
    sys.exit(code)
"""
TABLE = Table(
    (
        Column("lines", "{lines:,}"),
        Column("words", "{words:,}"),
        Column("seconds", "{seconds:,.0f}"),
        Column("lines/s", "{lines_per_second:,.0f}"),
        Column("peak memory, MB", "{peak_megabytes:,.0f}"),
        Column("bytes for each further line", "{bytes_per_further_line:,.0f}"),
    )
)


def write_lines(path: Path, count: int) -> int:
    """Write a text file of so many lines and return its words."""
    sentences = read_pairs("train")["hypothesis"]
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


def run(lines: Path, output: Path, threads: int) -> tuple[float, float]:
    """Seconds of the command, and its peak memory in MB of 10^6 bytes.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    options = ["encode", str(lines), str(output), "--model", str(SHIPPED_MODEL), "--dtype", "float16"]
    start = time.perf_counter()
    peak = memory_of(CHILD, *options, threads=threads).peak
    return time.perf_counter() - start, peak


def measure(counts: Sequence[int], rounds: int, threads: int) -> list[dict[str, Any]]:
    """Encode files of more and more lines."""
    results: list[dict[str, Any]] = []
    for count in tqdm(counts, desc="Encoding files", unit=" files"):
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / "lines.txt"
            words = write_lines(lines, count)
            runs = [run(lines, Path(folder) / f"vectors-{number}", threads) for number in range(rounds)]
        seconds, peak = min(took for took, _ in runs), max(peak for _, peak in runs)
        further = None
        if results:
            further = 1e6 * (peak - results[-1]["peak_megabytes"]) / (count - results[-1]["lines"])
        results.append(
            {
                "lines": count,
                "words": words,
                "seconds": seconds,
                "lines_per_second": count / seconds,
                "peak_megabytes": peak,
                "bytes_per_further_line": further,
            }
        )
    return results


def main(argv: Sequence[str] | None = None) -> None:
    """Encode the files, keep what was found."""
    parser = make_parser(
        __doc__, 1, "runs of each input, of which the largest peak and the shortest time count", "200 lines"
    )
    arguments = parse(parser, argv, {"rounds": 1})
    machine = describe_machine()
    results = measure(QUICK_LINES if arguments.quick else LINES, arguments.rounds, arguments.threads)
    keep(Record(recorded_options(arguments), machine, {}, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
