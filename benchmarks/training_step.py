"""Speed of the model core against a padded `nn.Conv1d` model with the same weights, and against a matrix product.

    python benchmarks/training_step.py --output benchmarks/training_step.json

Both models are single DSA for NLI and read the same random batches of SNLI pairs, from the sample that ships with the
package. The padded model is what one writes first: each side of the batch padded to its longest sentence, `nn.Conv1d`
on (batch, channels, words), a masked softmax. It must have as many parameters and give the same logits. No batch comes
twice, so nothing prepared for one number of words serves again by chance. Competitors take turns on every batch and all
figures are medians, so other work on the machine meets all alike.

Operations are counted on the words of distinct sentences, as the text of `operations.py` says.

Random batches are compared with the same pairs in batches sorted by their number of words, for each real word.
"""

import copy
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import pyarrow.parquet as parquet
import torch
import torch.nn.functional as F
from measuring import add_threads, alternate, keep, machine, make_parser, training_step
from operations import count_operations, count_training_operations
from torch import Tensor, nn

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.packing_dsa import pack, split_pairs
from modeling_dsa.text.tokenization import WordTokenizer, build_tokenizer, count_words
from run_glue_style.sample import SAMPLE_FILES

PRODUCT_SIZE = (4096, 300, 600)
PRODUCTS = 10  # in one timing: a single one takes a few milliseconds
WARM_UP_ROUNDS = 3
TOLERANCE = 1e-4


Side: TypeAlias = tuple[Tensor, Tensor]


class PaddedDSA(nn.Module):
    """Single DSA for NLI on padded batches, with the weights of `model`: its word table, copies of all else."""

    def __init__(self, model: DSAForNLI) -> None:
        super().__init__()
        self.config = config = model.config
        self.embed_tokens = model.get_input_embeddings()
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)
        self.branches = nn.ModuleList()
        for kernel_size in config.kernel_sizes:
            width = config.first_layer_size
            layers = [self.layer(config.embedding_size, width, 1)]
            for _ in range(config.num_hidden_layers):
                layers.append(self.layer(width, config.growth_size, kernel_size))
                width += config.growth_size
            self.branches.append(nn.ModuleList(layers))
        width = len(config.kernel_sizes) * width + config.embedding_size
        self.compression = self.layer(width, config.hidden_size, 1)
        self.projection = nn.Conv1d(config.hidden_size, config.attention_head_size, 1)
        self.classifier = copy.deepcopy(model.classifier)
        convolutions = [[part for part in whole.modules() if isinstance(part, nn.Conv1d)] for whole in (self, model)]
        for mine, other in zip(*convolutions, strict=True):
            mine.load_state_dict(other.state_dict())

    def layer(self, in_channels: int, out_channels: int, kernel_size: int) -> nn.Sequential:
        """(batch, in_channels, words) -> (batch, out_channels, words)"""
        return nn.Sequential(
            nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2),
            nn.Dropout(self.config.hidden_dropout),
            nn.LeakyReLU(self.config.negative_slope),
        )

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, words), (batch, words) -> (batch, d_o)"""
        inside = mask.bool()[:, None]  # (batch, 1, words)
        words = self.embedding_dropout(self.embed_tokens(ids)).transpose(1, 2)  # (batch, d_0, words)
        outputs = []
        for branch in self.branches.children():
            first, *layers = branch.children()
            features = first(words) * inside  # (batch, d_1, words)
            for layer in layers:
                features = torch.cat([features, layer(features) * inside], dim=1)
            outputs.append(features)  # (batch, d_1 + L * d_l, words)
        encoded = F.normalize(self.compression(torch.cat([*outputs, words], dim=1)), dim=1)  # (batch, d_c, words)
        values = F.leaky_relu(self.projection(encoded), self.config.negative_slope)  # (batch, d_o, words)
        logits = torch.zeros_like(inside, dtype=values.dtype).masked_fill(~inside, -torch.inf)  # (batch, 1, words)
        vectors = (values @ logits.softmax(2).transpose(1, 2)).tanh()  # (batch, d_o, 1)
        for _ in range(self.config.routing_iterations - 1):
            logits = logits + vectors.transpose(1, 2) @ values
            vectors = (values @ logits.softmax(2).transpose(1, 2)).tanh()
        return vectors.squeeze(2)

    def forward(self, first: Side, second: Side) -> Tensor:
        """Ids and mask of both sides, each (batch, words) -> (batch, labels)"""
        p, h = self.encode(*first), self.encode(*second)  # (batch, d_o)
        logits: Tensor = self.classifier(torch.cat([p, h, (p - h).abs(), p * h], dim=1))
        return logits


@dataclass(frozen=True)
class Batch:
    """The same pairs in both models' forms, with their counts.

    Attributes:
        packed: Arguments of `DSAForNLI`: a pair in a row.
        padded: Arguments of `PaddedDSA`: ids and mask of each side, each (pairs, words).
        labels: (pairs,)
        words: Real words.
        places: Places for words in `padded`.
        operations: Floating point operations of encoding the pairs, as `operations.py` counts them.
        training_operations: Those of a training step.
    """

    packed: dict[str, Tensor]
    padded: tuple[Side, Side]
    labels: Tensor
    words: int
    places: int
    operations: int
    training_operations: int


def draw_pairs(count: int) -> dict[str, list[Any]]:
    """Random training pairs of the sample, none of them twice: columns premise, hypothesis and label."""
    table = parquet.read_table(SAMPLE_FILES["train"])
    order = torch.randperm(table.num_rows, generator=torch.Generator().manual_seed(0))
    columns: dict[str, list[Any]] = table.take(order[:count].numpy()).to_pydict()
    return columns


def make_batches(
    pairs: dict[str, list[Any]], size: int, config: DSAConfig, tokenizer: WordTokenizer
) -> list[Batch]:
    """Cut the pairs into batches."""
    batches = []
    for start in range(0, len(pairs["label"]), size):
        part = {name: column[start : start + size] for name, column in pairs.items()}
        sides = part["premise"], part["hypothesis"]
        packed = dict(tokenizer(*sides, padding=True, return_tensors="pt"))
        first, second = (tokenizer(side, padding=True, return_tensors="pt") for side in sides)
        ids, mask, types = packed["input_ids"], packed["attention_mask"], packed["token_type_ids"]
        is_word, is_second = split_pairs(ids, mask, types, tokenizer.pad_token_id, tokenizer.sep_token_id)
        _, packing = pack(ids, is_word, is_second, deduplicate=True)
        batches.append(
            Batch(
                packed=packed,
                padded=((first["input_ids"], first["attention_mask"]), (second["input_ids"], second["attention_mask"])),
                labels=torch.tensor(part["label"]),
                words=int(is_word.sum()),
                places=first["input_ids"].numel() + second["input_ids"].numel(),
                operations=count_operations(packing.lengths, config),
                training_operations=count_training_operations(packing.lengths, config),
            )
        )
    return batches


def sort_pairs(pairs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The pairs by their number of words, roughly: between spaces."""
    words = [
        len(f"{first} {second}".split()) for first, second in zip(pairs["premise"], pairs["hypothesis"], strict=True)
    ]
    order = sorted(range(len(words)), key=words.__getitem__)
    return {name: [column[row] for row in order] for name, column in pairs.items()}


def check_equal(ours: DSAForNLI, padded: PaddedDSA, batch: Batch) -> float:
    """The largest difference of the two models' logits in evaluation, as a share of the largest logit.

    Raises:
        RuntimeError: It is above `TOLERANCE`, or the models differ in size: the comparison would not be fair.
    """
    sizes = [count_parameters(model) for model in (ours, padded)]
    if sizes[0] != sizes[1]:
        raise RuntimeError(f"The models have {sizes[0]:,} and {sizes[1]:,} trainable parameters: make them equal.")
    ours.eval()
    padded.eval()
    with torch.inference_mode():
        logits: Tensor = ours(**batch.packed).logits  # (pairs, labels)
        difference = float((logits - padded(*batch.padded)).abs().max() / logits.abs().max())
    if not difference <= TOLERANCE:
        raise RuntimeError(f"The models' logits differ by {difference:.1e} of the largest, more than {TOLERANCE:.0e}.")
    return difference


def count_parameters(model: nn.Module) -> int:
    """All that is trained: the word table is frozen."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def encoder(encode: Callable[[Batch], object], bf16: bool = False) -> Callable[[Batch], None]:
    """Sentence vectors of a batch."""

    def run(batch: Batch) -> None:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            encode(batch)

    return run


@dataclass(frozen=True)
class Results:
    """Medians over the batches. Step times in milliseconds, rates by second, microseconds a word."""

    parameters: int
    logits_difference: float
    padding_share: float
    operations_per_word: float
    training_operations_per_word: float
    step_ms: dict[str, float]
    step_ratio: float
    sentences_per_second: dict[str, float]
    words_per_second: dict[str, float]
    encoding_ratio: float
    gflops: dict[str, float]
    product_gflops: dict[str, float]
    product_share: dict[str, float]
    microseconds_per_word: dict[str, dict[str, float]]
    random_to_sorted: dict[str, float]


def rate(amounts: Sequence[float], seconds: Sequence[float]) -> float:
    """Amounts a second, a median."""
    return statistics.median(amount / took for amount, took in zip(amounts, seconds, strict=True))


def measure(config: DSAConfig, batches: Sequence[Batch], in_order: Sequence[Batch], bf16: bool) -> Results:
    """Time both models and the matrix product.

    Args:
        config: Of both.
        batches: Random ones, the first of them to warm up.
        in_order: The pairs of those that are timed, in batches sorted by length.
        bf16: Time our model in bf16 too.
    """
    torch.manual_seed(0)
    ours = DSAForNLI(config)
    with torch.no_grad():
        for name, weight in ours.named_parameters():
            if name.endswith("bias"):  # 0 in a fresh model, which would hide a missing mask from `check_equal`
                weight.normal_(std=0.1)
    padded = PaddedDSA(ours)
    difference = check_equal(ours, padded, batches[0])
    folded = copy.deepcopy(ours)
    folded.fold_embeddings()
    left, right = torch.randn(PRODUCT_SIZE[:2]), torch.randn(PRODUCT_SIZE[1:])

    def our_loss(batch: Batch) -> Tensor:
        loss: Tensor = ours(**batch.packed, labels=batch.labels).loss
        return loss

    def padded_loss(batch: Batch) -> Tensor:
        return F.cross_entropy(padded(*batch.padded), batch.labels)

    def product(_batch: Batch) -> None:
        for _ in range(PRODUCTS):
            torch.mm(left, right)

    def encode(batch: Batch) -> object:
        return ours.dsa(**batch.packed, output_words=False)

    encoders = {
        "ours": encoder(encode),
        "folded": encoder(lambda batch: folded.dsa(**batch.packed, output_words=False)),
        "padded": encoder(lambda batch: [padded.encode(*side) for side in batch.padded]),
        "product": product,
    }
    trainers = {"ours": training_step(ours, our_loss), "padded": training_step(padded, padded_loss), "product": product}
    if bf16:
        encoders["ours, bf16"] = encoder(encode, bf16=True)
        trainers["ours, bf16"] = training_step(ours, our_loss, bf16=True)
    timed = batches[WARM_UP_ROUNDS:]
    pairs_of_batches = list(zip(timed, in_order, strict=True))

    def orders(run: Callable[[Batch], None]) -> dict[str, Callable[[tuple[Batch, Batch]], None]]:
        return {"random": lambda both: run(both[0]), "sorted": lambda both: run(both[1])}

    encoding = alternate(encoders, batches, "Encoding", WARM_UP_ROUNDS)
    encoding_orders = alternate(orders(encoders["ours"]), pairs_of_batches, "Encoding, orders")
    ours.train()
    padded.train()
    training = alternate(trainers, batches, "Training", WARM_UP_ROUNDS)
    training_orders = alternate(orders(trainers["ours"]), pairs_of_batches, "Training, orders")

    step_ms = {name: 1e3 * statistics.median(values) for name, values in training.items() if name != "product"}
    models = [name for name in encoding if name != "product"]
    sentences = {name: rate([2.0 * len(batch.labels) for batch in timed], encoding[name]) for name in models}
    gflops = {
        "encoding": rate([batch.operations / 1e9 for batch in timed], encoding["ours"]),
        "encoding, folded": rate([batch.operations / 1e9 for batch in timed], encoding["folded"]),
        "training": rate([batch.training_operations / 1e9 for batch in timed], training["ours"]),
    }
    of_products = [PRODUCTS * 2 * left.numel() * right.shape[1] / 1e9] * len(timed)
    product_gflops = {
        name: rate(of_products, (training if name == "training" else encoding)["product"]) for name in gflops
    }
    per_word = {
        name: {
            "random": 1e6 / rate([batch.words for batch in timed], seconds["random"]),
            "sorted": 1e6 / rate([batch.words for batch in in_order], seconds["sorted"]),
        }
        for name, seconds in (("encoding", encoding_orders), ("training", training_orders))
    }
    words = sum(batch.words for batch in timed)
    return Results(
        parameters=count_parameters(ours),
        logits_difference=difference,
        padding_share=1 - words / sum(batch.places for batch in timed),
        operations_per_word=sum(batch.operations for batch in timed) / words,
        training_operations_per_word=sum(batch.training_operations for batch in timed) / words,
        step_ms=step_ms,
        step_ratio=step_ms["padded"] / step_ms["ours"],
        sentences_per_second=sentences,
        words_per_second={name: rate([batch.words for batch in timed], encoding[name]) for name in models},
        encoding_ratio=sentences["ours"] / sentences["padded"],
        gflops=gflops,
        product_gflops=product_gflops,
        product_share={name: found / product_gflops[name] for name, found in gflops.items()},
        microseconds_per_word=per_word,
        random_to_sorted={name: found["random"] / found["sorted"] for name, found in per_word.items()},
    )


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table: what was measured, both models, their ratio. bf16 is a column of our model where measured."""
    columns = ["ours", "folded", *(["ours, bf16"] if "ours, bf16" in record["step_ms"] else []), "padded"]
    titles = {"ours": "this package", "folded": "folded", "ours, bf16": "in bf16", "padded": "padded Conv1d"}
    shares = record["product_share"]
    rows: list[tuple[str, Mapping[str, float], str, str]] = [
        ("training step, ms", record["step_ms"], ",.0f", f"{record['step_ratio']:.1f}x (to reach: 3x)"),
        ("encoding, sentences/s", record["sentences_per_second"], ",.0f", f"{record['encoding_ratio']:.1f}x"),
        ("encoding, words/s", record["words_per_second"], ",.0f", f"{record['encoding_ratio']:.1f}x"),
    ]
    product = "x".join(map(str, PRODUCT_SIZE))
    for name, goal in (("encoding", 70), ("training", 50)):
        found = {"ours": record["gflops"][name]}
        share = f"{shares[name]:.0%} (to reach: {goal} %)"
        if name == "encoding":
            found["folded"] = record["gflops"]["encoding, folded"]
            share = f"{shares[name]:.0%}, folded {shares['encoding, folded']:.0%} (to reach: {goal} %)"
        against = f"{record['product_gflops'][name]:.0f} GFLOP/s of a {product} product"
        rows.append((f"{name}, GFLOP/s on real words, against {against}", found, ".0f", share))
    for name in ("encoding", "training"):
        each = record["microseconds_per_word"][name]
        rows.append(
            (
                f"{name}, us a word in random batches, against {each['sorted']:.3g} in batches sorted by length",
                {"ours": each["random"]},
                ".3g",
                f"{record['random_to_sorted'][name] - 1:+.0%} (at most +15 %)",
            )
        )
    lines = [
        f"| | {' | '.join(titles[column] for column in columns)} | ratio |",
        f"|---|{'---:|' * (len(columns) + 1)}",
    ]
    for title, values, form, ratio in rows:
        cells = [format(values[column], form) if column in values else "" for column in columns]
        lines.append(f"| {title} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    """Prepare the batches, measure, print the table."""
    parser = make_parser(__doc__, 30, "timed batches", "3 rounds of 16 pairs")
    add_threads(parser)
    parser.add_argument("--embedding_size", type=int, default=300, help="width of a word vector (default: %(default)s)")
    parser.add_argument("--batch_size", type=int, default=256, help="pairs in a batch (default: %(default)s)")
    arguments = parser.parse_args()
    rounds, size = (3, 16) if arguments.quick else (arguments.rounds, arguments.batch_size)
    if arguments.threads < 1 or arguments.embedding_size < 1 or rounds < 1 or size < 2:
        parser.error("give at least 1 thread, an embedding size of 1, 1 round and 2 pairs in a batch")
    count, available = (rounds + WARM_UP_ROUNDS) * size, parquet.read_metadata(SAMPLE_FILES["train"]).num_rows
    if count > available:
        parser.error(f"the sample has {available:,} pairs: give fewer rounds or smaller batches")

    torch.set_num_threads(arguments.threads)
    pairs = draw_pairs(count)
    words = count_words(pairs["premise"] + pairs["hypothesis"], lowercase=True)
    tokenizer = build_tokenizer(words, lowercase=True)
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "embedding_size": arguments.embedding_size,
        "unknown_init_range": 0.5,  # words as long as GloVe's
        "sentences_per_row": 2,
        "num_labels": 3,
    }
    config = DSAConfig(**settings)
    batches = make_batches(pairs, size, config, tokenizer)
    timed = {name: column[WARM_UP_ROUNDS * size :] for name, column in pairs.items()}
    in_order = make_batches(sort_pairs(timed), size, config, tokenizer)
    capabilities = torch.cpu.get_capabilities()
    bf16 = any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    on = machine()
    results = measure(config, batches, in_order, bf16)

    print(
        f"Single DSA for NLI, words of {arguments.embedding_size} numbers, {results.parameters:,} parameters trained. "
        f"{rounds} random batches of {size} SNLI pairs on {arguments.threads} threads; "
        f"load before: {on['load_before']:.1f}.\n"
        f"{results.padding_share:.0%} of the padded batches is padding. A word takes "
        f"{results.operations_per_word / 1e6:.2f} million operations, in training "
        f"{results.training_operations_per_word / 1e6:.2f} million. The models' logits differ by "
        f"{results.logits_difference:.0e} of the largest.\n"
    )
    record = {
        "embedding_size": arguments.embedding_size,
        "rounds": rounds,
        "batch_size": size,
        "threads": arguments.threads,
        **on,
        **asdict(results),
    }
    print(as_markdown(record))
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)


if __name__ == "__main__":
    main()
