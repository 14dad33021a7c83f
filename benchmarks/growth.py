"""How the time of encoding grows with words a sentence, batch, heads and vocabulary.

    python benchmarks/growth.py --output benchmarks/growth.json

Single DSA, 300 numbers a word, random weights and random words, from word ids to vectors; as it comes from training and
folded (`fold_embeddings`). One size is varied at a time:

- words: one sentence of 8 to 65,536 words;
- words, full batch: as many sentences of that length as make 65,536 words, so that only the length changes;
- sentences: 1 to 4,096 sentences of 11 words, which is SNLI's mean;
- heads: 1 to 32, for 256 sentences of 11 words;
- vocabulary: 10,000 to 1,000,000 words, for 256 sentences of 11 words. Words are drawn uniformly, the worst case for a
  table: a text's frequent words stay in the cache. Folded, a word of the vocabulary takes 11 kB: up to 100,000 words.

The sizes of a sweep take turns in each round and figures are medians, in microseconds a word. The exponents are those
of the power of the size that fits the time a word best, by least squares of logarithms, from the size on that the table
names: 0 is constant. The spread compares the slowest with the fastest time a word over the same sizes. Page faults are
those of one more run of each size: memory that the system hands out, emptied, and takes back, 4 kB at a time.
"""

import resource
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from long_texts import exponent
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from measuring import add_threads, alternate, keep, machine, make_parser
from torch import Tensor

from modeling_dsa import DSAConfig, DSAModel

FULL_BATCH = 65_536
SNLI_WORDS, SNLI_SENTENCES = 11, 256
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
    Sweep("words", LENGTHS, 1024),
    Sweep("words, full batch", (8, 128, 1024, 4096, 16_384, 65_536), 1024),
    Sweep("sentences", (1, 4, 16, 64, 256, 1024, 4096), 64),
    Sweep("heads", (1, 2, 4, 8, 16, 32), 4),
    Sweep("vocabulary", (10_000, 30_000, 100_000, 300_000, 1_000_000), 10_000),
)
QUICK_SWEEPS = (
    Sweep("words", (8, 1024, 2048), 1024),
    Sweep("words, full batch", (1024, 2048), 1024),
    Sweep("sentences", (1, 64, 128), 64),
    Sweep("heads", (1, 2), 1),
    Sweep("vocabulary", (1000, 3000), 1000),
)


def shape(sweep: Sweep, size: int, full_batch: int) -> tuple[int, int]:
    """(sentences, words) of a batch."""
    if sweep.name == "words":
        return 1, size
    if sweep.name == "words, full batch":
        return full_batch // size, size
    return (size if sweep.name == "sentences" else SNLI_SENTENCES), SNLI_WORDS


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
        sizes = [words for words in sweep.sizes if form == "plain" or words <= LARGEST_FOLDED]
        return {words: make_model(form, 1, words) for words in sizes}
    return dict.fromkeys(sweep.sizes, make_model(form, 1, VOCABULARY))


def encoder(model: DSAModel, shape: tuple[int, int]) -> Callable[[int], Tensor]:
    """Encode random words. The round is the seed."""

    @torch.inference_mode()
    def encode(turn: int) -> Tensor:
        generator = torch.Generator().manual_seed(turn)
        ids = torch.randint(3, model.config.vocab_size, shape, generator=generator)
        vectors: Tensor = model(ids, output_words=False).pooler_output
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
            medians = {size: statistics.median(taken) for size, taken in seconds.items()}
            points = [
                {
                    "size": size,
                    "words": count * length,
                    "microseconds_per_word": 1e6 * medians[size] / (count * length),
                    "page_faults_per_word": count_page_faults(runs[size]) / (count * length),
                }
                for size, (count, length) in shapes.items()
            ]
            each = [point["microseconds_per_word"] for point in points]
            fitted = [found for size, found in zip(models, each, strict=True) if size >= sweep.fitted_from]
            yield {
                "sweep": sweep.name,
                "form": form,
                "fitted_from": sweep.fitted_from,
                "exponent": exponent(list(models), each, sweep.fitted_from),
                "spread": max(fitted) / min(fitted) - 1,
                "points": points,
            }


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table: the smallest size, the first fitted and the largest, the exponent and the spread."""
    lines = [
        "| what grows | model | us a word at | fitted from | to | us a word ~ size^ | spread | page faults a word |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for result in record["results"]:
        start = next(point for point in result["points"] if point["size"] >= result["fitted_from"])
        end = result["points"][-1]
        shown = [
            f"{point['size']:,}: {point['microseconds_per_word']:.3g}" for point in (result["points"][0], start, end)
        ]
        faults = " to ".join(f"{point['page_faults_per_word']:.2g}" for point in (start, end))
        target = " (to reach: 20 %)" if result["sweep"].startswith("words") else ""
        power = "" if result["exponent"] is None else f"{result['exponent']:.2f}"
        lines.append(
            f"| {result['sweep']} | {result['form']} | {' | '.join(shown)} | {power} | {result['spread']:.0%}{target} "
            f"| {faults} |"
        )
    return "\n".join(lines)


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draw the time a word over each size as a PNG, both axes logarithmic."""
    names = list(dict.fromkeys(result["sweep"] for result in record["results"]))
    figure = Figure(figsize=(3.2 * len(names), 3.6), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        axes: Axes = panel
        for result in record["results"]:
            if result["sweep"] == name:
                points = [(point["size"], point["microseconds_per_word"]) for point in result["points"]]
                marker = "osD"[FORMS.index(result["form"])]
                axes.plot(*zip(*points, strict=True), marker=marker, label=result["form"])
        axes.set(xscale="log", yscale="log", xlabel=name)
        axes.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("microseconds a word")
    panels[0].legend(frameon=False)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def main() -> None:
    """Measure all sweeps, print the table."""
    parser = make_parser(__doc__, 11, "timed runs of each size", "few and small sizes, 1 round")
    add_threads(parser)
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else arguments.rounds
    if arguments.threads < 1 or rounds < 1:
        parser.error("give at least 1 thread and 1 round")
    sweeps, full_batch = (QUICK_SWEEPS, 2048) if arguments.quick else (SWEEPS, FULL_BATCH)
    torch.set_num_threads(arguments.threads)
    record = {
        "rounds": rounds,
        "words_in_full_batch": full_batch,
        "threads": arguments.threads,
        **machine(),
        "results": list(measure(sweeps, full_batch, rounds)),
    }
    print(
        f"Single DSA, words of 300 numbers, {arguments.threads} threads; median of {rounds} runs; "
        f"load before: {record['load_before']:.1f}.\n"
    )
    print(as_markdown(record))
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)
        draw(record, arguments.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
