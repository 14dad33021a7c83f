"""The time of one training epoch at SNLI's size, on a GPU where there is one: fp32, TF32 and bf16, compiled or not.

    python benchmarks/snli_epoch.py --output benchmarks/snli_epoch.json

The model is single DSA for NLI. A step is forward, backward and fused AdamW, as in training; nothing reads the loss.
All pairs lie on the device beforehand. Batches are in random order and padded on the device, which is part of the time,
to a multiple of 32 words, so that an epoch has few shapes. Before the clock starts, each variant makes a step of every
shape that the epoch has: nothing is compiled or set up inside the time. Compiled models (`torch.compile`, dynamic)
encode padding and copies of a sentence too, the others do not. torch compiles the gradient of a convolution anew for
each shape; where its limit of recompilations is reached, the variant fails rather than go on uncompiled.

fp32 multiplies in full precision everywhere, tf32 lets products and convolutions round to TF32 (on a GPU alone), bf16
is autocast, with products of fp32 in full precision.

A variant stops after `--seconds`. Its epoch is then extrapolated, marked with ~: the median step, times the epoch's
pairs over a batch's. TFLOP/s are those of the paper's model on the words of the distinct sentences of a batch, as the
text of `operations.py` says, whatever the variant computes. They are compared with a product of two large square random
matrices in the same precision, in the same run. Words are those of both sentences of all pairs, a premise counting in
each of its pairs. A variant that fails has its error in the table.

The pairs are made up, with the lengths of SNLI's: premises and hypotheses of as many words as in the sample that ships
with the package, each premise in three pairs, words by Zipf's law from a vocabulary of SNLI's size, random labels. The
sample's lengths stand in this file, as the GPU's machine may have nothing that reads Parquet. In this folder they are
counted by

    python -c "import numpy as np; from training_step import *; pairs = draw_pairs(60_000);
    tokenizer = build_tokenizer([], lowercase=True); print(*(np.bincount([len(ids) for ids in
    tokenizer(pairs[side])['input_ids']]).tolist() for side in ('premise', 'hypothesis')))"
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from measuring import add_threads, keep, machine, make_parser, training_step
from numpy.typing import NDArray
from operations import count_training_operations
from torch import Tensor, nn
from tqdm.auto import tqdm

from modeling_dsa import DSAConfig, DSAForNLI

# How many pairs of the sample have a premise, a hypothesis of 0, 1, 2, ... words.
# fmt: off
PREMISES_BY_WORDS = (
    0, 0, 2, 10, 80, 320, 1179, 2669, 3713, 4262, 4857, 4976, 4850, 4363, 3917, 3469, 2849, 2448, 2116, 1971, 1719,
    1441, 1257, 936, 754, 623, 563, 422, 395, 279, 193, 226, 156, 130, 119, 65, 81, 57, 70, 51, 44, 36, 15, 24, 17, 18,
    14, 11, 8, 15, 7, 2, 8, 3, 2, 2, 1, 2, 3, 3, 0, 1, 0, 0, 2, 1, 0, 0, 1, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 3,
)
HYPOTHESES_BY_WORDS = (
    0, 4, 103, 670, 2658, 5600, 7269, 9498, 8855, 6428, 5093, 3569, 2454, 1685, 1173, 780, 557, 414, 290, 211, 144, 99,
    77, 50, 37, 19, 27, 25, 10, 11, 6, 1, 5, 3, 1, 3, 1, 3, 2, 2, 1, 0, 1, 1,
)
# fmt: on
SNLI_PAIRS = 549_367
PAIRS_OF_PREMISE = 3
VOCABULARY = 36_000
FIRST_WORD = 3  # behind the special tokens
WIDTH_STEP = 32
PRODUCTS = 10
TARGET_SECONDS = 10  # on an H200

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """Made-up pairs.

    Attributes:
        ids: The rows `premise [SEP] hypothesis` one behind the other. (numbers,)
        premises: The number of each pair's premise. (pairs,)
        premise_words: (pairs,)
        hypothesis_words: (pairs,)
        labels: (pairs,)
    """

    ids: NDArray[np.int32]
    premises: Numbers
    premise_words: Numbers
    hypothesis_words: Numbers
    labels: Numbers

    @property
    def lengths(self) -> Numbers:
        """Numbers in each row. (pairs,)"""
        return self.premise_words + 1 + self.hypothesis_words

    @property
    def starts(self) -> Numbers:
        """Where each row begins in `ids`. (pairs,)"""
        return _starts(self.lengths)


def make_pairs(count: int, config: DSAConfig) -> Pairs:
    """So many pairs, the same each time."""
    generator = np.random.default_rng(0)
    chances = 1 / np.arange(1, config.vocab_size - FIRST_WORD + 1)  # Zipf's law

    def draw_lengths(sentences: int, histogram: Sequence[int]) -> Numbers:
        shares = np.array(histogram) / sum(histogram)
        return generator.choice(len(histogram), sentences, p=shares)

    def draw_words(words: int) -> NDArray[np.int32]:
        return (FIRST_WORD + generator.choice(len(chances), words, p=chances / chances.sum())).astype(np.int32)

    premises = np.arange(count) // PAIRS_OF_PREMISE  # (pairs,)
    distinct = draw_lengths(-(-count // PAIRS_OF_PREMISE), PREMISES_BY_WORDS)  # (premises,)
    premise_words, hypothesis_words = distinct[premises], draw_lengths(count, HYPOTHESES_BY_WORDS)
    lengths = premise_words + 1 + hypothesis_words
    starts = _starts(lengths)
    ids = np.full(lengths.sum(), config.sep_token_id, dtype=np.int32)
    ids[_ranges(starts, premise_words)] = draw_words(distinct.sum())[
        _ranges(_starts(distinct)[premises], premise_words)
    ]
    ids[_ranges(starts + premise_words + 1, hypothesis_words)] = draw_words(hypothesis_words.sum())
    return Pairs(ids, premises, premise_words, hypothesis_words, generator.integers(3, size=count))


def _starts(lengths: Numbers) -> Numbers:
    return lengths.cumsum() - lengths


def _ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """The numbers from each start on, as many as its length says, one range behind the other."""
    return np.repeat(starts - _starts(lengths), lengths) + np.arange(lengths.sum())


class Cut(NamedTuple):
    """A batch: its place in the epoch's order, and its width."""

    start: int
    end: int
    width: int


class Epoch:
    """The pairs in a random order, cut into batches. A last batch of one pair is dropped: it has no batch statistics.

    Attributes:
        order: Numbers of pairs. (pairs of the epoch,)
        cuts: The batches.
        words: Real words.
        training_operations: Those of all steps on the distinct sentences of each batch.
    """

    def __init__(self, pairs: Pairs, batch_size: int, number: int, config: DSAConfig) -> None:
        """Shuffle the pairs by the epoch's number."""
        count = len(pairs.labels)
        if count % batch_size == 1:
            count -= 1
        self.order: Numbers = np.random.default_rng(number).permutation(len(pairs.labels))[:count]
        starts = np.arange(0, count, batch_size)
        longest = np.maximum.reduceat(pairs.lengths[self.order], starts)
        widths = -(-longest // WIDTH_STEP) * WIDTH_STEP
        ends = (starts + batch_size).clip(max=count)
        self.cuts = [Cut(*cut) for cut in zip(starts.tolist(), ends.tolist(), widths.tolist(), strict=True)]
        premise_words, hypothesis_words = pairs.premise_words[self.order], pairs.hypothesis_words[self.order]
        self.words = int(premise_words.sum() + hypothesis_words.sum())
        batch_and_premise = np.arange(count) // batch_size * len(pairs.labels) + pairs.premises[self.order]
        first = np.unique(batch_and_premise, return_index=True)[1]  # (distinct premises of all batches,)
        sentences = np.concatenate([premise_words[first], hypothesis_words])
        self.training_operations = count_training_operations(torch.from_numpy(sentences), config)

    def shapes(self) -> list[Cut]:
        """A batch of each shape."""
        return list({(cut.end - cut.start, cut.width): cut for cut in self.cuts}.values())


class Loader:
    """Makes padded batches on a device, from pairs that lie there."""

    def __init__(self, pairs: Pairs, device: torch.device, config: DSAConfig) -> None:
        """Move the pairs to the device."""
        arrays = (pairs.ids, pairs.starts, pairs.lengths, pairs.premise_words, pairs.labels)
        self.ids, self.starts, self.lengths, self.premise_words, self.labels = (
            torch.from_numpy(array).to(device) for array in arrays
        )
        assert config.pad_token_id is not None
        self.pad_token_id = config.pad_token_id

    def __call__(self, rows: Tensor, width: int) -> dict[str, Tensor]:
        """The arguments of the model for these pairs, (batch,), as its tokenizer and collator would give them."""
        places = torch.arange(width, device=rows.device)
        inside = places < self.lengths[rows, None]  # (batch, words)
        numbers = (self.starts[rows, None] + places).clamp(max=self.ids.shape[0] - 1)
        second = inside & (places > self.premise_words[rows, None])
        return {
            "input_ids": self.ids[numbers].long().masked_fill(~inside, self.pad_token_id),
            "attention_mask": inside.long(),
            "token_type_ids": second.long(),
            "labels": self.labels[rows],
        }


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


def make_step(precision: str, compiled: bool, device: torch.device, config: DSAConfig) -> Callable[[Any], None]:
    """A training step of a fresh model, on the arguments of the model."""
    torch.manual_seed(0)
    with device:
        model: nn.Module = DSAForNLI(config).train()
    if compiled:
        model.compile(dynamic=True)

    def loss(batch: Mapping[str, Tensor]) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            value: Tensor = model(**batch).loss
        return value

    return training_step(model, loss)


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
        "words_per_second": epochs[0].words / took,
        "teraflops": epochs[0].training_operations / took / 1e12,
        "peak_memory_gb": torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else None,
        "warm_up_seconds": warm_up_seconds,
    }


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table, a row for each variant."""
    lines = [
        f"| precision | form | pairs in a batch | an epoch, s (to reach on an H200: {TARGET_SECONDS}) | pairs/s "
        "| words/s | TFLOP/s | share of a matrix product's | peak memory, GB | warm-up, s |",
        "|---|---|---:|" + "---:|" * 7,
    ]
    for result in record["results"]:
        cells = [result["precision"], "compiled" if result["compiled"] else "eager", f"{result['batch_size']:,}"]
        if "error" in result:
            cells += [f"failed: {result['error'].replace('|', '/')}", *[""] * 6]
        else:
            whole = result["timed_steps"] == result["steps"]
            part = "" if whole else f" ({result['timed_steps']:,} of {result['steps']:,} steps)"
            memory = result["peak_memory_gb"]
            cells += [
                f"{'' if whole else '~'}{result['epoch_seconds']:,.3g}{part}",
                f"{result['pairs_per_second']:,.0f}",
                f"{result['words_per_second']:,.0f}",
                f"{result['teraflops']:.3g}",
                f"{result['product_share']:.0%} of {record['product_teraflops'][result['precision']]:,.3g}",
                "" if memory is None else f"{memory:.1f}",
                f"{result['warm_up_seconds']:.0f}",
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Make the pairs, time every variant, print the table. What is measured so far is kept at once."""
    parser = make_parser(
        __doc__, 1, "epochs of each variant, of which the median counts", "100 pairs in batches of 16, small products"
    )
    add_threads(parser)
    parser.add_argument(
        "--pairs", type=int, default=SNLI_PAIRS, help="pairs in an epoch (default: %(default)s, SNLI's)"
    )
    parser.add_argument(
        "--batch_size", type=int, nargs="+", help="pairs in a batch (default: 64 1024 4096, without a GPU 64)"
    )
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="time for an epoch of a variant (default: %(default)s)"
    )
    parser.add_argument("--no_compile", action="store_true", help="leave out the compiled models")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_gpu = device.type == "cuda"
    sizes: list[int] = arguments.batch_size or ([64, 1024, 4096] if on_gpu else [64])
    count, product_size = arguments.pairs, 8192 if on_gpu else 2048
    if arguments.quick:
        sizes, count, product_size = [16], 100, 256
    if min(arguments.threads, arguments.rounds) < 1 or arguments.seconds <= 0:
        parser.error("give at least 1 thread and 1 round, and more than 0 seconds")
    if min(sizes) < 2 or max(sizes) > count:
        parser.error(
            f"{count:,} pairs cannot make batches of {sizes} pairs: give batches of 2 pairs or more, up to all"
        )

    torch.set_num_threads(arguments.threads)
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    settings: dict[str, Any] = {
        "vocab_size": FIRST_WORD + VOCABULARY,
        "unknown_init_range": 0.5,  # words as long as GloVe's
        "sentences_per_row": 2,
        "num_labels": 3,
        # transformers would set it in the first step, and torch.compile would start anew in the second.
        "problem_type": "single_label_classification",
    }
    config = DSAConfig(**settings)
    pairs = make_pairs(count, config)
    load = Loader(pairs, device, config)
    on = machine()
    precisions = ["fp32", "tf32", "bf16"] if on_gpu else ["fp32", "bf16"]
    record: dict[str, Any] = {
        "pairs": count,
        "words": int(pairs.premise_words.sum() + pairs.hypothesis_words.sum()),
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        "threads": arguments.threads,
        **on,
        "product_size": product_size,
        "product_teraflops": {},
        "results": [],
    }
    print(
        f"{count:,} made-up pairs with SNLI's lengths, {record['words']:,} words, on "
        f"{on['environment']['gpu'] or on['processor']}; products of {product_size} x {product_size} matrices.\n"
    )
    for precision in precisions:
        set_precision(precision)
        record["product_teraflops"][precision] = product_speed(precision, product_size, device) / 1e12
        for compiled in (False,) if arguments.no_compile else (False, True):
            for size in sizes:
                epochs = [Epoch(pairs, size, number, config) for number in range(arguments.rounds)]
                result: dict[str, Any] = {"precision": precision, "compiled": compiled, "batch_size": size}
                title = f"{precision}, {'compiled' if compiled else 'eager'}, {size:,} pairs"
                step = make_step(precision, compiled, device, config)
                try:
                    result |= time_epochs(step, load, epochs, device, arguments.seconds, title)
                    result["product_share"] = result["teraflops"] / record["product_teraflops"][precision]
                except Exception as error:  # one variant's; the others go on
                    result["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
                record["results"].append(result)
                if arguments.output:
                    keep(record, as_markdown(record), arguments.output)
                del step
                torch.compiler.reset()
                gc.collect()
                torch.cuda.empty_cache()
    print(as_markdown(record))


if __name__ == "__main__":
    main()
