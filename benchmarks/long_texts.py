"""Time and peak memory of encoding one text, by its number of words, for every kind of encoder and pooling.

    python benchmarks/long_texts.py --output benchmarks/long_texts.json

A text of random words, with vectors of 100 numbers, goes through the word table, the encoder and the pooling of each
setting, which reads all of it (`max_sentence_words` and `word_dropout` are off): forward alone (evaluation, no
gradients), and forward and backward (training). The settings take turns at each length. Every point is measured in a
process of its own: after a warm-up on a short text, the first run tells the peak of memory and the runs after it the
time, a median. Memory is what the process holds in RAM at most (Linux's VmHWM, set back before the run) above what it
held before, when all freed memory had been given back: activations, gradients and the libraries' scratch space, in MB
of 10^6 bytes. It counts whole pages, so that differences of one MB mean nothing.

The exponents are those of the power of the number of words that fits best, by least squares of logarithms, over texts
of 1,000 words and more: 1 is linear, 2 is quadratic. Pairwise self-attention (vsam-fnc1, self-attention-fnc1) compares
every word with every word, so its time is quadratic by its definition; it never holds all pairs at once, so its memory
is linear. A setting whose run takes longer than `--budget` seconds is not measured on longer texts.
"""

import ctypes
import multiprocessing
import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from measuring import add_threads, encode_and_go_back, keep, machine, make_parser
from tqdm.auto import tqdm

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.shipped.settings import setting_folder

SETTINGS = {
    "mean-fnc1": "mean",
    "dsa-single-snli": "dense CNN, dynamic",
    "static-cnn-snli": "dense CNN, static",
    "kim-cnn-sst2": "Kim's CNN, max",
    "bilstm-attention-snli": "BiLSTM, structured",
    "self-attention-fnc1": "pairwise self-attention",
    "vsam-fnc1": "pairwise, variational",
}
LENGTHS = (100, 300, 1000, 3000, 6000, 10_000, 30_000, 100_000)
QUICK_SETTINGS, QUICK_LENGTHS = ("mean-fnc1", "self-attention-fnc1"), (1000, 4000)
SHOWN = (1000, 6000)
FITTED_FROM = 1000
EMBEDDING_SIZE = 100
VOCABULARY = 10_000
WARM_UP_WORDS = 300  # enough for the kernels that long texts take
FORWARD, TRAINING = "forward", "forward and backward"


@dataclass(frozen=True)
class Point:
    """What one text took. MB are 10^6 bytes."""

    words: int
    seconds: float  # median
    fastest: float
    slowest: float
    peak_megabytes: float


def memory(figure: str) -> float:
    """A figure of this process's memory from Linux's /proc/self/status, such as VmRSS (now) or VmHWM (peak), in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith(f"{figure}:"))
    return int(kibibytes) * 1024 / 1e6


def measure_point(setting: str, words: int, kind: str, threads: int, rounds: int, budget: float) -> Point | None:
    """Encode one text, in a fresh process. None where there is nothing to train."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    options: dict[str, Any] = {
        "embedding_size": EMBEDDING_SIZE,
        "vocab_size": VOCABULARY,
        "sentences_per_row": 1,
        "max_sentence_words": None,
        "word_dropout": 0.0,
    }
    config = DSAConfig.from_pretrained(setting_folder(setting), **options)
    model = DSAModel(config).train(kind == TRAINING)
    if kind == TRAINING and not any(weight.requires_grad for weight in model.parameters()):
        return None

    def encode(length: int) -> float:
        ids = torch.randint(3, VOCABULARY, (1, length))
        start = time.perf_counter()
        if kind == TRAINING:
            encode_and_go_back(model, {"input_ids": ids, "labels": torch.zeros(1, dtype=torch.int64)})
        else:
            with torch.inference_mode():
                model(ids, output_words=False)
        return time.perf_counter() - start

    encode(WARM_UP_WORDS)
    ctypes.CDLL(None).malloc_trim(0)  # freed memory that the process keeps would hide as much of the peak
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew from what is held now
    held = memory("VmRSS")
    first = encode(words)
    peak = memory("VmHWM") - held
    seconds: list[float] = []
    while len(seconds) < rounds and first + sum(seconds) < budget:
        seconds.append(encode(words))
    seconds = seconds or [first]
    return Point(words, statistics.median(seconds), min(seconds), max(seconds), max(peak, 0.0))


def measure(
    settings: Sequence[str], lengths: Sequence[int], threads: int, rounds: int, budget: float
) -> dict[tuple[str, str], list[Point]]:
    """The points of each setting, forward and in training, up to the first that takes longer than the budget."""
    points: dict[tuple[str, str], list[Point]] = {
        (setting, kind): [] for setting in settings for kind in (FORWARD, TRAINING)
    }
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["modeling_dsa", "matplotlib.figure"])  # not anew in each process
    over: set[tuple[str, str]] = set()  # nothing more to measure
    bar = tqdm(total=len(points) * len(lengths), desc="Encoding", unit=" points")
    # A fresh process for each point: what an earlier one left must not hide what this one takes.
    with bar, ProcessPoolExecutor(1, mp_context=processes, max_tasks_per_child=1) as pool:
        for words in lengths:
            for name in [name for name in points if name not in over]:
                point = pool.submit(measure_point, name[0], words, name[1], threads, rounds, budget).result()
                if point is not None:
                    points[name].append(point)
                if point is None or point.seconds > budget:
                    over.add(name)
                bar.update()
    return {name: found for name, found in points.items() if found}


def exponent(sizes: Sequence[float], figures: Sequence[float], fitted_from: float = FITTED_FROM) -> float | None:
    """The power of a size that fits the figures from some size on; None with fewer than two above 0."""
    large = [(size, figure) for size, figure in zip(sizes, figures, strict=True) if size >= fitted_from and figure > 0]
    if len(large) < 2:
        return None
    logarithms = np.log(np.asarray(large))  # (points, 2)
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])


def summarise(points: Sequence[Point]) -> dict[str, Any]:
    """The points of one setting and their exponents, as JSON."""
    words = [point.words for point in points]
    return {
        "time_exponent": exponent(words, [point.seconds for point in points]),
        "memory_exponent": exponent(words, [point.peak_megabytes for point in points]),
        "points": [asdict(point) for point in points],
    }


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table: two lengths and the longest, with time, memory and exponents; all others are in the record."""
    shown = [f"{words:,}" for words in SHOWN]
    lines = [
        f"| setting | pass | {' | '.join(f'ms at {words}' for words in shown)} | longest text | ms there "
        f"| time ~ words^ | {' | '.join(f'MB at {words}' for words in shown)} | MB at the longest | memory ~ words^ |",
        "|---|---|" + "---:|" * (2 * len(shown) + 5),
    ]
    for result in record["results"]:
        by_words = {point["words"]: point for point in result["points"]}
        longest = result["points"][-1]
        chosen = [by_words.get(words) for words in SHOWN]
        times = [f"{1e3 * point['seconds']:,.3g}" if point else "" for point in chosen]
        megabytes = [f"{point['peak_megabytes']:,.0f}" if point else "" for point in chosen]
        powers = [
            "" if result[name] is None else f"{result[name]:.2f}" for name in ("time_exponent", "memory_exponent")
        ]
        cells = [
            result["setting"],
            result["pass"],
            *times,
            f"{longest['words']:,}",
            f"{1e3 * longest['seconds']:,.0f}",
            powers[0],
            *megabytes,
            f"{longest['peak_megabytes']:,.0f}",
            powers[1],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draw time and memory over words as a PNG, both axes logarithmic."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    for across, kind in enumerate((FORWARD, TRAINING)):
        for down, (name, title) in enumerate((("seconds", "seconds"), ("peak_megabytes", "peak memory, MB"))):
            panel: Axes = panels[down][across]
            for number, (setting, label) in enumerate(SETTINGS.items()):
                for result in record["results"]:
                    if (result["setting"], result["pass"]) == (setting, kind):
                        points = [(point["words"], point[name]) for point in result["points"] if point[name] > 0]
                        panel.plot(
                            *zip(*points, strict=True), marker="osD^vP*"[number], color=f"C{number}", label=label
                        )
            panel.set(xscale="log", yscale="log", title=kind if down == 0 else None)
            panel.grid(alpha=0.3)
            if across == 0:
                panel.set_ylabel(title)
            if down == 1:
                panel.set_xlabel("words of the text")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def main() -> None:
    """Measure all points, print the table."""
    quick = f"{' and '.join(QUICK_SETTINGS)} on {', '.join(map(str, QUICK_LENGTHS))} words, 2 rounds"
    parser = make_parser(__doc__, 5, "timed runs of each point", quick)
    add_threads(parser)
    parser.add_argument(
        "--budget",
        type=float,
        default=60.0,
        help="seconds of a point's runs after which no further one starts, and of one run after which the setting is "
        "not measured on longer texts (default: %(default)s)",
    )
    parser.add_argument(
        "--longest", type=int, default=LENGTHS[-1], help="leave out texts of more words (default: %(default)s)"
    )
    arguments = parser.parse_args()
    settings: Sequence[str] = QUICK_SETTINGS if arguments.quick else list(SETTINGS)
    lengths = QUICK_LENGTHS if arguments.quick else [words for words in LENGTHS if words <= arguments.longest]
    rounds = 2 if arguments.quick else arguments.rounds
    if arguments.threads < 1 or rounds < 1 or not lengths or not arguments.budget > 0:
        parser.error(f"give at least 1 thread, 1 round, a longest text of {LENGTHS[0]} words and a budget above 0")
    if not Path("/proc/self/clear_refs").exists():
        parser.error("the peak of memory is read from Linux's /proc, which this system has not")
    torch.set_num_threads(arguments.threads)
    on = machine()
    points = measure(settings, lengths, arguments.threads, rounds, arguments.budget)
    record = {
        "embedding_size": EMBEDDING_SIZE,
        "rounds": rounds,
        "budget_seconds": arguments.budget,
        "threads": arguments.threads,
        **on,
        "results": [
            {"setting": setting, "pass": kind, **summarise(found)} for (setting, kind), found in points.items()
        ],
    }
    print(f"One text, words of {EMBEDDING_SIZE} numbers, {arguments.threads} threads; median of {rounds} runs.\n")
    print(as_markdown(record))
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)
        draw(record, arguments.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
