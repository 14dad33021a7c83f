"""Seconds of training for a million tokens, against other sentence encoders with the same classifier.

    python benchmarks/training_epoch.py --output benchmarks/training_epoch.json

A training step is forward, backward and fused AdamW on a random batch of SNLI pairs, from the sample that ships with
the package; everyone trains on the same batches in turn, and no batch comes twice. An epoch is a stream of such steps,
so its time is tokens times seconds a token; tokens of both sentences count, padding does not. Figures are medians over
the batches. The batches are tokenised beforehand, as in training.

All have frozen word vectors of 300 numbers and single DSA's classifier, and all but this package's model encode a
batch's two padded sides one after the other:

- single DSA of this package, and the same on padded `nn.Conv1d` (`lib/padded_dsa.py`);
- BiLSTM-max: InferSent's, 2 x 2048 units over a `PackedSequence`;
- BiLSTM and self-attention: 2 x 300 units over a `PackedSequence`, attention of 600 units;
- transformer: two `nn.TransformerEncoder` layers of width 300, 6 heads, 1,200 units inside, mean of the tokens.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from lib.batches import Batch, batch_loss_of, make_batches, padding_share, prepare_pairs
from lib.measuring import alternate, count_parameters, keep_freed_memory, training_step
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.padded_dsa import PaddedDSA
from lib.peers import BiLSTMAttention, BiLSTMMax, PaddedPair, TransformerMean
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import draw_pairs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.command.command_line import whole_number
from modeling_dsa.files.pictures import GREEN, VERMILION

OURS = "single DSA"
WARM_UP_ROUNDS = 4  # the CPU library compiles a kernel for each new shape of a batch, of which an epoch has few
INFERSENT_UNITS = 2048
TABLE = Table(
    (
        Column("model", "{name}", is_text=True),
        Column("parameters trained", "{parameters:,}"),
        Column("s a million tokens: median (range)", "{seconds:,.1f} ({fastest:,.1f} to {slowest:,.1f})"),
        Column("tokens/s", "{tokens_per_second:,.0f}"),
        Column("single DSA is faster by", "{ratio:,.3g}x"),
    )
)


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


def measure(models: Mapping[str, nn.Module], batches: Sequence[Batch]) -> list[dict[str, Any]]:
    """Train everyone. Seconds are those of a million tokens."""
    steps = {name: training_step(model.train(), batch_loss_of(model)) for name, model in models.items()}
    taken = alternate(steps, batches, "Training", WARM_UP_ROUNDS)
    tokens = [batch.tokens for batch in batches[WARM_UP_ROUNDS:]]
    seconds = {
        name: [1e6 * took / count for took, count in zip(each, tokens, strict=True)] for name, each in taken.items()
    }
    ours = statistics.median(seconds[OURS])
    return [
        {
            "name": name,
            "parameters": count_parameters(models[name]),
            "seconds": statistics.median(found),
            "fastest": min(found),
            "slowest": max(found),
            "tokens_per_second": 1e6 / statistics.median(found),
            "ratio": statistics.median(found) / ours,
        }
        for name, found in seconds.items()
    ]


def draw(record: Record) -> Figure:
    """The times as bars."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    panel: Axes = figure.add_subplot()
    names = [result["name"] for result in record.results]
    found = [result["seconds"] for result in record.results]
    for label, colour, ours in (("this package", GREEN, True), ("for comparison", VERMILION, False)):
        rows = [row for row, name in enumerate(names) if (name == OURS) == ours]
        values = [found[row] for row in rows]
        bars = panel.barh(rows, values, color=colour, label=label)
        panel.bar_label(bars, [f"{value:,.0f}" if value >= 10 else f"{value:.2g}" for value in values], padding=3)
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.legend(fontsize=8)
    panel.set(xlabel="seconds of training for a million tokens")
    panel.margins(x=0.12)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare the batches, train, keep what was found."""
    parser = make_parser(__doc__, 12, "timed batches", "2 rounds of 8 pairs, a BiLSTM of 2 x 64")
    parser.add_argument(
        "--batch_size", type=whole_number(2), default=256, help="pairs in a batch; default: the paper's %(default)s"
    )
    arguments = parse(parser, argv, {"rounds": 2, "batch_size": 8})
    with reports_mistakes(parser):
        pairs = draw_pairs((arguments.rounds + WARM_UP_ROUNDS) * arguments.batch_size)
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    config, tokenizer = prepare_pairs(pairs)
    batches = make_batches(pairs, arguments.batch_size, config, tokenizer)
    longest = max(side[0].shape[1] for batch in batches for side in batch.padded)
    machine = describe_machine()
    setup = {
        "tokens": sum(batch.tokens for batch in batches[WARM_UP_ROUNDS:]),
        "padding_share": padding_share(batches),
    }
    results = measure(make_models(config, 64 if arguments.quick else INFERSENT_UNITS, longest), batches)
    keep(Record(recorded_options(arguments), machine, setup, results), TABLE, arguments.output, draw)


if __name__ == "__main__":
    main()
