"""Seconds of training for a million words, against other sentence encoders with the same classifier.

    python benchmarks/training_epoch.py --output benchmarks/training_epoch.json

A training step is forward, backward and fused AdamW on a random batch of SNLI pairs, from the sample that ships with
the package; everyone trains on the same batches in turn, and no batch comes twice. An epoch is a stream of such steps,
so its time is words times seconds a word; words of both sentences count, padding does not. Figures are medians over the
batches. The batches are tokenised beforehand, as in training.

All have frozen word vectors of 300 numbers and single DSA's classifier, and all but this package's model encode a
batch's two padded sides one after the other:

- single DSA of this package, and the same on padded `nn.Conv1d` (`PaddedDSA` in `training_step.py`);
- BiLSTM-max: InferSent's, 2 x 2048 units over a `PackedSequence`;
- BiLSTM and self-attention: 2 x 300 units over a `PackedSequence`, attention of 600 units;
- transformer: two `nn.TransformerEncoder` layers of width 300, 6 heads, 1,200 units inside, mean of the words.
"""

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from measuring import add_threads, alternate, keep, keep_freed_memory, machine, make_parser, training_step
from peers import BiLSTMAttention, BiLSTMMax, PaddedPair, TransformerMean
from torch import Tensor, nn
from training_step import Batch, PaddedDSA, count_parameters, draw_pairs, make_batches

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.text.tokenization import build_tokenizer, count_words

OURS = "single DSA"
WARM_UP_ROUNDS = 4  # the CPU library compiles a kernel for each new shape of a batch, of which an epoch has few
UNITS = 2048
TARGETS = {"single DSA, padded Conv1d": 3, "BiLSTM-max": 10}


def make_models(config: DSAConfig, units: int, longest: int) -> dict[str, nn.Module]:
    """Everyone, over one word table."""
    torch.manual_seed(0)
    ours = DSAForNLI(config)
    table = ours.get_input_embeddings()
    assert isinstance(table, nn.Embedding)
    size = config.embedding_size
    encoders: dict[str, BiLSTMMax | BiLSTMAttention | TransformerMean] = {
        f"BiLSTM-max {2 * units}D": BiLSTMMax(table, units),
        "BiLSTM, self-attention 600D": BiLSTMAttention(table, 300, 600),
        "transformer, 2 layers": TransformerMean(table, size // 50, 2, longest),
    }
    pairs = {name: PaddedPair(encoder, config) for name, encoder in encoders.items()}
    return {OURS: ours, "single DSA, padded Conv1d": PaddedDSA(ours), **pairs}


def loss_of(model: nn.Module) -> Callable[[Batch], Tensor]:
    """The loss of a batch, in the form of it that the model reads."""

    def loss(batch: Batch) -> Tensor:
        if isinstance(model, DSAForNLI):
            ours: Tensor = model(**batch.packed, labels=batch.labels).loss
            return ours
        return F.cross_entropy(model(*batch.padded), batch.labels)

    return loss


def measure(models: Mapping[str, nn.Module], batches: Sequence[Batch]) -> list[dict[str, Any]]:
    """Train everyone."""
    steps = {name: training_step(model.train(), loss_of(model)) for name, model in models.items()}
    seconds = alternate(steps, batches, "Training", WARM_UP_ROUNDS)
    words = [batch.words for batch in batches[WARM_UP_ROUNDS:]]
    per_million = {
        name: [1e6 * took / count for took, count in zip(taken, words, strict=True)] for name, taken in seconds.items()
    }
    ours = statistics.median(per_million[OURS])
    return [
        {
            "name": name,
            "parameters": count_parameters(models[name]),
            "seconds_per_million_words": statistics.median(found),
            "fastest": min(found),
            "slowest": max(found),
            "ratio": statistics.median(found) / ours,
        }
        for name, found in per_million.items()
    ]


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table: who, how long for a million words, how many times as long as this package's model."""
    lines = [
        "| model | parameters trained | s a million words: median (range) | words/s | single DSA is faster by |",
        "|---|---:|---:|---:|---:|",
    ]
    for result in record["results"]:
        target = next((goal for name, goal in TARGETS.items() if result["name"].startswith(name)), None)
        reach = "" if target is None else f" (to reach: {target}x)"
        median = result["seconds_per_million_words"]
        cells = [
            result["name"],
            f"{result['parameters']:,}",
            f"{median:,.1f} ({result['fastest']:,.1f} to {result['slowest']:,.1f})",
            f"{1e6 / median:,.0f}",
            "" if result["name"] == OURS else f"{result['ratio']:.1f}x{reach}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draw the times as bars in a PNG."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    panel: Axes = figure.add_subplot()
    names = [result["name"] for result in record["results"]]
    found = [result["seconds_per_million_words"] for result in record["results"]]
    bars = panel.barh(names, found, color=["#009E73" if name == OURS else "#D55E00" for name in names])
    panel.bar_label(bars, [f"{value:,.0f}" if value >= 10 else f"{value:.2g}" for value in found], padding=3)
    panel.invert_yaxis()
    panel.set(xlabel="seconds of training for a million words")
    panel.margins(x=0.12)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def main() -> None:
    """Prepare the batches, train, print the table."""
    parser = make_parser(__doc__, 12, "timed batches", "2 rounds of 8 pairs, a BiLSTM of 2 x 64")
    add_threads(parser)
    parser.add_argument(
        "--batch_size", type=int, default=256, help="pairs in a batch; default: the paper's %(default)s"
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments = argparse.Namespace(**{**vars(arguments), "rounds": 2, "batch_size": 8})
    if arguments.threads < 1 or arguments.rounds < 1 or arguments.batch_size < 2:
        parser.error("give at least 1 thread, 1 round and 2 pairs in a batch")
    count = (arguments.rounds + WARM_UP_ROUNDS) * arguments.batch_size
    pairs = draw_pairs(count)
    if len(pairs["label"]) < count:
        parser.error(f"the sample has {len(pairs['label']):,} pairs: give fewer rounds or smaller batches")

    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    tokenizer = build_tokenizer(count_words(pairs["premise"] + pairs["hypothesis"], lowercase=True), lowercase=True)
    settings: dict[str, Any] = {"sentences_per_row": 2, "num_labels": 3, "unknown_init_range": 0.5}
    config = DSAConfig(vocab_size=len(tokenizer), **settings)
    batches = make_batches(pairs, arguments.batch_size, config, tokenizer)
    longest = max(side[0].shape[1] for batch in batches for side in batch.padded)
    on = machine()
    models = make_models(config, 64 if arguments.quick else UNITS, longest)
    record = {
        "rounds": arguments.rounds,
        "batch_size": arguments.batch_size,
        "threads": arguments.threads,
        **on,
        "words": sum(batch.words for batch in batches[WARM_UP_ROUNDS:]),
        "padding_share": 1 - sum(batch.words for batch in batches) / sum(batch.places for batch in batches),
        "results": measure(models, batches),
    }
    print(
        f"{arguments.rounds} random batches of {arguments.batch_size} SNLI pairs, {record['words']:,} words, on "
        f"{arguments.threads} threads; load before: {on['load_before']:.1f}. "
        f"{record['padding_share']:.0%} of the padded batches is padding.\n"
    )
    print(as_markdown(record))
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)
        draw(record, arguments.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
