"""What an epoch of the Fake News Challenge costs: the gain of encoding a text once that stands in many pairs.

    python benchmarks/stance_epoch.py --output benchmarks/stance_epoch.json
    python benchmarks/stance_epoch.py --data_dir fnc-1 --setting mean-fnc1 dsa-single-fnc1 vsam-fnc1

A training epoch of `run_stance.py` in four ways:

    texts once    every distinct headline and body, forward and backward, in batches of as many words as a grouped
                  batch has: what no epoch can do without
    grouped       training steps on batches that keep the pairs of a body together, as `run_stance.py` makes them
    random        the same on pairs in random order; a text that stands twice in a batch is encoded once there
    every pair    the same on those batches with `deduplicate_sentences` off: every text of every pair is encoded

Rows are put together and padded inside the time that is measured, as in training. A step is forward, backward and
AdamW. Each round is an epoch with an order of its own, so that nothing prepared for one number of words serves again by
chance; the four ways take turns in it, and all figures are medians over the rounds. All batches are run of the first
two ways. Of the others it is an evenly spaced sample, scaled by the words of the epoch's batches and of the sample's:
those of the distinct texts of each batch (or of all), up to the setting's `max_sentence_words`. The words that are
reported are those that reach the encoder, so that `word_dropout` counts too.

With `--data_dir` the pairs are the training split of `run_stance.py`, which has the held-out topics taken out. Without
it they are synthetic, with the counts of FNC-1's whole training file: 1,683 bodies, whose lengths have its median,
mean, 99th percentile and maximum, 1,648 headlines of 13 words, and 49,972 pairs, spread over both about as unevenly.
Word vectors are random.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from measuring import add_threads, alternate, encode_and_go_back, keep, machine, make_parser, training_step
from torch import Tensor, nn
from transformers import DataCollatorWithPadding

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.encoding.encoder import token_ids
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.building import build_model
from modeling_dsa.text.tokenization import WordTokenizer, build_tokenizer, count_words
from modeling_dsa.text.word_vectors import WordVectors
from run_glue_style.run_stance import DataArguments, make_task
from run_glue_style.tasks.distinct_texts import Indices, distinct_texts
from run_glue_style.tasks.stance import LABEL_NAMES
from run_glue_style.training.arguments import parse_arguments
from run_glue_style.training.grouping import GroupedSampler
from run_glue_style.training.text_rows import TextRows, TokenizedTexts

EMBEDDING_SIZE = 100
VOCABULARY = 25_000  # different words of the synthetic texts at most
HEADLINE_WORDS = 13
WAYS = ("texts once", "grouped", "random", "every pair")


@dataclass(frozen=True)
class Size:
    """How much synthetic data there is; all body lengths are divided by `shortening`."""

    bodies: int = 1683
    headlines: int = 1648
    pairs: int = 49_972
    shortening: int = 1


QUICK = Size(bodies=60, headlines=40, pairs=600, shortening=20)


def body_lengths(size: Size) -> Indices:
    """Words of each body, with FNC-1's median 365, mean 443, 99th percentile 1,790 and maximum 5,650. (bodies,)

    They are evenly spaced quantiles of a log-normal distribution whose spread differs between its halves and has a
    longer end.
    """
    normal = statistics.NormalDist()
    deviates = [normal.inv_cdf((place + 0.5) / size.bodies) for place in range(size.bodies)]
    # The spread of the lower half, 1.02, is the one that gives the mean.
    knots = [-4, 0, normal.inv_cdf(0.99), max(deviates)]
    logarithms = [np.log(365) - 4 * 1.02, np.log(365), np.log(1790), np.log(5650)]
    lengths = np.exp(np.interp(deviates, knots, logarithms)) / size.shortening
    found: Indices = lengths.round().clip(min=1).astype(np.int64)
    return found


def synthetic_pairs(size: Size) -> Dataset:
    """Random pairs with the columns `headline`, `body` and `label`; every text stands in one at least."""
    generator = np.random.default_rng(0)
    chances = 1 / np.arange(3, VOCABULARY + 3)  # Zipf's law

    def text(words: int) -> str:
        return " ".join(f"w{word}" for word in generator.choice(VOCABULARY, words, p=chances / chances.sum()))

    def column(texts: Sequence[str], weights: np.ndarray) -> list[str]:
        counts = 1 + generator.multinomial(size.pairs - len(texts), weights / weights.sum())
        return [texts[number] for number in generator.permutation(np.repeat(np.arange(len(texts)), counts))]

    bodies = [text(words) for words in generator.permutation(body_lengths(size))]
    headlines = [text(HEADLINE_WORDS) for _ in range(size.headlines)]
    return Dataset.from_dict(
        {
            # FNC-1 has a median of 21 pairs a body and 26 a headline, a 95th percentile of 87 and of 70.
            "headline": column(headlines, generator.gamma(2, size=size.headlines)),
            "body": column(bodies, generator.exponential(size=size.bodies)),
            "label": generator.integers(len(LABEL_NAMES), size=size.pairs).tolist(),
        }
    )


@dataclass(frozen=True)
class Pass:
    """An epoch in one way.

    Attributes:
        rows: What the batches are made of.
        measured: The batches that are run, as numbers of rows.
        batches: Batches in the whole epoch.
        words: Words that the model reads in it, before `word_dropout`.
        measured_words: Those in the batches that are run.
    """

    rows: TextRows
    measured: Sequence[Indices]
    batches: int
    words: int
    measured_words: int


class Pairs:
    """Training pairs, tokenised, and the epochs over them."""

    def __init__(self, data: Dataset) -> None:
        """Tokenise the pairs: a dataset with the columns `headline`, `body` and `label`."""
        texts = distinct_texts({"": data}, ("headline", "body"))
        words = count_words(texts.texts, lowercase=True)
        vectors = np.random.default_rng(0).normal(scale=0.4, size=(len(words), EMBEDDING_SIZE)).astype(np.float32)
        numbers = texts.indices[""]
        self.vectors = WordVectors(list(words), vectors)
        self.tokenizer: WordTokenizer = build_tokenizer(words, lowercase=True)
        self.tokenized = TokenizedTexts(self.tokenizer, *token_ids(self.tokenizer, texts.texts), 2)
        self.rows = TextRows(self.tokenized, [numbers["headline"], numbers["body"]], data["label"][:])
        self.groups = numbers["body"]  # (pairs,)

    def epoch(self, number: int, batch_size: int, sample: int, limit: int | None) -> dict[str, Pass]:
        """The passes of an epoch, by way.

        Args:
            number: Of the epoch; each has orders of its own.
            batch_size: Rows in a batch.
            sample: How many batches are run in random order.
            limit: Words of a text that the model reads; None reads all.
        """
        ids, lengths = self.tokenized.ids, self.tokenized.lengths
        starts = self.tokenized.ends - lengths
        read = lengths if limit is None else lengths.clip(max=limit)  # (texts,)
        # Texts that differ only in what the tokenizer or the model does not see are one text to the model.
        known: dict[bytes, int] = {}
        twins = np.asarray(
            [
                known.setdefault(ids[start : start + words].tobytes(), text)
                for text, (start, words) in enumerate(zip(starts, read, strict=True))
            ]
        )  # (texts,)

        def words_of(rows: TextRows, batch: Indices, deduplicate: bool) -> int:
            texts = np.concatenate([column[batch] for column in rows.numbers])
            return int(read[np.unique(twins[texts]) if deduplicate else texts].sum())

        def make(rows: TextRows, batches: Sequence[Indices], measured: Sequence[Indices], deduplicate: bool) -> Pass:
            words, measured_words = (
                sum(words_of(rows, batch, deduplicate) for batch in some) for some in (batches, measured)
            )
            return Pass(rows, measured, len(batches), words, measured_words)

        sampler = GroupedSampler(self.groups.tolist(), seed=0)
        sampler.set_epoch(number)
        grouped = _cut(np.asarray(list(sampler)), batch_size)
        generator = np.random.default_rng(number)
        random = _cut(generator.permutation(len(self.rows)), batch_size)
        chosen = [random[place] for place in np.unique(np.linspace(0, len(random) - 1, sample).round().astype(int))]
        passes = {
            "grouped": make(self.rows, grouped, grouped, True),
            "random": make(self.rows, random, chosen, True),
            "every pair": make(self.rows, random, chosen, False),
        }
        texts, batches = self._texts_once(generator, read, passes["grouped"].words / len(grouped))
        return {"texts once": make(texts, batches, batches, True), **passes}

    def _texts_once(
        self, generator: np.random.Generator, read: Indices, words: float
    ) -> tuple[TextRows, list[Indices]]:
        """Each distinct text in one row, two to a row, and batches of about so many words."""
        order = generator.permutation(len(read))
        order = np.append(order, order[-1:]) if len(order) % 2 else order  # the model encodes a copy once
        columns = [order[0::2], order[1::2]]
        labels = generator.integers(len(LABEL_NAMES), size=len(columns[0])).tolist()
        ends = (read[columns[0]] + read[columns[1]]).cumsum()  # (rows,)
        cuts = np.flatnonzero(np.diff((ends // words).astype(int))) + 1
        return TextRows(self.tokenized, columns, labels), np.split(np.arange(len(labels)), cuts)


def _cut(order: Indices, size: int) -> list[Indices]:
    """Batches of so many rows. A last one of a single row is dropped, as in training: batch normalisation needs two."""
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return batches[:-1] if len(batches[-1]) == 1 else batches


def measure(pairs: Pairs, setting: str, rounds: int, sample: int, batch_size: int | None) -> dict[str, Any]:
    """Figures of one setting: medians of each way, and of the ratios between ways in each round.

    Args:
        pairs: The training pairs.
        setting: Name of a setting of pairs.
        rounds: Epochs.
        sample: Batches that are run of an epoch in random order.
        batch_size: Rows in a batch; None takes the setting's recipe.
    """
    _, recipe, _, overrides = parse_arguments([], "", ["--setting", setting])
    size: int = batch_size or recipe.per_device_train_batch_size
    options = {"sentences_per_row": 2, "num_labels": len(LABEL_NAMES), **overrides}
    collate = DataCollatorWithPadding(pairs.tokenizer)

    def model(deduplicate: bool) -> DSAForSequenceClassification:
        config = DSAConfig.from_pretrained(setting_folder(setting), **options, deduplicate_sentences=deduplicate)
        return build_model(DSAForSequenceClassification, config, pairs.tokenizer, pairs.vectors, seed=0)

    def loss_of(model: DSAForSequenceClassification) -> Callable[[Mapping[str, Tensor]], Tensor]:
        def loss(batch: Mapping[str, Tensor]) -> Tensor:
            value: Tensor = model(**batch).loss
            return value

        return loss

    once, every = model(deduplicate=True), model(deduplicate=False)
    once.train()
    every.train()
    step = training_step(once, loss_of(once))
    steps: dict[str, Callable[[Mapping[str, Tensor]], None]] = {
        "texts once": lambda batch: encode_and_go_back(once.dsa, batch),
        "grouped": step,
        "random": step,
        "every pair": training_step(every, loss_of(every)),
    }

    reached = 0  # words that came to an encoder

    def count(_module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        nonlocal reached
        reached += len(arguments[0])

    for one in (once, every):
        one.dsa.encoder.register_forward_pre_hook(count)
    encoded: dict[str, list[int]] = {way: [] for way in WAYS}

    def competitor(way: str) -> Callable[[dict[str, Pass]], None]:
        def run(epoch: dict[str, Pass]) -> None:
            before = reached
            for batch in epoch[way].measured:
                steps[way](collate([epoch[way].rows[row] for row in batch.tolist()]))
            encoded[way].append(reached - before)

        return run

    epochs = [pairs.epoch(number, size, sample, once.config.max_sentence_words) for number in range(rounds)]
    warm_up = epochs[-1]["grouped"]
    steps["grouped"](collate([warm_up.rows[row] for row in warm_up.measured[0].tolist()]))
    measured = alternate({way: competitor(way) for way in WAYS}, epochs, setting)
    scales = {way: [epoch[way].words / epoch[way].measured_words for epoch in epochs] for way in WAYS}
    seconds, words = (
        {way: [figure * scale for figure, scale in zip(figures[way], scales[way], strict=True)] for way in WAYS}
        for figures in (measured, encoded)
    )

    def ratio(figures: Mapping[str, Sequence[float]], way: str, to: str) -> float:
        return statistics.median(one / other for one, other in zip(figures[way], figures[to], strict=True))

    return {
        "batch_size": size,
        "max_sentence_words": once.config.max_sentence_words,
        "parameters": once.num_parameters(only_trainable=True),
        "ways": {
            way: {
                "seconds": statistics.median(seconds[way]),
                "fastest": min(seconds[way]),
                "slowest": max(seconds[way]),
                "words": statistics.median(words[way]),
                "batches": epochs[0][way].batches,
                "measured_batches": len(epochs[0][way].measured),
            }
            for way in WAYS
        },
        **{
            name: {"seconds": ratio(seconds, way, to), "words": ratio(words, way, to)}
            for name, way, to in (
                ("grouped_to_texts_once", "grouped", "texts once"),
                ("every_pair_to_grouped", "every pair", "grouped"),
            )
        },
    }


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table, two lines for each setting: time and words of an epoch in each way."""
    lines = [
        f"| setting | an epoch's | {' | '.join(WAYS)} | grouped / texts once | every pair / grouped |",
        "|---|---|" + "---:|" * (len(WAYS) + 2),
    ]
    for setting, result in record["settings"].items():
        for name, title, scale in (("seconds", "seconds", 1), ("words", "million words", 1e6)):
            cells = [f"{result['ways'][way][name] / scale:,.3g}" for way in WAYS]
            cells += [f"{result[key][name]:,.1f}x" for key in ("grouped_to_texts_once", "every_pair_to_grouped")]
            limit = result["max_sentence_words"]
            read = f", first {limit:,} words" if limit else ""
            lines.append(f"| {setting}{read} | {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Make the pairs, measure each setting, print the table."""
    parser = make_parser(__doc__, 3, "epochs, each in the four ways", "2 rounds of 600 short synthetic pairs")
    add_threads(parser)
    parser.add_argument(
        "--setting", nargs="+", default=["dsa-single-fnc1"], help="settings of pairs (default: dsa-single-fnc1)"
    )
    parser.add_argument("--data_dir", type=Path, help="folder of FNC-1's four files (default: synthetic texts)")
    parser.add_argument(
        "--sample", type=int, default=20, help="batches run of an epoch in random order (default: %(default)s)"
    )
    arguments = parser.parse_args()
    rounds, sample = (2, 3) if arguments.quick else (arguments.rounds, arguments.sample)
    if arguments.threads < 1 or rounds < 1 or sample < 1:
        parser.error("give at least 1 thread, 1 round and a sample of 1 batch")
    torch.set_num_threads(arguments.threads)
    on = machine()
    real = arguments.data_dir is not None and not arguments.quick
    try:
        for setting in arguments.setting:
            setting_folder(setting)  # a mistake is found before the first hour
        if real:
            data = make_task(DataArguments(data_dir=arguments.data_dir)).load()["train"]
        else:
            data = synthetic_pairs(QUICK if arguments.quick else Size())
    except (ValueError, OSError) as error:
        parser.error(str(error))
    pairs = Pairs(data)
    bodies, headlines = (len(np.unique(pairs.rows.numbers[column])) for column in (1, 0))
    settings = {
        setting: measure(pairs, setting, rounds, sample, 64 if arguments.quick else None)
        for setting in arguments.setting
    }
    record = {
        "data": "training split of run_stance.py" if real else "synthetic",
        "pairs": len(data),
        "bodies": bodies,
        "headlines": headlines,
        "embedding_size": EMBEDDING_SIZE,
        "rounds": rounds,
        "threads": arguments.threads,
        **on,
        "settings": settings,
    }
    print(f"{len(data):,} {record['data']} pairs of {bodies:,} bodies and {headlines:,} headlines; {rounds} epochs.\n")
    print(as_markdown(record))
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)


if __name__ == "__main__":
    main()
