"""Speed of the model core against a padded `nn.Conv1d` model with the same weights, and against a matrix product.

    python benchmarks/training_step.py --output benchmarks/training_step.json

Both models are single DSA for NLI and read the same random batches of SNLI pairs, from the sample that ships with the
package. The padded model is what one writes first: each side of the batch padded to its longest sentence, `nn.Conv1d`
on (batch, channels, tokens), a masked softmax. It must have as many parameters and give the same logits. No batch comes
twice, so nothing prepared for one number of tokens serves again by chance. Competitors take turns on every batch and
all figures are medians, so other work on the machine meets all alike.

Operations are counted on the tokens of distinct sentences, as the text of `lib/operations.py` says, whatever the
variant computes; the product that they are compared with is of float32.

Random batches are compared with the same pairs in batches sorted by their length, for each real token.
"""

import copy
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from lib.batches import Batch, batch_loss_of, make_batches, padding_share, prepare_pairs, sort_pairs
from lib.measuring import alternate, count_parameters, median_rate, training_step
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.padded_dsa import PaddedDSA, check_equal
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import draw_pairs

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.command.command_line import whole_number
from run_glue_style.training.half_precision import computes_in_bf16

PRODUCT_SIZE = (4096, 300, 600)
PRODUCTS = 10  # in one timing: a single one takes a few milliseconds
WARM_UP_ROUNDS = 3
OURS, FOLDED, BF16, PADDED = "single DSA", "single DSA, folded", "single DSA in bf16", "single DSA, padded Conv1d"
PRODUCT = "product"
TABLE = Table(
    (
        Column("model", "{name}", is_text=True),
        Column("training step, ms", "{training[milliseconds]:,.0f}"),
        Column("single DSA is faster by", "{training[ratio]:.3g}x"),
        Column("encoding, sentences/s", "{encoding[sentences_per_second]:,.0f}"),
        Column("single DSA is faster by", "{encoding[ratio]:.3g}x"),
        Column("training, GFLOP/s (of a product's)", "{training[gflops]:.0f} ({training[product_share]:.0%})"),
        Column("encoding, GFLOP/s (of a product's)", "{encoding[gflops]:.0f} ({encoding[product_share]:.0%})"),
        Column("training, us a token (sorted batches)", "{training[random_us]:.3g} ({training[sorted_us]:.3g})"),
        Column("encoding, us a token (sorted batches)", "{encoding[random_us]:.3g} ({encoding[sorted_us]:.3g})"),
    )
)

Run = Callable[[Batch], object]


@dataclass(frozen=True)
class Batches:
    """What is run.

    Attributes:
        warm_up: Random batches.
        timed: Random batches.
        in_order: The pairs of those that are timed, in batches sorted by length.
    """

    warm_up: list[Batch]
    timed: list[Batch]
    in_order: list[Batch]


def encoder(encode: Run, bf16: bool = False) -> Run:
    """Sentence vectors of a batch."""

    def run(batch: Batch) -> None:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            encode(batch)

    return run


def make_models(config: DSAConfig) -> tuple[DSAForNLI, DSAForNLI, PaddedDSA]:
    """This package's model, the same folded, and the padded one, with the same weights."""
    torch.manual_seed(0)
    ours = DSAForNLI(config)
    with torch.no_grad():
        for name, weight in ours.named_parameters():
            if name.endswith("bias"):  # 0 in a fresh model, which would hide a missing mask from `check_equal`
                weight.normal_(std=0.1)
    folded = copy.deepcopy(ours).eval()
    folded.fold_embeddings()
    return ours, folded, PaddedDSA(ours)


def make_product() -> Run:
    """The matrix products of one timing, whatever the batch."""
    left, right = torch.randn(PRODUCT_SIZE[:2]), torch.randn(PRODUCT_SIZE[1:])

    def product(_batch: Batch) -> None:
        for _ in range(PRODUCTS):
            torch.mm(left, right)

    return product


def measure_phase(
    title: str, runs: Mapping[str, Run], batches: Batches, operations: Sequence[int]
) -> tuple[dict[str, Any], float]:
    """Figures of encoding or training by variant, and the GFLOP/s of the product, which is one of the runs.

    Args:
        title: Of the phase.
        runs: What each variant does with a batch.
        batches: The batches.
        operations: Floating point operations of each timed batch.
    """
    seconds = alternate(runs, [*batches.warm_up, *batches.timed], title, len(batches.warm_up))
    run = runs[OURS]
    orders: dict[str, Callable[[tuple[Batch, Batch]], object]] = {
        "random": lambda both: run(both[0]),
        "sorted": lambda both: run(both[1]),
    }
    in_orders = alternate(orders, list(zip(batches.timed, batches.in_order, strict=True)), f"{title}, orders")
    tokens = [batch.tokens for batch in batches.timed]
    sentences = [2 * len(batch.labels) for batch in batches.timed]
    of_product = [PRODUCTS * 2 * PRODUCT_SIZE[0] * PRODUCT_SIZE[1] * PRODUCT_SIZE[2] / 1e9] * len(batches.timed)
    product_gflops = median_rate(of_product, seconds[PRODUCT])
    billions = [count / 1e9 for count in operations]
    ours = statistics.median(seconds[OURS])
    figures = {}
    for name in runs.keys() - {PRODUCT}:
        gflops = median_rate(billions, seconds[name])
        figures[name] = {
            "milliseconds": 1e3 * statistics.median(seconds[name]),
            "ratio": statistics.median(seconds[name]) / ours,
            "sentences_per_second": median_rate(sentences, seconds[name]),
            "tokens_per_second": median_rate(tokens, seconds[name]),
            "gflops": gflops,
            "product_share": gflops / product_gflops,
            "random_us": 1e6 / median_rate(tokens, in_orders["random"]) if name == OURS else None,
            "sorted_us": (
                1e6 / median_rate([batch.tokens for batch in batches.in_order], in_orders["sorted"])
                if name == OURS
                else None
            ),
        }
    return figures, product_gflops


def measure(config: DSAConfig, batches: Batches, bf16: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Time all variants and the matrix product.

    Args:
        config: Of all.
        batches: What they read.
        bf16: Time our model in bf16 too.

    Returns:
        What the figures rest on, and the figures of each variant.
    """
    ours, folded, padded = make_models(config)
    difference = check_equal(ours, padded, batches.warm_up[0])
    product = make_product()

    def encode(batch: Batch) -> object:
        return ours.dsa(**batch.packed, output_tokens=False)

    encoders = {
        OURS: encoder(encode),
        FOLDED: encoder(lambda batch: folded.dsa(**batch.packed, output_tokens=False)),
        PADDED: encoder(lambda batch: [padded.encode(*side) for side in batch.padded]),
        PRODUCT: product,
    }
    trainers = {
        OURS: training_step(ours, batch_loss_of(ours)),
        PADDED: training_step(padded, batch_loss_of(padded)),
        PRODUCT: product,
    }
    if bf16:
        encoders[BF16] = encoder(encode, bf16=True)
        trainers[BF16] = training_step(ours, batch_loss_of(ours), bf16=True)
    operations = [batch.operations for batch in batches.timed]
    training_operations = [batch.training_operations for batch in batches.timed]
    encoding, encoding_product = measure_phase("Encoding", encoders, batches, operations)
    ours.train()
    padded.train()
    training, training_product = measure_phase("Training", trainers, batches, training_operations)
    tokens = sum(batch.tokens for batch in batches.timed)
    setup = {
        "parameters": count_parameters(ours),
        "logits_difference": difference,
        "padding_share": padding_share(batches.timed),
        "operations_per_token": sum(operations) / tokens,
        "training_operations_per_token": sum(training_operations) / tokens,
        "product_size": PRODUCT_SIZE,
        "product_gflops": {"encoding": encoding_product, "training": training_product},
    }
    results = [
        {"name": name, "encoding": encoding[name], "training": training.get(name)}
        for name in (OURS, FOLDED, BF16, PADDED)
        if name in encoding
    ]
    return setup, results


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare the batches, measure, keep what was found."""
    parser = make_parser(__doc__, 30, "timed batches", "3 rounds of 16 pairs")
    parser.add_argument(
        "--embedding_size", type=whole_number(1), default=300, help="width of a word vector (default: %(default)s)"
    )
    parser.add_argument(
        "--batch_size", type=whole_number(2), default=256, help="pairs in a batch (default: %(default)s)"
    )
    arguments = parse(parser, argv, {"rounds": 3, "batch_size": 16})
    size = arguments.batch_size
    with reports_mistakes(parser):
        pairs = draw_pairs((arguments.rounds + WARM_UP_ROUNDS) * size)
    torch.set_num_threads(arguments.threads)
    config, tokenizer = prepare_pairs(pairs, arguments.embedding_size)
    random = make_batches(pairs, size, config, tokenizer)
    timed = {name: column[WARM_UP_ROUNDS * size :] for name, column in pairs.items()}
    in_order = make_batches(sort_pairs(timed), size, config, tokenizer)
    bf16 = computes_in_bf16(torch.device("cpu"))
    machine = describe_machine()
    batches = Batches(random[:WARM_UP_ROUNDS], random[WARM_UP_ROUNDS:], in_order)
    setup, results = measure(config, batches, bf16)
    keep(Record(recorded_options(arguments), machine, setup, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
