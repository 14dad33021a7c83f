"""What an epoch of the Fake News Challenge costs: the gain of encoding a text once that stands in many pairs.

    python benchmarks/stance_epoch.py --output benchmarks/stance_epoch.json
    python benchmarks/stance_epoch.py --data_dir fnc-1 --setting mean-fnc1 dsa-single-fnc1 vsam-fnc1

A training epoch of `run_stance.py` in five ways:

    texts once    every distinct headline and body, forward and backward, in batches of as many tokens as a
                  grouped batch has: what no epoch can do without
    pairs alone   every pair's classifier, forward, backward and AdamW, on vectors that are there: nor without that
    grouped       training steps on batches that keep the pairs of a body together, as `run_stance.py` makes them
    random        the same on pairs in random order; a text that stands twice in a batch is encoded once there
    every pair    the same on those batches with `deduplicate_sentences` off: every text of every pair is encoded

Examples are put together and padded inside the time that is measured, as in training. A step is forward, backward and
AdamW. Each round is an epoch with an order of its own, so that nothing prepared for one number of tokens serves again
by chance; the five ways take turns in it, and all figures are medians over the rounds. All batches are run of the first
three ways. Of the others it is an evenly spaced sample, scaled by the tokens of the epoch's batches and of its own:
those of the distinct texts of each batch (or of all), up to the setting's `max_sentence_tokens`. The tokens that are
reported are those that reach the encoder, so that `token_dropout` counts too.

With `--data_dir` the pairs are the training split of `run_stance.py`, which has the held-out topics taken out. Without
it they are synthetic, with the counts of FNC-1's whole training file: 1,683 bodies, whose lengths have its median,
mean, 99th percentile and maximum, 1,648 headlines of 13 words, and 49,972 pairs, spread over both about as unevenly.
Word vectors are random.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from lib.measuring import alternate, count_parameters, encode_and_backpropagate, loss_of, training_step
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.records import Column, Figures, Record, Table, describe_machine, keep
from lib.stance_pairs import EMBEDDING_SIZE, QUICK, WAYS, Pass, Size, StancePairs, synthetic_pairs
from torch import Tensor, nn

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.command.command_line import whole_number
from modeling_dsa.modeling_dsa import DSAModelOutput
from modeling_dsa.overlap_dsa import TokenOverlap
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.building import build_model
from run_glue_style.run_stance import DataArguments, make_task
from run_glue_style.tasks.stance import CLASS_NAMES
from run_glue_style.training.arguments import parse_arguments
from run_glue_style.training.training_batches import PaddingCollator

QUICK_BATCH = 64

Passes: TypeAlias = dict[str, Pass]  # of an epoch, by way


def rows(record: Record) -> Iterable[Figures]:
    """What the settings read at most stands beside their names."""
    for result in record.results:
        limit = result["max_sentence_tokens"]
        read = f", first {limit:,} tokens" if limit else ""
        yield {**result, "title": f"{result['setting']}{read}", "million_tokens": result["tokens"] / 1e6}


TABLE = Table(
    (
        Column("setting", "{title}", is_text=True),
        Column("epoch", "{way}", is_text=True),
        Column("seconds", "{seconds:,.3g}"),
        Column("of a grouped epoch's", "{seconds_to_grouped:,.3g}x"),
        Column("million tokens", "{million_tokens:,.3g}"),
        Column("of a grouped epoch's", "{tokens_to_grouped:,.3g}x"),
    ),
    rows=rows,
)


class Setting:
    """The models of a setting and what an epoch does with them, in each way."""

    def __init__(self, name: str, pairs: StancePairs, batch_size: int | None) -> None:
        """Build the models.

        Args:
            name: Of a setting of pairs.
            pairs: The training pairs.
            batch_size: Pairs in a batch; None takes the setting's recipe.
        """
        _, recipe, _, overrides = parse_arguments([], "", ["--setting", name])
        self.name, self.pairs = name, pairs
        self.batch_size: int = batch_size or recipe.per_device_train_batch_size
        self.once = self._model({**overrides, "deduplicate_sentences": True})
        self.encoded: dict[str, list[int]] = {way: [] for way in WAYS}
        self._collate = PaddingCollator(pairs.tokenizer.pad_token_id)
        self._reached = 0  # tokens that came to an encoder
        every = self._model({**overrides, "deduplicate_sentences": False})
        step = training_step(self.once, loss_of(self.once))
        self._steps: dict[str, Callable[[Mapping[str, Tensor]], None]] = {
            "texts once": lambda batch: encode_and_backpropagate(self.once.dsa, batch),
            "pairs alone": self._head_step(),
            "grouped": step,
            "random": step,
            "every pair": training_step(every, loss_of(every)),
        }

    def _model(self, options: dict[str, Any]) -> DSAForSequenceClassification:
        options = {"sentences_per_example": 2, "num_labels": len(CLASS_NAMES), **options}
        config = DSAConfig.from_pretrained(setting_folder(self.name), **options)
        vectors = self.pairs.vectors
        model = build_model(DSAForSequenceClassification, config, self.pairs.tokenizer, vectors, seed=0)
        model.train()

        def count(_module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
            self._reached += len(arguments[0])

        model.dsa.encoder.register_forward_pre_hook(count)
        return model

    def _head_step(self) -> Callable[[Mapping[str, Tensor]], None]:
        """A training step of the head alone on the labels of a batch; what its vectors are does not matter."""
        model = self.once
        head = nn.ModuleList([module for module in (model.pair_features, model.classifier) if module is not None])
        is_trained = any(weight.requires_grad for weight in model.dsa.parameters())
        vectors = torch.randn(2, self.batch_size, model.config.sentence_embedding_size)
        shared = torch.rand(self.batch_size, TokenOverlap.size) if model.config.compares_tokens else None

        def loss(batch: Mapping[str, Tensor]) -> Tensor:
            labels = batch["labels"]
            first, second = (part[: len(labels)].detach().requires_grad_(is_trained) for part in vectors)
            outputs = DSAModelOutput(pooler_output=first, second_pooler_output=second)
            overlap = None if shared is None else shared[: len(labels)]
            return F.cross_entropy(model.sampled_logits(outputs, overlap)[0], labels)

        return training_step(head, loss)

    def step(self, way: str, epoch: Passes, batch: Sequence[int]) -> None:
        """Put a batch together and do with it what is done in this way."""
        examples = epoch[way].examples
        if way == "pairs alone":
            self._steps[way]({"labels": torch.from_numpy(examples.labels[np.asarray(batch)])})
        else:
            self._steps[way](self._collate(examples.__getitems__(batch)))

    def competitor(self, way: str) -> Callable[[Passes], None]:
        """Runs the measured batches of an epoch, and keeps how many tokens were encoded."""

        def run(epoch: Passes) -> None:
            before = self._reached
            for batch in epoch[way].measured:
                self.step(way, epoch, batch.tolist())
            self.encoded[way].append(self._reached - before)

        return run


def measure(setting: Setting, rounds: int, sample: int) -> list[dict[str, Any]]:
    """Figures of one setting: medians of each way, and of its ratio to grouped batches in each round.

    Args:
        setting: Its models.
        rounds: Epochs.
        sample: Batches that are run of an epoch in random order.
    """
    limit = setting.once.config.max_sentence_tokens
    epochs = [setting.pairs.epoch(number, setting.batch_size, sample, limit) for number in range(rounds)]
    setting.step("grouped", epochs[-1], epochs[-1]["grouped"].measured[0].tolist())  # to warm up
    measured = alternate({way: setting.competitor(way) for way in WAYS}, epochs, setting.name)
    scales = {way: [epoch[way].tokens / epoch[way].measured_tokens for epoch in epochs] for way in WAYS}
    seconds, tokens = (
        {way: [figure * scale for figure, scale in zip(figures[way], scales[way], strict=True)] for way in WAYS}
        for figures in (measured, setting.encoded)
    )

    def to_grouped(figures: Mapping[str, Sequence[float]], way: str) -> float:
        return statistics.median(one / other for one, other in zip(figures[way], figures["grouped"], strict=True))

    return [
        {
            "setting": setting.name,
            "way": way,
            "batch_size": setting.batch_size,
            "max_sentence_tokens": limit,
            "parameters": count_parameters(setting.once),
            "seconds": statistics.median(seconds[way]),
            "fastest": min(seconds[way]),
            "slowest": max(seconds[way]),
            "seconds_to_grouped": to_grouped(seconds, way),
            "tokens": statistics.median(tokens[way]),
            "tokens_to_grouped": to_grouped(tokens, way),
            "batches": epochs[0][way].batches,
            "measured_batches": len(epochs[0][way].measured),
        }
        for way in WAYS
    ]


def load(data_dir: Path | None, quick: bool) -> Dataset:
    """The training pairs: those of the competition's files, or synthetic ones."""
    if data_dir is not None and not quick:
        data: Dataset = make_task(DataArguments(data_dir=data_dir)).load()["train"]
        return data
    return synthetic_pairs(QUICK if quick else Size())


def main(argv: Sequence[str] | None = None) -> None:
    """Make the pairs, measure each setting, keep what was found."""
    parser = make_parser(__doc__, 3, "epochs, each in the five ways", "2 rounds of 600 short synthetic pairs")
    parser.add_argument(
        "--setting", nargs="+", default=["dsa-single-fnc1"], help="settings of pairs (default: dsa-single-fnc1)"
    )
    parser.add_argument("--data_dir", type=Path, help="folder of FNC-1's four files (default: synthetic texts)")
    parser.add_argument(
        "--sample",
        type=whole_number(1),
        default=20,
        help="batches of an epoch in random order (default: %(default)s)",
    )
    arguments = parse(parser, argv, {"rounds": 2, "sample": 3, "data_dir": None})
    torch.set_num_threads(arguments.threads)
    machine = describe_machine()
    with reports_mistakes(parser):
        for name in arguments.setting:
            setting_folder(name)  # a mistake is found before the first hour
        data = load(arguments.data_dir, arguments.quick)
    pairs = StancePairs(data)
    headlines, bodies = (len(np.unique(column)) for column in pairs.texts)
    setup = {
        "data": "training split of run_stance.py" if arguments.data_dir else "synthetic",
        "pairs": len(data),
        "bodies": bodies,
        "headlines": headlines,
        "embedding_size": EMBEDDING_SIZE,
    }
    results = []
    for name in arguments.setting:
        setting = Setting(name, pairs, QUICK_BATCH if arguments.quick else None)
        results += measure(setting, arguments.rounds, arguments.sample)
    keep(Record(recorded_options(arguments, "data_dir"), machine, setup, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
