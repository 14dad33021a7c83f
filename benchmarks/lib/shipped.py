"""What ships with the package and the benchmarks use: a sample of SNLI, and trained models."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as parquet

from modeling_dsa.onnx.export import export_onnx
from run_glue_style.sample import SAMPLE_FILES

REPOSITORY = Path(__file__).parents[2]
SHIPPED_MODEL = REPOSITORY / "model_cards" / "dsa-snli"
SHIPPED_ENCODERS = ("dsa-mini-en", "dsa-base-en")

Pairs: TypeAlias = dict[str, list[Any]]  # columns premise, hypothesis and label


def encoders_with_onnx(made: Path, names: Sequence[str] = SHIPPED_ENCODERS) -> Iterator[Path]:
    """The folders of shipped encoders' copies in `made`, each with its ONNX files, float32 and int8."""
    for name in names:
        folder = made / name
        shutil.copytree(REPOSITORY / "model_cards" / name, folder)
        export_onnx(folder, folder / "onnx", quantize=True)
        yield folder


def read_pairs(split: str, count: int | None = None) -> Pairs:
    """The first pairs of a split of the sample (None: all), in its order."""
    pairs: Pairs = parquet.read_table(SAMPLE_FILES[split]).slice(0, count).to_pydict()
    return pairs


def draw_pairs(count: int) -> Pairs:
    """Random training pairs of the sample, none of them twice, the same each time.

    Raises:
        ValueError: The sample has fewer.
    """
    table = parquet.read_table(SAMPLE_FILES["train"])
    if count > table.num_rows:
        raise ValueError(
            f"The sample has {table.num_rows:,} pairs, and {count:,} are needed: ask for fewer or smaller."
        )
    pairs: Pairs = table.take(np.random.default_rng(0).permutation(table.num_rows)[:count]).to_pydict()
    return pairs


def draw_sentences(count: int) -> list[str]:
    """Distinct sentences of the sample's training pairs, in random order, the same each time.

    Raises:
        ValueError: The sample has fewer.
    """
    pairs = read_pairs("train")
    sentences = list(dict.fromkeys(pairs["premise"] + pairs["hypothesis"]))
    if count > len(sentences):
        raise ValueError(f"The sample has {len(sentences):,} sentences, and {count:,} are needed: ask for fewer.")
    return [sentences[index] for index in np.random.default_rng(0).permutation(len(sentences))[:count].tolist()]


def draw_lists(rounds: int, bulk: int, single: int) -> dict[str, list[list[str]]]:
    """Distinct sentences for each round: a list to encode at once ("bulk") and one to encode one by one ("single").

    Raises:
        ValueError: As in `draw_sentences`.
    """
    sentences = draw_sentences(rounds * (bulk + single))
    parts = {"bulk": (sentences[: rounds * bulk], bulk), "single": (sentences[rounds * bulk :], single)}
    return {
        way: [part[start : start + size] for start in range(0, len(part), size)] for way, (part, size) in parts.items()
    }
