"""How sharp attention is, iteration by iteration: fresh models at several routing scales, and trained ones.

    python -m run_glue_style.studies.attention_entropy model_cards/dsa-snli --output_dir results/attention-entropy

For each iteration of the routing: the entropy of a head's weights over a sentence's tokens, in nats, its mean over
heads and sentences, and its share of the entropy of equal weights, log n for n tokens. Fresh models are those of a
setting with the word vectors that ship, with several seeds; the sentences are the different premises of SNLI's dev
split, which ship too. entropy.json holds the figures, table.md, plot.png and plot.svg show them.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.command.command_line import make_parser, positive_number, whole_number
from modeling_dsa.command.environment import environment
from modeling_dsa.files.outputs import require_folder
from modeling_dsa.files.shown_paths import without_folders
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.building import build_model, vocabulary_from_vectors
from run_glue_style.reporting.entropy_table import entropy_table, write_entropy
from run_glue_style.sample import SAMPLE_VECTORS
from run_glue_style.training.attention_sharpness import mean_entropies

from .command import run_command
from .premises import NAME, attention_batches, load_encoder, read_premises

Entropies = NDArray[np.float64]


def entropies(
    model: DSAModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]
) -> tuple[Entropies, Entropies]:
    """The entropy of a model's attention.

    Args:
        model: One whose pooling gives weights.
        tokenizer: Its.
        sentences: Each of two tokens or more.

    Returns:
        The mean over heads of each sentence's entropy in nats, (iterations, sentences), and that of equal weights,
        (sentences,).
    """
    found, equal = [], []
    for attentions, lengths in attention_batches(model, tokenizer, sentences):
        found.append(mean_entropies(attentions))  # (iterations, sentences)
        equal.append(lengths.double().log())  # (sentences,)
    return torch.cat(found, 1).numpy(), torch.cat(equal).numpy()


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and measure; the exit code is that of `run_command`."""
    parser = make_parser(__doc__)
    parser.add_argument("models", nargs="*", metavar="FOLDER", help="Trained models.")
    parser.add_argument("--setting", default="dsa-single-snli", help="Of the fresh models; default: %(default)s.")
    parser.add_argument(
        "--routing_scale",
        type=positive_number,
        nargs="+",
        help="Of the fresh models, where they route; default: 1 8.",
    )
    count = whole_number(1, 1_000_000)
    parser.add_argument("--seeds", type=count, default=3, help="Fresh models of each scale; default: %(default)s.")
    parser.add_argument("--sentences", type=count, help="Only the first so many; default: all.")
    parser.add_argument("--output_dir", type=Path, default=Path("runs/attention-entropy"), help="Default: %(default)s.")
    return run_command(partial(_make, parser.parse_args(argv), list(sys.argv[1:] if argv is None else argv)), argv)


def _make(arguments: argparse.Namespace, argv: list[str]) -> tuple[Path, str]:
    require_folder(arguments.output_dir, "--output_dir")
    texts = read_premises()[: arguments.sentences]
    setting = arguments.setting
    config = DSAConfig.from_pretrained(setting_folder(setting))
    if POOLINGS[config.pooling].is_routed:
        scales = arguments.routing_scale or [1.0, 8.0]
        fresh = [(f"{setting}, fresh, scale {scale:g}", _fresh(setting, scale, arguments.seeds)) for scale in scales]
    elif arguments.routing_scale:
        raise ValueError(f"--routing_scale: pooling '{config.pooling}' of {setting} has no routing: leave it out.")
    else:
        fresh = [(f"{setting}, fresh", _fresh(setting, config.routing_scale, arguments.seeds))]
    trained = [(without_folders(folder), iter([load_encoder(folder)])) for folder in arguments.models]
    systems = [_measured(name, models, texts) for name, models in [*fresh, *trained]]
    content: dict[str, Any] = {
        "command": ["attention_entropy", *map(without_folders, argv)],
        "sentences": {"name": NAME, "count": len(texts)},
        "systems": systems,
        "environment": environment(),
    }
    write_entropy(content, arguments.output_dir)
    return arguments.output_dir, entropy_table(content)


def _measured(
    name: str, models: Iterable[tuple[DSAModel, PreTrainedTokenizerBase]], texts: Sequence[str]
) -> dict[str, Any]:
    """The mean entropies of some models that differ in their seed alone."""
    by_model, equal = [], 0.0
    for model, tokenizer in models:
        found, of_equal = entropies(model.eval(), tokenizer, texts)
        long = of_equal > 0  # a single token has all the weight
        equal = float(of_equal[long].mean())
        by_model.append(
            [{"nats": float(row[long].mean()), "share": float((row[long] / of_equal[long]).mean())} for row in found]
        )
    return {"name": name, "equal_weights_nats": equal, "models": by_model}


def _fresh(setting: str, scale: float, seeds: int) -> Iterator[tuple[DSAModel, PreTrainedTokenizerBase]]:
    config = DSAConfig.from_pretrained(setting_folder(setting), routing_scale=scale)
    tokenizer, vectors = vocabulary_from_vectors(SAMPLE_VECTORS, progress=False)
    for seed in range(seeds):
        yield build_model(DSAModel, config, tokenizer, vectors, seed), tokenizer


if __name__ == "__main__":
    sys.exit(main())
