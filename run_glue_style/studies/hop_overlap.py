"""How much the hops of a structured self-attention look at the same words, in the models of a grid (Lin et al. 4.4.1).

    python -m run_glue_style.studies.hop_overlap runs/lin-penalty

Two hops of a sentence overlap by the cosine of their weights over its words: 1 where they are the same, 0 where they
share no word. The paper's penalty ||A A^T - I||_F^2 is there to keep them apart, and this says whether it does. The
grid's models are read from FOLDER/ROW/seed-N; rows of one hop are left out. The sentences are the different premises of
SNLI's dev split, which ship. overlap.json in FOLDER/hops holds the figures, table.md, plot.png and plot.svg show them.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAModel
from modeling_dsa.files.environment import environment
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.replacing import filled_folder, write_json
from modeling_dsa.files.shown_paths import without_folders
from modeling_dsa.files.text_files import read_texts
from run_glue_style.reporting.grid.plot import draw_grid
from run_glue_style.reporting.units import mean_and_spread
from run_glue_style.sample import SAMPLE_FILES

from .command import make_parser, run_command

OVERLAPS = "overlap.json"
_BATCH = 256  # sentences
_TITLE = "Structured self-attention: overlap of the hops"
_METRIC = "cosine of two hops"


def mean_overlaps(attention: Tensor) -> Tensor:
    """The mean cosine of the weights of two hops [rows of A].

    Args:
        attention: Weights over the words, two hops or more. (batch, hops, words)

    Returns:
        (batch,)
    """
    hops = attention.shape[1]
    unit = F.normalize(attention.double(), dim=-1)  # (batch, hops, words)
    among_all = unit.sum(1).square().sum(-1)  # (batch,) the sum of all cosines, each hop's with itself included
    return (among_all - hops) / (hops * (hops - 1))


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and measure; the exit code is that of `run_command`."""
    parser = make_parser(__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="Output folder of a grid, with its models.")
    return run_command(partial(_make, parser.parse_args(argv)))


def _make(arguments: argparse.Namespace) -> tuple[Path, str]:
    texts = list(dict.fromkeys(read_texts([SAMPLE_FILES["validation"]], ["premise"])))
    rows: dict[str, dict[str, Any]] = {}
    for row, model, tokenizer in _models(arguments.folder):
        if (hops := model.config.num_attention_heads) > 1:
            found = rows.setdefault(row, {"hops": hops, "overlaps": []})
            found["overlaps"].append(_overlap(model, tokenizer, texts))
    if not rows:
        raise ValueError(
            f"{arguments.folder} has no model ROW/seed-N with 'structured' pooling and two hops or more: run its grid "
            "first."
        )
    table = _table(rows, len(texts))
    content: dict[str, Any] = {
        "command": ["hop_overlap", without_folders(str(arguments.folder))],
        "sentences": {"name": f"premises of {SAMPLE_FILES['validation'].name}", "count": len(texts)},
        "rows": rows,
        "environment": environment(),
    }
    with filled_folder(arguments.folder / "hops") as beside:
        write_json(content, beside / OVERLAPS)
        (beside / "table.md").write_text(table, encoding="utf-8")
        draw_overlaps(content, beside / "plot")
    return arguments.folder / "hops", table


def draw_overlaps(content: Mapping[str, Any], path: Path) -> None:
    """Draw the contents of an overlap.json as a PNG and as an SVG, at a path without an extension."""
    draw_grid(_TITLE, [_METRIC], {row: [of_row["overlaps"]] for row, of_row in content["rows"].items()}, path)


def _models(folder: Path) -> Iterator[tuple[str, DSAModel, PreTrainedTokenizerBase]]:
    """The models of each row, the base first, as in the grid's own table."""
    found = sorted(folder.glob("*/seed-*/config.json"), key=lambda path: (path.parts[-3] != "base", path.parts))
    for path in found:
        model, tokenizer = load_model_and_tokenizer(path.parent)
        if model.config.pooling == "structured":
            yield path.parts[-3], cast(DSAModel, model.base_model).eval(), tokenizer


def _overlap(model: DSAModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> float:
    """The mean over sentences of two words or more: over a single one all hops are the same."""
    found = []
    for start in range(0, len(sentences), _BATCH):
        batch = tokenizer(list(sentences[start : start + _BATCH]), padding=True, return_tensors="pt")
        with torch.inference_mode():
            attention = model(**batch, output_attentions=True).attentions[-1]  # (batch, hops, words)
        found.append(mean_overlaps(attention)[batch["attention_mask"].sum(-1) > 1])
    return float(torch.cat(found).mean())


def _table(rows: dict[str, dict[str, Any]], sentences: int) -> str:
    lines = [f"| row | hops | models | {_METRIC} |", "|---|---|---|---|"]
    for row, of_row in rows.items():
        overlaps = of_row["overlaps"]
        lines.append(f"| {row} | {of_row['hops']} | {len(overlaps)} | {mean_and_spread(overlaps, _METRIC)} |")
    notes = (
        f"Percent, mean over all pairs of a sentence's hops and over {sentences:,} premises of SNLI's dev split; 100: "
        "all hops look at the same words. ±: standard deviation over the models, one a seed."
    )
    return "\n".join([*lines, "", notes]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
