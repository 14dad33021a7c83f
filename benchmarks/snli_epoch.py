"""The time of one training epoch at SNLI's size, on a GPU where there is one: fp32, TF32 and bf16, compiled or not.

    python benchmarks/snli_epoch.py --output benchmarks/snli_epoch.json

The model is single DSA for NLI. A step is forward, backward and fused AdamW, as in training; nothing reads the loss.
All pairs lie on the device beforehand; they are synthetic, with the lengths of SNLI's (`lib/snli_like_pairs.py`).
Batches are in random order and padded on the device, which is part of the time, to a multiple of 32 tokens, so that an
epoch has few shapes. Before the clock starts, each variant makes a step of every shape that the epoch has: nothing is
compiled or set up inside the time. Compiled models (`torch.compile`, dynamic) encode padding and copies of a sentence
too, the others do not. torch compiles the gradient of a convolution anew for each shape; where its limit of
recompilations is reached, the variant fails rather than go on uncompiled.

fp32 multiplies in full precision everywhere, tf32 lets products and convolutions round to TF32 (on a GPU alone), bf16
is autocast, with products of fp32 in full precision.

A variant stops after `--seconds`. Its epoch is then extrapolated, marked with ~: the median step, times the epoch's
pairs over a batch's. TFLOP/s are those of the paper's model on the tokens of the distinct sentences of a batch, as the
text of `lib/operations.py` says, whatever the variant computes. They are compared with a product of two large square
random matrices in the same precision, in the same run. Tokens are those of both sentences of all pairs, a premise
counting in each of its pairs. A variant that fails has its error in the table.
"""

import argparse
import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from lib.measuring import loss_of, training_step
from lib.options import make_parser, parse, recorded_options
from lib.records import Column, Figures, Record, Table, describe_machine, keep, write_record
from lib.snli_like_pairs import FIRST_TOKEN, SNLI_PAIRS, VOCABULARY, Cut, Epoch, Loader, SNLILikePairs, make_pairs
from torch import Tensor, nn
from tqdm.auto import tqdm

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.command.command_line import whole_number

PRODUCTS = 10
FIGURES = (
    "epoch_seconds",
    "steps",
    "timed_steps",
    "pairs_per_second",
    "tokens_per_second",
    "teraflops",
    "product_share",
    "peak_memory_gb",
    "warm_up_seconds",
    "error",
)


def rows(record: Record) -> Iterable[Figures]:
    """Each variant, with its epoch in words: whole, extrapolated or failed."""
    for result in record.results:
        if result["error"]:
            epoch = f"failed: {result['error']}"
        elif result["timed_steps"] == result["steps"]:
            epoch = f"{result['epoch_seconds']:,.3g}"
        else:
            part = f"{result['timed_steps']:,} of {result['steps']:,} steps"
            epoch = f"~{result['epoch_seconds']:,.3g} ({part})"
        yield {**result, "epoch": epoch, "form": "compiled" if result["compiled"] else "eager"}


TABLE = Table(
    (
        Column("precision", "{precision}", is_text=True),
        Column("form", "{form}", is_text=True),
        Column("pairs in a batch", "{batch_size:,}"),
        Column("an epoch, s", "{epoch}"),
        Column("pairs/s", "{pairs_per_second:,.0f}"),
        Column("tokens/s", "{tokens_per_second:,.0f}"),
        Column("TFLOP/s (of a matrix product's)", "{teraflops:.3g} ({product_share:.0%})"),
        Column("peak memory, GB", "{peak_memory_gb:.1f}"),
        Column("warm-up, s", "{warm_up_seconds:.0f}"),
    ),
    rows=rows,
)


class Variant(NamedTuple):
    """One way to train."""

    precision: str
    compiled: bool
    batch_size: int


class Clock:
    """Times of steps. A GPU keeps them itself, so that no step waits for another."""

    def __init__(self, device: torch.device) -> None:
        """Start."""
        self.on_gpu = device.type == "cuda"
        self.times: list[float] = []
        self.events: list[torch.cuda.Event] = []
        self.mark()

    def mark(self) -> None:
        """A step ends here."""
        if self.on_gpu:
            self.events.append(torch.cuda.Event(enable_timing=True))
            self.events[-1].record()
        else:
            self.times.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """Time between marks, when all work is done."""
        if self.on_gpu:
            torch.cuda.synchronize()
            first = self.events[0]
            self.times = [first.elapsed_time(event) / 1e3 for event in self.events]
        return np.diff(self.times).tolist()


def set_precision(precision: str) -> None:
    """Let float32 products and convolutions round to TF32, or not."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def product_speed(precision: str, size: int, device: torch.device) -> float:
    """Floating point operations a second of a product of square matrices (size, size), a median."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = torch.randn(2, size, size, device=device, dtype=dtype)
    for _ in range(PRODUCTS):
        torch.mm(left, right)
    clock = Clock(device)
    for _ in range(PRODUCTS):
        torch.mm(left, right)
        clock.mark()
    return 2 * size**3 / statistics.median(clock.seconds())


def make_step(variant: Variant, device: torch.device, config: DSAConfig) -> Callable[[Any], None]:
    """A training step of a fresh model, on the arguments of the model."""
    torch.manual_seed(0)
    with device:
        model: nn.Module = DSAForNLI(config).train()
    if variant.compiled:
        model.compile(dynamic=True)
    return training_step(model, loss_of(model), device=device.type, bf16=variant.precision == "bf16")


def time_epochs(
    step: Callable[[Any], None], load: Loader, epochs: Sequence[Epoch], device: torch.device, limit: float, title: str
) -> dict[str, Any]:
    """Warm up on every shape, then time the epochs, each for at most so many seconds."""

    def run(order: Tensor, cut: Cut) -> None:
        step(load(order[cut.start : cut.end], cut.width))

    orders = [torch.from_numpy(epoch.order).to(device) for epoch in epochs]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    warm_up = Clock(device)
    for epoch, order in zip(epochs, orders, strict=True):
        for cut in tqdm(epoch.shapes(), f"{title}, warm-up", leave=False):
            run(order, cut)
    warm_up.mark()
    warm_up_seconds = sum(warm_up.seconds())
    found, steps = [], []
    for epoch, order in zip(epochs, orders, strict=True):
        clock, start = Clock(device), time.perf_counter()
        for cut in tqdm(epoch.cuts, title, leave=False):
            run(order, cut)
            clock.mark()
            if time.perf_counter() - start > limit:
                break
        seconds = clock.seconds()
        steps.append(len(seconds))
        if len(seconds) == len(epoch.cuts):
            found.append(sum(seconds))
        else:
            found.append(statistics.median(seconds) * len(epoch.order) / epoch.cuts[0].end)
    took = statistics.median(found)
    return {
        "epoch_seconds": took,
        "steps": len(epochs[0].cuts),
        "timed_steps": min(steps),
        "pairs_per_second": len(epochs[0].order) / took,
        "tokens_per_second": epochs[0].tokens / took,
        "teraflops": epochs[0].training_operations / took / 1e12,
        "peak_memory_gb": torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else None,
        "warm_up_seconds": warm_up_seconds,
    }


def measure(
    variant: Variant,
    pairs: SNLILikePairs,
    load: Loader,
    config: DSAConfig,
    product_teraflops: float,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """The figures of one variant, or its error: the others go on."""
    device = load.ids.device
    epochs = [Epoch(pairs, variant.batch_size, number, config) for number in range(options.rounds)]
    title = f"{variant.precision}, {'compiled' if variant.compiled else 'eager'}, {variant.batch_size:,} pairs"
    result: dict[str, Any] = {**variant._asdict(), **dict.fromkeys(FIGURES)}
    try:
        step = make_step(variant, device, config)
        result |= time_epochs(step, load, epochs, device, options.seconds, title)
        result["product_share"] = result["teraflops"] / product_teraflops
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
    return result


def parse_options(argv: Sequence[str] | None, on_gpu: bool) -> argparse.Namespace:
    """The options, checked together."""
    quick = "40 pairs in batches of 16, small products"
    parser = make_parser(__doc__, 1, "epochs of each variant, of which the median counts", quick)
    parser.add_argument(
        "--pairs", type=whole_number(2), default=SNLI_PAIRS, help="pairs in an epoch (default: %(default)s, SNLI's)"
    )
    sizes = [64, 1024, 4096] if on_gpu else [64]
    parser.add_argument(
        "--batch_size",
        type=whole_number(2),
        nargs="+",
        default=sizes,
        help="pairs in a batch (default: 64 1024 4096, without a GPU 64)",
    )
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="time for an epoch of a variant (default: %(default)s)"
    )
    precisions = ["fp32", "tf32", "bf16"] if on_gpu else ["fp32", "bf16"]
    parser.add_argument(
        "--precision",
        nargs="+",
        choices=precisions,
        default=precisions,
        help="default: fp32 tf32 bf16, on a CPU no tf32",
    )
    parser.add_argument("--no_compile", action="store_true", help="leave out the compiled models")
    options = parse(parser, argv, {"pairs": 40, "batch_size": [16]})
    if options.seconds <= 0:
        parser.error("argument --seconds: give more than 0 seconds")
    if max(options.batch_size) > options.pairs:
        parser.error(f"{options.pairs:,} pairs cannot make batches of {max(options.batch_size):,}: give smaller ones")
    return options


def main(argv: Sequence[str] | None = None) -> None:
    """Make the pairs, time every variant, keep what was found, what there is so far at once."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_gpu = device.type == "cuda"
    options = parse_options(argv, on_gpu)
    torch.set_num_threads(options.threads)
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    settings: dict[str, Any] = {
        "vocab_size": FIRST_TOKEN + VOCABULARY,
        "unknown_init_range": 0.5,  # vectors as long as GloVe's
        "sentences_per_example": 2,
        "num_labels": 3,
        # transformers would set it in the first step, and torch.compile would start anew in the second.
        "problem_type": "single_label_classification",
    }
    config = DSAConfig(**settings)
    pairs = make_pairs(options.pairs, config)
    load = Loader(pairs, device, config)
    product_size = 256 if options.quick else (8192 if on_gpu else 2048)
    product_teraflops: dict[str, float] = {}
    tokens = int(pairs.premise_tokens.sum() + pairs.hypothesis_tokens.sum())
    setup = {"tokens": tokens, "product_size": product_size, "product_teraflops": product_teraflops}
    record = Record(recorded_options(options), describe_machine(), setup, [])
    for precision in options.precision:
        set_precision(precision)
        product_teraflops[precision] = product_speed(precision, product_size, device) / 1e12
        for compiled, size in itertools.product((False,) if options.no_compile else (False, True), options.batch_size):
            variant = Variant(precision, compiled, size)
            record.results.append(measure(variant, pairs, load, config, product_teraflops[precision], options))
            if options.output:
                write_record(record, TABLE, options.output)
            torch.compiler.reset()
            gc.collect()
            torch.cuda.empty_cache()
    keep(record, TABLE, options.output)


if __name__ == "__main__":
    main()
