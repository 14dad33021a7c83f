"""The time of a training epoch of every row of DSA's Table 1, and of what else its table of ours has.

    python benchmarks/table_epoch.py --output benchmarks/table_epoch.json

The systems are the settings of configuration/tables/snli.yaml with their own sizes, over one vocabulary with random
word vectors. A step is forward, backward and fused AdamW, whatever a setting's own optimiser is, on the same random
batches of the pairs that ship; the systems take turns on every batch. Seconds of an epoch are the median of a batch's
seconds for a pair, times SNLI's 549,367 training pairs. The paper's seconds are of one GTX 1080 Ti, some by other
authors' code, so that only ratios can be compared. Hard attention (resan) draws in every step. With `--device cuda`
all is on the GPU, the batches beforehand; it multiplies in full precision, and a step ends when the GPU is done.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from lib.batches import Batch, batch_loss_of, make_batches, prepare_pairs
from lib.measuring import alternate, count_parameters, keep_freed_memory, training_step
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import draw_pairs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.command.command_line import whole_number
from modeling_dsa.command.messages import suggestion
from modeling_dsa.files.pictures import look, scale_by_logarithm
from modeling_dsa.shipped.settings import setting_folder
from run_glue_style.reporting.published import PublishedTable, read_published

OURS = "dsa-single"
_LOOKS = {"DSA": look(2), "other systems": look(1)}
WARM_UP_ROUNDS = 2
QUICK_SYSTEMS = [OURS, "disan", "resan"]
TABLE = Table(
    (
        Column("setting", "{setting}", is_text=True),
        Column("in the paper", "{called}", is_text=True),
        Column("parameters trained", "{parameters:,}"),
        Column("an epoch, s: median (range)", "{seconds:,.0f} ({fastest:,.0f} to {slowest:,.0f})"),
        Column("of single DSA's", "{ratio:.3g}x"),
        Column("published, s", "{published_seconds:,.0f}"),
        Column("of single DSA's", "{published_ratio:.3g}x"),
        Column("published accuracy, %", "{published_accuracy:.1f}"),
    )
)


def choose_systems(table: PublishedTable, names: Sequence[str] | None) -> list[str]:
    """Systems of the table, single DSA first; None: all.

    Raises:
        ValueError: There is no such system.
    """
    for name in names or ():
        if name not in table.systems:
            raise ValueError(f"The table '{table.name}' has no system '{name}'. {suggestion(name, table.systems)}")
    return [OURS, *(name for name in table.systems if name != OURS and (names is None or name in names))]


def make_model(setting: str, vocabulary: int) -> DSAForNLI:
    """A setting with random weights."""
    torch.manual_seed(0)
    # Vectors as long as GloVe's, and hard attention that draws from the first step.
    options: dict[str, Any] = {"vocab_size": vocabulary, "unknown_init_range": 0.5, "soft_attention_steps": 0}
    model = DSAForNLI(DSAConfig.from_pretrained(setting_folder(setting), **options))
    model.train()
    return model


def measure(models: Mapping[str, DSAForNLI], batches: Sequence[Batch], table: PublishedTable) -> list[dict[str, Any]]:
    """Train all systems, of which single DSA is one.

    Args:
        models: By system.
        batches: Of which the first are not timed.
        table: What was published of them.
    """
    steps = {
        name: _finished(training_step(model, batch_loss_of(model), device=model.device.type))
        for name, model in models.items()
    }
    taken = alternate(steps, batches, "Training", WARM_UP_ROUNDS)
    pairs = [len(batch.labels) for batch in batches[WARM_UP_ROUNDS:]]
    epoch = table.published_with.train_examples
    assert epoch is not None
    seconds = {
        name: [epoch * took / count for took, count in zip(each, pairs, strict=True)] for name, each in taken.items()
    }
    ours, paper = statistics.median(seconds[OURS]), table.costs[table.systems[OURS].called or ""].epoch_seconds
    assert paper is not None
    results = []
    for name, found in seconds.items():
        system = table.systems[name]
        cost = table.costs.get(system.called or "")
        published = None if cost is None else cost.epoch_seconds
        results.append(
            {
                "setting": f"{name}-{table.name}",
                "called": system.called or "",
                "parameters": count_parameters(models[name]),
                "seconds": statistics.median(found),
                "fastest": min(found),
                "slowest": max(found),
                "ratio": statistics.median(found) / ours,
                "published_seconds": published,
                "published_ratio": None if published is None else published / paper,
                "published_accuracy": None if cost is None else cost.accuracy,
            }
        )
    return results


def _finished(step: Callable[[Batch], None]) -> Callable[[Batch], None]:
    """The same step, which ends when a GPU has done what it was told."""

    def run(batch: Batch) -> None:
        step(batch)
        if batch.labels.is_cuda:
            torch.cuda.synchronize()

    return run


def draw(record: Record) -> Figure:
    """The paper's accuracy over our time."""
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    panel: Axes = figure.add_subplot()
    published = [result for result in record.results if result["published_accuracy"] is not None]
    for index, result in enumerate(
        sorted(published, key=lambda result: (result["published_accuracy"], result["seconds"]))
    ):
        point = result["seconds"] / 60, result["published_accuracy"]
        kind = "DSA" if result["setting"].startswith("dsa") else "other systems"
        panel.plot(*point, linestyle="none", label=kind, **_LOOKS[kind])
        below = index % 2 == 1  # neighbours of one accuracy would write over each other
        offset = (0, -14 if below else 7)
        panel.annotate(result["setting"], point, xytext=offset, textcoords="offset points", fontsize=8, ha="center")
    scale_by_logarithm(panel, "{x:.0f}")
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set(xlabel="minutes of an epoch of SNLI, measured here", ylabel="published test accuracy, %")
    panel.margins(x=0.2, y=0.1)
    handles = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))  # each label once
    panel.legend(handles.values(), handles, fontsize=8)
    panel.grid(alpha=0.3)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare the batches, train, keep what was found."""
    parser = make_parser(__doc__, 8, "timed batches", f"2 rounds of 4 pairs, {', '.join(QUICK_SYSTEMS)}")
    parser.add_argument(
        "--batch_size", type=whole_number(2), default=64, help="pairs in a batch (default: %(default)s, that of DiSAN)"
    )
    parser.add_argument("--systems", nargs="+", help="rows of configuration/tables/snli.yaml; default: all")
    parser.add_argument("--device", default="cpu", help="of torch: cpu or cuda (default: %(default)s)")
    arguments = parse(parser, argv, {"rounds": 2, "batch_size": 4, "systems": QUICK_SYSTEMS})
    table = read_published("snli")
    with reports_mistakes(parser):
        systems = choose_systems(table, arguments.systems)
        pairs = draw_pairs((arguments.rounds + WARM_UP_ROUNDS) * arguments.batch_size)
    torch.set_num_threads(arguments.threads)
    torch.backends.cudnn.allow_tf32 = False
    keep_freed_memory()
    config, tokenizer = prepare_pairs(pairs)
    batches = [
        batch.on_device(arguments.device) for batch in make_batches(pairs, arguments.batch_size, config, tokenizer)
    ]
    machine = describe_machine()
    tokens = sum(batch.tokens for batch in batches) / len(pairs["label"])
    models = {name: make_model(f"{name}-{table.name}", len(tokenizer)).to(arguments.device) for name in systems}
    results = measure(models, batches, table)
    keep(
        Record(recorded_options(arguments), machine, {"tokens_per_pair": tokens}, results),
        TABLE,
        arguments.output,
        draw,
    )


if __name__ == "__main__":
    main()
