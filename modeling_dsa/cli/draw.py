"""`dsa draw`: a picture of where a model looks."""

import argparse
import logging
from pathlib import Path
from typing import Any

from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.model_folder import read_config

logger = logging.getLogger(__name__)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Draw where a model looks in a sentence, or in a pair of sentences."
    parser = commands.add_parser("draw", help=text, description=text, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("model", metavar="MODEL", help="Folder or Hub id of a model.")
    parser.add_argument("text", metavar="TEXT", help="The sentence, or the first of a pair.")
    parser.add_argument("text_pair", metavar="TEXT_PAIR", nargs="?", help="The second sentence of a pair.")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("attention.png"),
        metavar="FILE",
        help="Picture to write: .png, .svg or .pdf; default: %(default)s.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the picture.

    Raises:
        ValueError: matplotlib is missing, the model cannot be loaded or drawn, or a sentence does not fit it.
        OSError: The picture cannot be written.
    """
    try:
        from modeling_dsa.explanation.drawing import draw_attention, drawn_sentences
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ValueError('Drawing needs matplotlib: pip install "dsa-transformers[train]".') from error
    read_config(arguments.model)
    model, tokenizer = load_model_and_tokenizer(arguments.model)
    path = draw_attention(drawn_sentences(model, tokenizer, arguments.text, arguments.text_pair), arguments.output)
    logger.info(f"The picture is in {path}.")
    return 0
