"""Sentences a second from text to vector, against what one would use instead, and accuracy over speed.

    python benchmarks/encode.py --output benchmarks/encode.json

Distinct sentences of SNLI in random order, from the sample that ships with the package, tokenisation included: in bulk
(a list of sentences at once) and one at a time (one call for each). Everyone encodes the same sentences in turn, and
figures are medians over the rounds, so other work on the machine meets all alike. No sentence comes twice.

Single DSA has the paper's sizes, 300 numbers a word vector, and random weights: speed does not depend on them. It runs
as it comes from training, folded (`fold_embeddings`), and as an ONNX file; its vectors must be the same in all three.
The peers are in `lib/peers.py`; packages that are not installed are left out and named. Systems with an NLI accuracy
are those that this repository has trained, with the sizes and the accuracy of their own records in results/ and
model_cards/, folded. The one whose weights ship runs as ONNX files too, in float32 and in int8, whose accuracy is
measured in this run. Peers were not trained here: theirs is that of a classifier on their frozen vectors, from
peer_accuracy.json, which `peer_accuracy.py` writes. encode.png draws accuracy over speed; who has no accuracy is a
line.
"""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from lib.options import make_parser, recorded_options
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import SHIPPED_MODEL
from lib.speeds import read_lists, sentences_per_second
from lib.systems import PEER, SINGLE_DSA, Competitor, peers, single_dsa, trained_as_onnx, trained_systems
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from transformers import AutoTokenizer

INFERSENT_UNITS = 2048
TABLE = Table(
    (
        Column("encoder", "{name}", is_text=True),
        Column("numbers", "{width}"),
        Column("bulk, sentences/s", "{sentences_per_second[bulk]:,.0f}"),
        Column("the quickest single DSA is faster by", "{ratio[bulk]:.3g}x"),
        Column("one at a time, sentences/s", "{sentences_per_second[single]:,.0f}"),
        Column("the quickest single DSA is faster by", "{ratio[single]:.3g}x"),
        Column("SNLI dev accuracy here", "{accuracy[mean]:.1%}"),
        Column("of", "{accuracy[of]}", is_text=True),
    )
)


def measure(competitors: Sequence[Competitor], turns: Mapping[str, Sequence[Sequence[str]]]) -> list[dict[str, Any]]:
    """Sentences a second of each competitor in each of its ways, a median; ratios are to the quickest single DSA."""
    rates: dict[str, dict[str, float | None]] = {competitor.name: {} for competitor in competitors}
    ratios: dict[str, dict[str, float | None]] = {competitor.name: {} for competitor in competitors}
    for way, lists in turns.items():
        encoders = {competitor.name: competitor.encode for competitor in competitors if way in competitor.ways}
        found = sentences_per_second(encoders, way, lists)
        best = max(found[competitor.name] for competitor in competitors if competitor.kind == SINGLE_DSA)
        for competitor in competitors:
            rate = found.get(competitor.name)
            rates[competitor.name][way] = rate
            ratios[competitor.name][way] = best / rate if rate else None
    return [
        {
            "name": competitor.name,
            "kind": competitor.kind,
            "width": int(competitor.encode(turns["bulk"][0][:1]).shape[1]),
            "accuracy": asdict(competitor.accuracy) if competitor.accuracy else None,
            "sentences_per_second": rates[competitor.name],
            "ratio": ratios[competitor.name],
        }
        for competitor in competitors
    ]


def draw(record: Record) -> Figure:
    """Accuracy over sentences a second in bulk; a peer without an accuracy is a line."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    panel: Axes = figure.add_subplot()
    markers = itertools.cycle("osD^vP")
    for result in record.results:
        rate, accuracy, is_peer = result["sentences_per_second"]["bulk"], result["accuracy"], result["kind"] == PEER
        if accuracy:
            mean, seeds = 100 * accuracy["mean"], [100 * share for share in accuracy["seeds"]]
            ends = [[mean - min(seeds)], [max(seeds) - mean]]
            filling, label = ("none", f"{result['name']}, frozen") if is_peer else (None, result["name"])
            panel.errorbar(
                rate, mean, yerr=ends, marker=next(markers), mfc=filling, ms=8, capsize=4, linestyle="none", label=label
            )
    for result in record.results:
        if result["kind"] == PEER and not result["accuracy"]:
            rate = result["sentences_per_second"]["bulk"]
            panel.axvline(rate, color="#D55E00", linestyle="--", label=f"{result['name']}, speed alone")
    figure.legend(loc="outside right upper", title="mean, range of the seeds", fontsize="small", title_fontsize="small")
    panel.set(xscale="log", xlabel="sentences a second, in bulk", ylabel="accuracy on SNLI's dev split, %")
    panel.set_title("Trained on this package's SNLI pairs, or (hollow) a classifier on frozen vectors", fontsize=10)
    panel.grid(alpha=0.3)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Load everyone, measure, keep what was found."""
    quick = "2 rounds of 16 sentences, a BiLSTM of 2 x 64, no ONNX of single DSA, 64 dev pairs"
    parser = make_parser(__doc__, 7, "timed lists of sentences", quick)
    arguments, turns = read_lists(parser, argv)
    sentences = [sentence for lists in turns.values() for part in lists for sentence in part]
    torch.set_num_threads(arguments.threads)
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED_MODEL)
    machine = describe_machine()
    others, missing = peers(tokenizer, 64 if arguments.quick else INFERSENT_UNITS)
    ours = single_dsa(tokenizer, sentences[:8], arguments.threads, with_onnx=not arguments.quick)
    as_onnx = trained_as_onnx(arguments.threads, 64 if arguments.quick else None)
    setup = {
        "tokens_per_sentence": statistics.mean(len(ids) for ids in tokenizer(sentences)["input_ids"]),
        "vocabulary": len(tokenizer),
        "missing": missing,
    }
    results = measure([*ours, *others, *trained_systems(tokenizer), *as_onnx], turns)
    keep(Record(recorded_options(arguments), machine, setup, results), TABLE, arguments.output, draw)


if __name__ == "__main__":
    main()
