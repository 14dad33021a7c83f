"""The encoders that `encode.py` compares: single DSA in its forms, systems trained here, peers."""

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.onnx.export import export_onnx
from modeling_dsa.onnx.session import FILE, QUANTIZED_FILE, OnnxModel

from .peers import BiLSTMMax, Encode, in_padded_batches, installed_packages, random_table
from .records import read_record
from .shipped import REPOSITORY, SHIPPED_MODEL, read_pairs

RESULTS = REPOSITORY / "results" / "snli-balanced"
FROZEN = REPOSITORY / "benchmarks" / "peer_accuracy.json"
SINGLE_DSA, TRAINED_HERE, PEER = "single DSA", "trained here", "peer"
TOLERANCE = 1e-5
INFERSENT_BATCH = 64


@dataclass(frozen=True)
class Accuracy:
    """Accuracy on SNLI's dev split.

    Attributes:
        mean: Over the seeds.
        seeds: Of each.
        of: What gives the answers.
        source: The file or folder that says so.
    """

    mean: float
    seeds: list[float]
    of: str
    source: str


@dataclass(frozen=True)
class Competitor:
    """An encoder and what is known of it.

    Attributes:
        name: In the table.
        encode: Sentences to vectors.
        kind: "single DSA", "trained here" or "peer".
        ways: Of "bulk" and "single", those in which it is measured.
        accuracy: Where it was measured.
    """

    name: str
    encode: Encode
    kind: str
    ways: tuple[str, ...] = ("bulk", "single")
    accuracy: Accuracy | None = None


def encoder_of(config: DSAConfig, tokenizer: PreTrainedTokenizerBase, *, fold: bool) -> SentenceEncoder:
    """A model with random weights and the tokenizer's vocabulary."""
    config.vocab_size, config.unknown_init_range = len(tokenizer), 0.5  # vectors as long as GloVe's
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
    forms: dict[str, Encode] = {SINGLE_DSA: plain.encode, f"{SINGLE_DSA}, folded": folded.encode}
    if with_onnx:
        with tempfile.TemporaryDirectory() as folder:
            export_onnx(cast(DSAModel, plain.model), folder)
            tokenizer.save_pretrained(folder)
            session = OnnxModel(Path(folder) / FILE, Path(folder) / "tokenizer.json", threads=threads)
            forms[f"{SINGLE_DSA}, ONNX"] = session.encode
    expected = plain.encode(sentences)
    for name, encode in forms.items():
        difference = float(np.abs(encode(sentences) - expected).max())
        if not difference <= TOLERANCE:
            raise RuntimeError(f"The vectors of {name} differ by {difference:.1e}, more than {TOLERANCE:.0e}.")
    return [Competitor(name, encode, SINGLE_DSA) for name, encode in forms.items()]


def trained_systems(tokenizer: PreTrainedTokenizerBase) -> Iterator[Competitor]:
    """The systems with a measured NLI accuracy: with the sizes of their records or, where they ship, their weights."""
    for folder in sorted(path.parent for path in RESULTS.glob("*/seed-0.json")):
        records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("seed-*.json"))]
        encoder = encoder_of(DSAConfig(**records[0]["model"]), tokenizer, fold=True)
        yield _trained_system(folder, encoder, records)
    encoder = SentenceEncoder.from_pretrained(SHIPPED_MODEL, device="cpu")
    encoder.fold_small_vocabulary()
    yield _trained_system(SHIPPED_MODEL, encoder, [_shipped_record()])


def trained_as_onnx(threads: int, pairs: int | None) -> Iterator[Competitor]:
    """The system whose weights ship, as its two ONNX files, and their accuracies on the first dev pairs (None: all)."""
    validation, setting = read_pairs("validation", pairs), _shipped_record()["setting"]
    with tempfile.TemporaryDirectory() as folder:
        for file in export_onnx(SHIPPED_MODEL, folder, quantize=True):
            model = OnnxModel(file, SHIPPED_MODEL / "tokenizer.json", threads=threads)
            answers = model.classify(list(zip(validation["premise"], validation["hypothesis"], strict=True)))
            right = [
                model.labels.index(answer["label"]) == label
                for answer, label in zip(answers, validation["label"], strict=True)
            ]
            name = f"{setting}, ONNX" + (" int8" if file.name == QUANTIZED_FILE else "")
            source = f"{_source(SHIPPED_MODEL)}, as ONNX"
            accuracy = Accuracy(statistics.mean(right), [statistics.mean(right)], "itself", source)
            yield Competitor(name, model.encode, TRAINED_HERE, accuracy=accuracy)


def peers(tokenizer: PreTrainedTokenizerBase, units: int) -> tuple[list[Competitor], dict[str, str]]:
    """The peers, and what is to be installed for those that are absent."""
    packages, missing = installed_packages()
    table = random_table(len(tokenizer), 300)
    found = {
        **packages,
        f"BiLSTM-max {2 * units}D": in_padded_batches(BiLSTMMax(table, units), tokenizer, INFERSENT_BATCH),
        "mean of GloVe": encoder_of(DSAConfig(encoder="none", pooling="mean"), tokenizer, fold=False).encode,
    }
    frozen = {result["name"]: result["seeds"] for result in read_record(FROZEN).results} if FROZEN.is_file() else {}
    accuracies = {
        name: Accuracy(statistics.mean(seeds), seeds, "a classifier on frozen vectors", _source(FROZEN))
        for name, seeds in frozen.items()
    }
    return [Competitor(name, encode, PEER, accuracy=accuracies.get(name)) for name, encode in found.items()], missing


def _trained_system(folder: Path, encoder: SentenceEncoder, records: Sequence[Mapping[str, Any]]) -> Competitor:
    seeds = [float(record["metrics"]["validation"]["accuracy"]) for record in records]
    accuracy = Accuracy(statistics.mean(seeds), seeds, "itself", _source(folder))
    return Competitor(records[0]["setting"], encoder.encode, TRAINED_HERE, ("bulk",), accuracy)


def _shipped_record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads((SHIPPED_MODEL / "all_results.json").read_text(encoding="utf-8"))
    return record


def _source(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()
