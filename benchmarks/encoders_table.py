"""What one would encode sentences with: accuracy of the vectors, and sentences a second, in one run.

    python benchmarks/encoders_table.py --similarity stsb_dev.parquet sick_train.parquet --probe sst2_train.jsonl \
        sst2_dev.jsonl --output benchmarks/encoders_table.json

Accuracy is that of `dsa evaluate`: Spearman's correlation of cosines with human scores for each file of --similarity,
and accuracy of logistic regression on frozen vectors, by SentEval's protocol, for each --probe. Speed is the whole way
from text to vector, on distinct sentences of SNLI in random order: in bulk (a list at once) and one at a time (a call
for each). Everyone encodes the same sentences in turn; figures are medians over the rounds.

Models of this package run in torch, folded as `dsa encode` folds them, and as their ONNX files in float32 and int8;
MiniLM as its users run it, through sentence-transformers, and in its quickest forms: ONNX in float32 and in int8 and
OpenVINO, with this package's batching in batches of the best size. model2vec runs on the word table of the first
--model, as its weights come from the Hub alone: a table of the same size. The mean of GloVe is that of --vectors.
Packages that are not installed are left out and named. The line in the picture joins those that no other one surpasses
in both.
"""

import importlib.util
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from lib.minilm_folder import MINILM, minilm_folder
from lib.options import make_parser, recorded_options, reports_mistakes
from lib.peers import Encode, installed_packages, mean_of_glove
from lib.records import Column, Figures, Record, Table, describe_machine, keep
from lib.shipped import SHIPPED_MODEL
from lib.speeds import read_lists, sentences_per_second
from matplotlib.figure import Figure

from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.evaluation.probes import LabelledTexts, check_files, probe, read_labelled
from modeling_dsa.evaluation.similarity import SimilarityPairs, evaluate_similarity, read_named_similarity
from modeling_dsa.files.pictures import look
from modeling_dsa.onnx.export import export_onnx
from modeling_dsa.onnx.session import QUANTIZED_FILE, OnnxModel
from run_glue_style.sample import SAMPLE_VECTORS


def table_rows(record: Record) -> Iterable[Figures]:
    """The results, with the figures of all files in one cell."""
    for result in record.results:
        cells = {
            kind: ", ".join(f"{name} {100 * value:.1f}" for name, value in result[kind].items())
            for kind in ("similarity", "probes")
        }
        yield {**result, **cells}


TABLE = Table(
    (
        Column("encoder", "{name}", is_text=True),
        Column("numbers", "{width}"),
        Column("similarity, Spearman x 100", "{similarity}", is_text=True),
        Column("probes, accuracy %", "{probes}", is_text=True),
        Column("bulk, sentences/s", "{sentences_per_second[bulk]:,.0f}"),
        Column("one at a time, sentences/s", "{sentences_per_second[single]:,.0f}"),
    ),
    rows=table_rows,
)


def own_forms(folder: Path, threads: int) -> Iterator[tuple[str, Encode]]:
    """A model of this package in torch and as its ONNX files."""
    encoder = SentenceEncoder.from_pretrained(folder, device="cpu")
    encoder.fold_small_vocabulary()
    yield folder.name, encoder.encode
    with tempfile.TemporaryDirectory() as made:
        for file in export_onnx(folder, made, quantize=True):
            form = "ONNX int8" if file.name == QUANTIZED_FILE else "ONNX"
            yield f"{folder.name}, {form}", OnnxModel(file, folder / "tokenizer.json", threads=threads).encode


def peers(
    texts: Sequence[str], tried: Sequence[str], model: Path, vectors: Path, threads: int
) -> tuple[dict[str, Encode], dict[str, str]]:
    """The peers, and what is to be installed for those that are absent.

    Args:
        texts: All that will be encoded.
        tried: What they may choose the size of their batches on.
        model: Folder of the model whose word table model2vec gets.
        vectors: GloVe.
        threads: As for the script.
    """
    found, missing = installed_packages(model)
    if minilm_folder() is not None:
        from lib.minilm_onnx import minilm_forms  # exporting takes a minute, and sentence-transformers

        found |= minilm_forms(threads, tried)
    if importlib.util.find_spec("openvino") is None:
        missing[f"{MINILM}, OpenVINO"] = "pip install openvino"
    return {**found, "mean of GloVe": mean_of_glove(texts, vectors)}, missing


def accuracies(
    encode: Encode, similarity: Mapping[str, SimilarityPairs], probes: Mapping[str, Sequence[LabelledTexts]]
) -> dict[str, dict[str, float]]:
    """Spearman's correlation for each file of pairs and accuracy for each probe, by name."""
    return {
        "similarity": {name: evaluate_similarity(encode, pairs).spearman for name, pairs in similarity.items()},
        "probes": {name: probe(encode, files).accuracy for name, files in probes.items()},
    }


def speeds(encoders: Mapping[str, Encode], turns: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, dict[str, float]]:
    """Sentences a second of each encoder in bulk and one at a time, medians over the rounds."""
    rates: dict[str, dict[str, float]] = {name: {} for name in encoders}
    for way, lists in turns.items():
        for name, rate in sentences_per_second(encoders, way, lists).items():
            rates[name][way] = rate
    return rates


def pareto_front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other one surpasses in both numbers, the largest first number at the front."""
    front: list[tuple[float, float]] = []
    for point in sorted(points, reverse=True):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def draw(record: Record) -> Figure:
    """A panel for similarity and one for probes: the mean over the files, over sentences a second in bulk.

    A line joins those that no other one surpasses in both.
    """
    kinds = {"similarity": "mean Spearman correlation x 100", "probes": "mean accuracy of linear probes, %"}
    shown = [kind for kind in kinds if record.results[0][kind]]
    figure = Figure(figsize=(1 + 6 * max(1, len(shown)), 5), layout="constrained")
    for number, kind in enumerate(shown, 1):
        panel = figure.add_subplot(1, len(shown), number)
        points = {
            result["name"]: (result["sentences_per_second"]["bulk"], 100 * statistics.mean(result[kind].values()))
            for result in record.results
        }
        for mark, (name, point) in enumerate(points.items()):  # hollow, so that none hides another
            style: dict[str, Any] = {"linestyle": "none", "markersize": 9, "markeredgewidth": 2, "fillstyle": "none"}
            panel.plot(*point, label=name, **style, **look(mark))
        front = zip(*pareto_front(points.values()), strict=True)
        panel.plot(*front, color="grey", linewidth=1, zorder=0, label="none is better in both")
        panel.set(xscale="log", xlabel="sentences a second, in bulk", ylabel=kinds[kind])
        panel.set_title(", ".join(record.results[0][kind]), fontsize=10)
        panel.grid(alpha=0.3)
    if shown:
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Load everyone, measure, keep what was found."""
    parser = make_parser(__doc__, 7, "timed lists of sentences", "2 rounds of 16 sentences")
    parser.add_argument(
        "--model", type=Path, nargs="+", default=[SHIPPED_MODEL], help="folders of this package's models"
    )
    parser.add_argument("--similarity", type=Path, nargs="+", default=[], help="files of pairs with a human score")
    parser.add_argument(
        "--probe", type=Path, nargs="+", action="append", default=[], help="TRAIN, TRAIN TEST or TRAIN VALIDATION TEST"
    )
    parser.add_argument("--vectors", type=Path, default=SAMPLE_VECTORS, help="GloVe (default: the shipped sample)")
    arguments, turns = read_lists(parser, argv)
    sentences = [sentence for lists in turns.values() for part in lists for sentence in part]
    with reports_mistakes(parser):
        similarity = {path.stem: read_named_similarity(path) for path in arguments.similarity}
        probes = {paths[0].stem: [read_labelled(path) for path in paths] for paths in arguments.probe}
        for files in probes.values():
            check_files(files)
    torch.set_num_threads(arguments.threads)
    machine = describe_machine()
    texts = [*sentences, *(text for pairs in similarity.values() for text in (*pairs.first, *pairs.second))]
    texts += [text for files in probes.values() for file in files for example in file.texts for text in example]
    others, missing = peers(texts, turns["bulk"][0], arguments.model[0], arguments.vectors, arguments.threads)
    encoders = dict(form for folder in arguments.model for form in own_forms(folder, arguments.threads)) | others
    rates = speeds(encoders, turns)
    results = [
        {
            "name": name,
            "width": int(encode(sentences[:1]).shape[1]),
            **accuracies(encode, similarity, probes),
            "sentences_per_second": rates[name],
        }
        for name, encode in encoders.items()
    ]
    options = recorded_options(arguments, "model", "similarity", "probe", "vectors")
    models = [folder.name for folder in arguments.model]
    setup = {"models": models, "vectors": arguments.vectors.name, "missing": missing}
    keep(Record(options, machine, setup, results), TABLE, arguments.output, draw)


if __name__ == "__main__":
    main()
