"""Time and peak memory of encoding one text, by its number of tokens, for every kind of encoder and pooling.

    python benchmarks/long_texts.py --output benchmarks/long_texts.json

A text of random tokens, with vectors of 100 numbers, goes through the word table, the encoder and the pooling of each
setting, which reads all of it (`max_sentence_tokens` and `token_dropout` are off): forward alone (evaluation, no
gradients), and forward and backward (training). The settings take turns at each length. Every point is measured in a
process of its own: after a warm-up on a short text, the first run tells the peak of memory and the runs after it the
time, a median. Memory is what the process holds in RAM at most (Linux's VmHWM, set back before the run) above what it
held before, when all freed memory had been given back: activations, gradients and the libraries' scratch space, in MB
of 10^6 bytes. It counts whole pages, so that differences of one MB mean nothing.

The exponents are those of the power of the number of tokens that fits best, by least squares of logarithms, over texts
of 1,000 tokens and more: 1 is linear, 2 is quadratic. Pairwise self-attention (vsam-fnc1, self-attention-fnc1) compares
every token with every token, so its time is quadratic by its definition; it never holds all pairs at once, so its
memory is linear. A setting whose run takes longer than `--budget` seconds is not measured on longer texts.
"""

import ctypes
import multiprocessing
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lib.measuring import encode_and_backpropagate, exponent, memory
from lib.options import make_parser, parse, recorded_options
from lib.records import Column, Figures, Record, Table, describe_machine, keep
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.command.command_line import positive_number, whole_number
from modeling_dsa.shipped.settings import setting_folder

SETTINGS = {
    "mean-fnc1": "mean",
    "dsa-single-snli": "dense CNN, dynamic",
    "static-cnn-snli": "dense CNN, static",
    "kim-cnn-sst2": "Kim's CNN, max",
    "bilstm-structured-1-snli": "BiLSTM, structured",
    "self-attention-fnc1": "pairwise self-attention",
    "vsam-fnc1": "pairwise, variational",
}
LENGTHS = (100, 300, 1000, 3000, 6000, 10_000, 30_000, 100_000)
QUICK_SETTINGS, QUICK_LENGTHS = ("self-attention-fnc1",), (1000, 1200)
FITTED_FROM = 1000
EMBEDDING_SIZE = 100
VOCABULARY = 10_000
WARM_UP_TOKENS = 300  # enough for the kernels that long texts take
FORWARD, TRAINING = "forward", "forward and backward"


@dataclass(frozen=True)
class Point:
    """What one text took. MB are 10^6 bytes."""

    tokens: int
    seconds: float  # median
    fastest: float
    slowest: float
    peak_megabytes: float


def shown_points(record: Record) -> Iterable[Figures]:
    """Of each setting, two lengths and the longest; the record has all."""
    for result in record.results:
        points = {point["tokens"]: {**point, "milliseconds": 1e3 * point["seconds"]} for point in result["points"]}
        yield {**result, "short": points.get(1000), "long": points.get(6000), "longest": points[max(points)]}


TABLE = Table(
    (
        Column("setting", "{setting}", is_text=True),
        Column("pass", "{pass}", is_text=True),
        Column("ms at 1,000", "{short[milliseconds]:,.3g}"),
        Column("ms at 6,000", "{long[milliseconds]:,.3g}"),
        Column("longest text", "{longest[tokens]:,}"),
        Column("ms there", "{longest[milliseconds]:,.0f}"),
        Column("time ~ tokens^", "{time_exponent:.2f}"),
        Column("MB at 1,000", "{short[peak_megabytes]:,.0f}"),
        Column("MB at 6,000", "{long[peak_megabytes]:,.0f}"),
        Column("MB at the longest", "{longest[peak_megabytes]:,.0f}"),
        Column("memory ~ tokens^", "{memory_exponent:.2f}"),
    ),
    rows=shown_points,
)


def measure_point(setting: str, tokens: int, kind: str, threads: int, rounds: int, budget: float) -> Point | None:
    """Encode one text, in a fresh process. None where there is nothing to train."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    options: dict[str, Any] = {
        "embedding_size": EMBEDDING_SIZE,
        "vocab_size": VOCABULARY,
        "sentences_per_example": 1,
        "max_sentence_tokens": None,
        "token_dropout": 0.0,
    }
    config = DSAConfig.from_pretrained(setting_folder(setting), **options)
    model = DSAModel(config).train(kind == TRAINING)
    if kind == TRAINING and not any(weight.requires_grad for weight in model.parameters()):
        return None

    def encode(length: int) -> float:
        ids = torch.randint(3, VOCABULARY, (1, length))
        start = time.perf_counter()
        if kind == TRAINING:
            encode_and_backpropagate(model, {"input_ids": ids, "labels": torch.zeros(1, dtype=torch.int64)})
        else:
            with torch.inference_mode():
                model(ids, output_tokens=False)
        return time.perf_counter() - start

    encode(WARM_UP_TOKENS)
    ctypes.CDLL(None).malloc_trim(0)  # freed memory that the process keeps would hide as much of the peak
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew from what is held now
    held = memory("VmRSS")
    first = encode(tokens)
    peak = memory("VmHWM") - held
    seconds: list[float] = []
    while len(seconds) < rounds and first + sum(seconds) < budget:
        seconds.append(encode(tokens))
    seconds = seconds or [first]
    return Point(tokens, statistics.median(seconds), min(seconds), max(seconds), max(peak, 0.0))


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
        for tokens in lengths:
            for name in [name for name in points if name not in over]:
                point = pool.submit(measure_point, name[0], tokens, name[1], threads, rounds, budget).result()
                if point is not None:
                    points[name].append(point)
                if point is None or point.seconds > budget:
                    over.add(name)
                bar.update()
    return {name: found for name, found in points.items() if found}


def summarise(points: Sequence[Point]) -> dict[str, Any]:
    """The points of one setting and their exponents, as JSON."""
    tokens = [point.tokens for point in points]
    return {
        "time_exponent": exponent(tokens, [point.seconds for point in points], FITTED_FROM),
        "memory_exponent": exponent(tokens, [point.peak_megabytes for point in points], FITTED_FROM),
        "points": [asdict(point) for point in points],
    }


def draw(record: Record) -> Figure:
    """Time and memory over tokens, both axes logarithmic."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    for across, kind in enumerate((FORWARD, TRAINING)):
        for down, (name, title) in enumerate((("seconds", "seconds"), ("peak_megabytes", "peak memory, MB"))):
            panel: Axes = panels[down][across]
            for number, (setting, label) in enumerate(SETTINGS.items()):
                for result in record.results:
                    if (result["setting"], result["pass"]) == (setting, kind):
                        points = [(point["tokens"], point[name]) for point in result["points"] if point[name] > 0]
                        panel.plot(
                            *zip(*points, strict=True), marker="osD^vP*"[number], color=f"C{number}", label=label
                        )
            panel.set(xscale="log", yscale="log", title=kind if down == 0 else None)
            panel.grid(alpha=0.3)
            if across == 0:
                panel.set_ylabel(title)
            if down == 1:
                panel.set_xlabel("tokens of the text")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all points, keep what was found."""
    quick = f"{' and '.join(QUICK_SETTINGS)} on {', '.join(map(str, QUICK_LENGTHS))} tokens, 1 round"
    parser = make_parser(__doc__, 5, "timed runs of each point", quick)
    parser.add_argument(
        "--budget",
        type=positive_number,
        default=60.0,
        help="seconds of a point's runs after which no further one starts, and of one run after which the setting is "
        "not measured on longer texts (default: %(default)s)",
    )
    parser.add_argument(
        "--longest",
        type=whole_number(LENGTHS[0]),
        default=LENGTHS[-1],
        help="tokens of a text at most (default: %(default)s)",
    )
    arguments = parse(parser, argv, {"rounds": 1, "longest": QUICK_LENGTHS[-1]})
    if not Path("/proc/self/clear_refs").exists():
        parser.error("the peak of memory is read from Linux's /proc, which this system has not")
    settings = QUICK_SETTINGS if arguments.quick else tuple(SETTINGS)
    lengths = QUICK_LENGTHS if arguments.quick else [tokens for tokens in LENGTHS if tokens <= arguments.longest]
    torch.set_num_threads(arguments.threads)
    machine = describe_machine()
    points = measure(settings, lengths, arguments.threads, arguments.rounds, arguments.budget)
    results = [{"setting": setting, "pass": kind, **summarise(found)} for (setting, kind), found in points.items()]
    setup = {"embedding_size": EMBEDDING_SIZE}
    keep(Record(recorded_options(arguments), machine, setup, results), TABLE, arguments.output, draw)


if __name__ == "__main__":
    main()
