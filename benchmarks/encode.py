"""Sentences a second from text to vector, against what one would use instead, and accuracy over speed.

    python benchmarks/encode.py --output benchmarks/encode.json

Distinct sentences of SNLI in random order, from the sample that ships with the package, tokenisation included: in bulk
(a list of sentences at once) and one at a time (one call for each). Everyone encodes the same sentences in turn, and
figures are medians over the rounds, so other work on the machine meets all alike. No sentence comes twice.

Single DSA has the paper's sizes, 300 numbers a word, and random weights: speed does not depend on them. It runs as it
comes from training, folded (`fold_embeddings`), and as an ONNX file; its vectors must be the same in all three. The
peers are in `peers.py`; packages that are not installed are left out and named. Systems with an NLI accuracy are those
that this repository has trained, with the sizes and the accuracy of their own records in results/ and model_cards/,
folded. The one whose weights ship runs as ONNX files too, in float32 and in int8, whose accuracy is measured in this
run. Peers were not trained here: theirs is that of a classifier on their frozen vectors, from peer_accuracy.json, which
`peer_accuracy.py` writes. encode.png draws accuracy over speed; who has no accuracy is a line.
"""

import argparse
import functools
import itertools
import json
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as parquet
import torch
from matplotlib.figure import Figure
from measuring import add_threads, alternate, keep, machine, make_parser
from peers import BiLSTMMax, Encode, in_padded_batches, installed_packages, random_table
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.onnx.export import export_onnx
from modeling_dsa.onnx.session import FILE, QUANTIZED_FILE, OnnxModel
from run_glue_style.sample import SAMPLE_FILES

ROOT = Path(__file__).parents[1]
TRAINED = ROOT / "model_cards" / "dsa-snli"
RESULTS = ROOT / "results" / "snli"
FROZEN = ROOT / "benchmarks" / "peer_accuracy.json"
TRAINED_HERE, PEER = "trained here", "peer"
INT8, INT8_TARGET = " int8", 1.5
PLAIN, FOLDED, ONNX = "single DSA", "single DSA, folded", "single DSA, ONNX"
TOLERANCE = 1e-5
WARM_UP_ROUNDS = 1
INFERSENT_UNITS, INFERSENT_BATCH = 2048, 64
# What single DSA is to reach against a peer: bulk, and one at a time.
TARGETS = {"all-MiniLM-L6-v2": {"bulk": 10, "single": 5}, "BiLSTM-max": {"bulk": 15}}


@dataclass(frozen=True)
class Competitor:
    """An encoder and what is known of it.

    Attributes:
        name: In the table.
        encode: Sentences to vectors.
        kind: "single DSA", "trained here" or "peer".
        ways: Of "bulk" and "single", those in which it is measured.
        accuracy: Of SNLI's dev split: one for each seed. A peer's is that of a classifier on its frozen vectors.
        source: The file or folder that says so.
    """

    name: str
    encode: Encode
    kind: str
    ways: tuple[str, ...] = ("bulk", "single")
    accuracy: tuple[float, ...] = ()
    source: str | None = None


def draw_sentences(count: int) -> list[str]:
    """Distinct sentences of the sample's training pairs, in random order."""
    table = parquet.read_table(SAMPLE_FILES["train"], columns=["premise", "hypothesis"]).to_pydict()
    sentences = list(dict.fromkeys(table["premise"] + table["hypothesis"]))
    order = torch.randperm(len(sentences), generator=torch.Generator().manual_seed(0))
    return [sentences[place] for place in order[:count].tolist()]


def encoder_of(config: DSAConfig, tokenizer: PreTrainedTokenizerBase, *, fold: bool) -> SentenceEncoder:
    """A model with random weights and the tokenizer's words."""
    config.vocab_size, config.unknown_init_range = len(tokenizer), 0.5  # words as long as GloVe's
    torch.manual_seed(0)
    model = DSAModel(config).eval()
    if fold:
        model.fold_embeddings()
    return SentenceEncoder(model, tokenizer)


def single_dsa(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], threads: int, *, with_onnx: bool
) -> list[Competitor]:
    """Single DSA in its forms.

    Raises:
        RuntimeError: They do not give the same vectors.
    """
    plain, folded = (encoder_of(DSAConfig(), tokenizer, fold=fold) for fold in (False, True))
    forms: dict[str, Encode] = {PLAIN: plain.encode, FOLDED: folded.encode}
    if with_onnx:
        with tempfile.TemporaryDirectory() as folder:
            export_onnx(cast(DSAModel, plain.model), folder)
            tokenizer.save_pretrained(folder)
            forms[ONNX] = OnnxModel(Path(folder) / FILE, Path(folder) / "tokenizer.json", threads=threads).encode
    expected = plain.encode(sentences)
    for name, encode in forms.items():
        difference = float(np.abs(encode(sentences) - expected).max())
        if not difference <= TOLERANCE:
            raise RuntimeError(f"The vectors of {name} differ by {difference:.1e}, more than {TOLERANCE:.0e}.")
    return [Competitor(name, encode, PLAIN) for name, encode in forms.items()]


def trained_systems(tokenizer: PreTrainedTokenizerBase) -> list[Competitor]:
    """The systems with a measured NLI accuracy: with the sizes of their records or, where they ship, their weights."""
    systems = []
    for folder in sorted(path.parent for path in RESULTS.glob("*/seed-0.json")):
        records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("seed-*.json"))]
        config = DSAConfig(**records[0]["model"])
        systems.append(trained_system(folder, encoder_of(config, tokenizer, fold=True), records))
    encoder = SentenceEncoder.from_pretrained(TRAINED, device="cpu")
    encoder.model.eval().fold_embeddings()
    record = json.loads((TRAINED / "all_results.json").read_text(encoding="utf-8"))
    return [*systems, trained_system(TRAINED, encoder, [record])]


def trained_as_onnx(threads: int, pairs: int | None) -> list[Competitor]:
    """The system whose weights ship, as its two ONNX files, and their accuracies on the first dev pairs (None: all)."""
    validation = parquet.read_table(SAMPLE_FILES["validation"]).slice(0, pairs).to_pydict()
    setting = json.loads((TRAINED / "all_results.json").read_text(encoding="utf-8"))["setting"]
    competitors = []
    with tempfile.TemporaryDirectory() as folder:
        for file in export_onnx(TRAINED, folder, quantize=True):
            model = OnnxModel(file, TRAINED / "tokenizer.json", threads=threads)
            answers = model.classify(list(zip(validation["premise"], validation["hypothesis"], strict=True)))
            right = [
                model.labels.index(answer["label"]) == label
                for answer, label in zip(answers, validation["label"], strict=True)
            ]
            name = f"{setting}, ONNX" + (INT8 if file.name == QUANTIZED_FILE else "")
            source = f"{TRAINED.relative_to(ROOT).as_posix()}, as ONNX"
            competitors.append(
                Competitor(name, model.encode, TRAINED_HERE, accuracy=(statistics.mean(right),), source=source)
            )
    return competitors


def trained_system(folder: Path, encoder: SentenceEncoder, records: Sequence[Mapping[str, Any]]) -> Competitor:
    """A system and the accuracies of its records."""
    accuracy = tuple(float(record["metrics"]["validation"]["accuracy"]) for record in records)
    source = folder.relative_to(ROOT).as_posix()
    return Competitor(records[0]["setting"], encoder.encode, TRAINED_HERE, ("bulk",), accuracy, source)


def peers(tokenizer: PreTrainedTokenizerBase, units: int) -> tuple[list[Competitor], dict[str, str]]:
    """The peers, and what is to be installed for those that are absent."""
    packages, missing = installed_packages()
    table = random_table(len(tokenizer), 300)
    bilstm = in_padded_batches(BiLSTMMax(table, units), tokenizer, INFERSENT_BATCH)
    words = DSAConfig(encoder="none", pooling="mean")
    mean = encoder_of(words, tokenizer, fold=False).encode
    found = {**packages, f"BiLSTM-max {2 * units}D": bilstm, "mean of GloVe": mean}
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))["accuracies"] if FROZEN.is_file() else {}
    source = FROZEN.relative_to(ROOT).as_posix()
    return [
        Competitor(name, encode, PEER, accuracy=tuple(frozen.get(name, ())), source=source if name in frozen else None)
        for name, encode in found.items()
    ], missing


def one_at_a_time(encode: Encode, sentences: Sequence[str]) -> None:
    """A call for each sentence."""
    for sentence in sentences:
        encode([sentence])


def measure(competitors: Sequence[Competitor], turns: Mapping[str, Sequence[Sequence[str]]]) -> list[dict[str, Any]]:
    """Sentences a second of each competitor in each of its ways, a median."""
    rates: dict[str, dict[str, float]] = {competitor.name: {} for competitor in competitors}
    for way, sentences in turns.items():
        runs: dict[str, Callable[[Sequence[str]], object]] = {
            competitor.name: competitor.encode if way == "bulk" else functools.partial(one_at_a_time, competitor.encode)
            for competitor in competitors
            if way in competitor.ways
        }
        seconds = alternate(runs, sentences, f"Encoding, {way}", WARM_UP_ROUNDS)
        for name, taken in seconds.items():
            rates[name][way] = len(sentences[0]) / statistics.median(taken)
    results = []
    for competitor in competitors:
        results.append(
            {
                "name": competitor.name,
                "kind": competitor.kind,
                "width": int(competitor.encode(turns["bulk"][0][:1]).shape[1]),
                "accuracy": competitor.accuracy,
                "source": competitor.source,
                "sentences_per_second": rates[competitor.name],
            }
        )
    return results


def fastest(results: Sequence[Mapping[str, Any]], way: str) -> Mapping[str, Any]:
    """The quickest form of single DSA in this way."""
    forms = [result for result in results if result["kind"] == PLAIN]
    return max(forms, key=lambda result: float(result["sentences_per_second"][way]))


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table: who, how fast, and how many times as fast the quickest form of single DSA is."""
    lines = [
        "| encoder | numbers | bulk, sentences/s | single DSA is faster by | one at a time, sentences/s "
        "| single DSA is faster by | SNLI dev accuracy here |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    in_bulk = {result["name"]: result["sentences_per_second"]["bulk"] for result in record["results"]}
    for result in record["results"]:
        name = result["name"]
        if name.endswith(INT8):
            ratio = in_bulk[name] / in_bulk[name.removesuffix(INT8)]
            name += f" ({ratio:.2f}x its float32 file in bulk; to reach: {INT8_TARGET}x)"
        cells = [name, str(result["width"])]
        for way in ("bulk", "single"):
            rate = result["sentences_per_second"].get(way)
            best = fastest(record["results"], way)["sentences_per_second"][way]
            target = next(
                (
                    f" (to reach: {goals[way]}x)"
                    for name, goals in TARGETS.items()
                    if result["name"].startswith(name) and way in goals
                ),
                "",
            )
            cells += (
                ["", ""]
                if rate is None
                else [f"{rate:,.0f}", f"{best / rate:,.{0 if best >= 10 * rate else 2}f}x{target}"]
            )
        accuracy = result["accuracy"]
        how = ", frozen vectors" if result["kind"] == PEER else ""
        cells.append(f"{statistics.mean(accuracy):.1%}{how}" if accuracy else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draw accuracy over sentences a second in bulk as a PNG; a peer without an accuracy is a line."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    panel = figure.add_subplot()
    drawn = [result for result in record["results"] if result["accuracy"]]
    for result, marker in zip(drawn, itertools.cycle("osD^vP"), strict=False):
        percent = [100 * share for share in result["accuracy"]]
        mean = statistics.mean(percent)
        ends = [[mean - min(percent)], [max(percent) - mean]]
        rate = result["sentences_per_second"]["bulk"]
        filling, label = (None, result["name"]) if result["kind"] != PEER else ("none", f"{result['name']}, frozen")
        panel.errorbar(
            rate, mean, yerr=ends, marker=marker, mfc=filling, ms=8, capsize=4, linestyle="none", label=label
        )
    for result in record["results"]:
        if result["kind"] == PEER and not result["accuracy"]:
            rate = result["sentences_per_second"]["bulk"]
            panel.axvline(rate, color="#D55E00", linestyle="--", label=f"{result['name']}, speed alone")
    figure.legend(loc="outside right upper", title="mean, range of the seeds", fontsize="small", title_fontsize="small")
    panel.set(xscale="log", xlabel="sentences a second, in bulk", ylabel="accuracy on SNLI's dev split, %")
    panel.set_title("Trained on this package's SNLI pairs, or (hollow) a classifier on frozen vectors", fontsize=10)
    panel.grid(alpha=0.3)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def main() -> None:
    """Load everyone, measure, print the table."""
    parser = make_parser(
        __doc__,
        7,
        "timed lists of sentences",
        "2 rounds of 16 sentences, a BiLSTM of 2 x 64, no ONNX of single DSA, 64 dev pairs",
    )
    add_threads(parser)
    parser.add_argument("--bulk", type=int, default=512, help="sentences of a list (default: %(default)s)")
    parser.add_argument("--single", type=int, default=20, help="one by one in a round (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments = argparse.Namespace(**{**vars(arguments), "rounds": 2, "bulk": 16, "single": 2})
    rounds = arguments.rounds + WARM_UP_ROUNDS
    if min(arguments.threads, arguments.rounds, arguments.bulk, arguments.single) < 1:
        parser.error("give at least 1 thread, 1 round and 1 sentence")
    sentences = draw_sentences(rounds * (arguments.bulk + arguments.single))
    if len(sentences) < rounds * (arguments.bulk + arguments.single):
        parser.error(f"the sample has {len(sentences):,} sentences: give fewer rounds or shorter lists")

    torch.set_num_threads(arguments.threads)
    tokenizer = AutoTokenizer.from_pretrained(TRAINED)
    in_bulk = rounds * arguments.bulk
    turns = {
        "bulk": [sentences[start : start + arguments.bulk] for start in range(0, in_bulk, arguments.bulk)],
        "single": [
            sentences[start : start + arguments.single] for start in range(in_bulk, len(sentences), arguments.single)
        ],
    }
    on = machine()
    others, missing = peers(tokenizer, 64 if arguments.quick else INFERSENT_UNITS)
    ours = single_dsa(tokenizer, sentences[:8], arguments.threads, with_onnx=not arguments.quick)
    as_onnx = trained_as_onnx(arguments.threads, 64 if arguments.quick else None)
    competitors = [*ours, *others, *trained_systems(tokenizer), *as_onnx]
    record = {
        "rounds": arguments.rounds,
        "sentences_in_bulk": arguments.bulk,
        "sentences_one_at_a_time": arguments.single,
        "words_per_sentence": statistics.mean(len(row) for row in tokenizer(sentences)["input_ids"]),
        "vocabulary": len(tokenizer),
        "threads": arguments.threads,
        **on,
        "missing": missing,
        "results": measure(competitors, turns),
    }
    print(
        f"{arguments.rounds} rounds of {arguments.bulk} SNLI sentences in bulk and {arguments.single} one at a time, "
        f"{record['words_per_sentence']:.1f} words each, on {arguments.threads} threads; "
        f"load before: {on['load_before']:.1f}."
    )
    for name, command in missing.items():
        print(f"{name} is not installed: {command}")
    print(f"\n{as_markdown(record)}")
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)
        draw(record, arguments.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
