"""How the time of encoding grows with tokens a sentence, batch, heads and vocabulary.

    python benchmarks/growth.py --output benchmarks/growth.json

Single DSA, word vectors of 300 numbers, random weights and random tokens, from token ids to sentence vectors; as it
comes from training and folded (`fold_embeddings`). One size is varied at a time:

- tokens: one sentence of 8 to 65,536 tokens;
- tokens, full batch: as many sentences of that length as make 65,536 tokens, so that only the length changes;
- sentences: 1 to 4,096 sentences of 11 tokens, which is SNLI's mean;
- heads: 1 to 32, for 256 sentences of 11 tokens;
- vocabulary: 10,000 to 1,000,000 tokens, for 256 sentences of 11 tokens. They are drawn uniformly, the worst case for a
  table: a text's frequent words stay in the cache. Folded, an entry of the vocabulary takes 11 kB: up to 100,000.

The sizes of a sweep take turns in each round and figures are medians, in microseconds a token. The exponents are those
of the power of the size that fits the time a token best, by least squares of logarithms, from the size on that the
table names: 0 is constant. The spread compares the slowest with the fastest time a token over the same sizes. Page
faults are those of one more run of each size: memory that the system hands out, emptied, and takes back, 4 kB at a
time.
"""

import resource
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from lib.measuring import alternate, exponent
from lib.options import make_parser, parse, recorded_options
from lib.records import Column, Figures, Record, Table, describe_machine, keep
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from modeling_dsa import DSAConfig, DSAModel

FULL_BATCH = 65_536
SNLI_TOKENS, SNLI_SENTENCES = 11, 256
VOCABULARY, LARGEST_FOLDED = 10_000, 100_000
WARM_UP_ROUNDS = 1
FORMS = ("plain", "folded")
LENGTHS = (8, 32, 128, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)


@dataclass(frozen=True)
class Sweep:
    """One size that varies.

    Attributes:
        name: Of the size.
        sizes: Its values.
        fitted_from: The smallest that counts for exponent and spread.
    """

    name: str
    sizes: tuple[int, ...]
    fitted_from: int


SWEEPS = (
    Sweep("tokens", LENGTHS, 1024),
    Sweep("tokens, full batch", (8, 128, 1024, 4096, 16_384, 65_536), 1024),
    Sweep("sentences", (1, 4, 16, 64, 256, 1024, 4096), 64),
    Sweep("heads", (1, 2, 4, 8, 16, 32), 4),
    Sweep("vocabulary", (10_000, 30_000, 100_000, 300_000, 1_000_000), 10_000),
)
QUICK_SWEEPS = (
    Sweep("tokens", (8, 1024, 2048), 1024),
    Sweep("tokens, full batch", (1024, 2048), 1024),
    Sweep("sentences", (1, 64, 128), 64),
    Sweep("heads", (1, 2), 1),
    Sweep("vocabulary", (1000, 3000), 1000),
)


def shown_points(record: Record) -> Iterable[Figures]:
    """Of each sweep, the smallest size, the first fitted and the largest; the record has all."""
    for result in record.results:
        points = result["points"]
        start = next(point for point in points if point["size"] >= result["fitted_from"])
        yield {**result, "smallest": points[0], "start": start, "largest": points[-1]}


TABLE = Table(
    (
        Column("what grows", "{sweep}", is_text=True),
        Column("model", "{form}", is_text=True),
        Column("us a token at", "{smallest[size]:,}: {smallest[microseconds_per_token]:.3g}"),
        Column("fitted from", "{start[size]:,}: {start[microseconds_per_token]:.3g}"),
        Column("to", "{largest[size]:,}: {largest[microseconds_per_token]:.3g}"),
        Column("us a token ~ size^", "{exponent:.2f}"),
        Column("spread", "{spread:.0%}"),
        Column("page faults a token", "{start[page_faults_per_token]:.2g} to {largest[page_faults_per_token]:.2g}"),
    ),
    rows=shown_points,
)


def shape(sweep: Sweep, size: int, full_batch: int) -> tuple[int, int]:
    """(sentences, tokens) of a batch."""
    if sweep.name == "tokens":
        return 1, size
    if sweep.name == "tokens, full batch":
        return full_batch // size, size
    return (size if sweep.name == "sentences" else SNLI_SENTENCES), SNLI_TOKENS


def make_model(form: str, heads: int, vocabulary: int) -> DSAModel:
    """Single DSA with random weights."""
    torch.manual_seed(0)
    options: dict[str, Any] = {"vocab_size": vocabulary, "num_attention_heads": heads, "unknown_init_range": 0.5}
    model: DSAModel = DSAModel(DSAConfig(**options)).eval()
    if form == "folded":
        model.fold_embeddings()
    return model


def make_models(sweep: Sweep, form: str) -> dict[int, DSAModel]:
    """The model of each size: the same one, unless the size is the model's own."""
    if sweep.name == "heads":
        return {heads: make_model(form, heads, VOCABULARY) for heads in sweep.sizes}
    if sweep.name == "vocabulary":
        sizes = [tokens for tokens in sweep.sizes if form == "plain" or tokens <= LARGEST_FOLDED]
        return {tokens: make_model(form, 1, tokens) for tokens in sizes}
    return dict.fromkeys(sweep.sizes, make_model(form, 1, VOCABULARY))


def encoder(model: DSAModel, shape: tuple[int, int]) -> Callable[[int], Tensor]:
    """Encode random tokens. The round is the seed."""

    @torch.inference_mode()
    def encode(turn: int) -> Tensor:
        generator = torch.Generator().manual_seed(turn)
        ids = torch.randint(3, model.config.vocab_size, shape, generator=generator)
        vectors: Tensor = model(ids, output_tokens=False).pooler_output
        return vectors

    return encode


def count_page_faults(encode: Callable[[int], Tensor]) -> int:
    """Of one run."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    encode(0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def measure(sweeps: Sequence[Sweep], full_batch: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Time each sweep, plain and folded."""
    for sweep in sweeps:
        for form in FORMS:
            models = make_models(sweep, form)
            shapes = {size: shape(sweep, size, full_batch) for size in models}
            runs = {size: encoder(model, shapes[size]) for size, model in models.items()}
            turns = range(rounds + WARM_UP_ROUNDS)
            seconds = alternate(runs, turns, f"{sweep.name}, {form}", WARM_UP_ROUNDS)
            points = [
                {
                    "size": size,
                    "tokens": count * length,
                    "microseconds_per_token": 1e6 * statistics.median(seconds[size]) / (count * length),
                    "page_faults_per_token": count_page_faults(runs[size]) / (count * length),
                }
                for size, (count, length) in shapes.items()
            ]
            each = [point["microseconds_per_token"] for point in points]
            fitted = [found for size, found in zip(models, each, strict=True) if size >= sweep.fitted_from]
            yield {
                "sweep": sweep.name,
                "form": form,
                "fitted_from": sweep.fitted_from,
                "exponent": exponent(list(models), each, sweep.fitted_from),
                "spread": max(fitted) / min(fitted) - 1,
                "points": points,
            }


def draw(record: Record) -> Figure:
    """The time a token over each size, both axes logarithmic."""
    names = list(dict.fromkeys(result["sweep"] for result in record.results))
    figure = Figure(figsize=(3.2 * len(names), 3.6), layout="constrained")
    panels: Sequence[Axes] = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        for result in record.results:
            if result["sweep"] == name:
                points = [(point["size"], point["microseconds_per_token"]) for point in result["points"]]
                marker = "osD"[FORMS.index(result["form"])]
                panel.plot(*zip(*points, strict=True), marker=marker, label=result["form"])
        panel.set(xscale="log", yscale="log", xlabel=name)
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("microseconds a token")
    panels[0].legend(frameon=False)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all sweeps, keep what was found."""
    parser = make_parser(__doc__, 11, "timed runs of each size", "few and small sizes, 1 round")
    arguments = parse(parser, argv, {"rounds": 1})
    sweeps, full_batch = (QUICK_SWEEPS, 2048) if arguments.quick else (SWEEPS, FULL_BATCH)
    torch.set_num_threads(arguments.threads)
    machine = describe_machine()
    results = list(measure(sweeps, full_batch, arguments.rounds))
    setup = {"tokens_in_full_batch": full_batch}
    keep(Record(recorded_options(arguments), machine, setup, results), TABLE, arguments.output, draw)


if __name__ == "__main__":
    main()
