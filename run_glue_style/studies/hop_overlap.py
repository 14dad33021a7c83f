"""How much the hops of a structured self-attention look at the same words, in the models of a grid (Lin et al. 4.4.1).

    python -m run_glue_style.studies.hop_overlap runs/lin-penalty

Two hops of a sentence overlap by the cosine of their weights over its words: 1 where they are the same, 0 where they
share no word. The paper's penalty ||A A^T - I||_F^2 is there to keep them apart, and this says whether it does. The
grid's models are read from FOLDER/ROW/seed-N; rows of one hop are left out. The sentences are the different premises of
SNLI's dev split, which ship. overlap.json in FOLDER/hops holds the figures, table.md, plot.png and plot.svg show them.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAModel
from modeling_dsa.command.command_line import make_parser
from modeling_dsa.command.environment import environment
from modeling_dsa.files.shown_paths import without_folders
from run_glue_style.reporting.grid.definition import BASE
from run_glue_style.reporting.overlap_table import overlap_table, write_overlap

from .command import run_command
from .premises import NAME, attention_batches, load_encoder, read_premises


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
    return run_command(partial(_make, parser.parse_args(argv)), argv)


def _make(arguments: argparse.Namespace) -> tuple[Path, str]:
    texts = read_premises()
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
    content = {
        "command": ["hop_overlap", without_folders(str(arguments.folder))],
        "sentences": {"name": NAME, "count": len(texts)},
        "rows": rows,
        "environment": environment(),
    }
    write_overlap(content, arguments.folder / "hops")
    return arguments.folder / "hops", overlap_table(content)


def _models(folder: Path) -> Iterator[tuple[str, DSAModel, PreTrainedTokenizerBase]]:
    """The models of each row, the base first, as in the grid's own table."""
    found = sorted(folder.glob("*/seed-*/config.json"), key=lambda path: (path.parts[-3] != BASE, path.parts))
    for path in found:
        model, tokenizer = load_encoder(str(path.parent))
        if model.config.pooling == "structured":
            yield path.parts[-3], model.eval(), tokenizer


def _overlap(model: DSAModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> float:
    """The mean over sentences of two words or more: over a single one all hops are the same."""
    found = [
        mean_overlaps(attentions[-1])[lengths > 1]
        for attentions, lengths in attention_batches(model, tokenizer, sentences)
    ]
    return float(torch.cat(found).mean())


if __name__ == "__main__":
    sys.exit(main())
