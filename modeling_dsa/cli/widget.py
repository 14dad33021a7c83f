"""`dsa widget`: a page that runs a model in the browser."""

import argparse
import logging
import shlex
from pathlib import Path
from typing import Any

from modeling_dsa.command.optional_packages import optional_packages

logger = logging.getLogger(__name__)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Write a page that runs a model's int8 ONNX file in the browser, with no server behind it: a static Space."
    parser = commands.add_parser("widget", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="Folder of a saved model, after dsa onnx --int8.")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="Folder that the page goes to.")
    parser.add_argument("--model_id", metavar="ORG/NAME", help="The model's id on the Hub, which the page leads to.")
    add_bundle(parser)


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """Add the option --bundle."""
    text = "Folder of the page as it was built; default: model_cards/widget/dist of the clone."
    parser.add_argument("--bundle", type=Path, metavar="FOLDER", help=text)


def write(folder: Path, output: Path, model_id: str | None, bundle: Path | None) -> int:
    """Write a model's page.

    Returns:
        The size of its files, in bytes.

    Raises:
        ValueError: A package is missing, or as for `write_static_space`.
        OSError: As for `write_static_space`.
    """
    with optional_packages("A widget", "onnx", "onnxruntime"):
        from modeling_dsa.hub.static_space import BUNDLE, write_static_space
    content = write_static_space(folder, output, model_id=model_id, bundle=bundle or BUNDLE)
    return sum(content["sizes"].values())


def run(arguments: argparse.Namespace) -> int:
    """Write the page.

    Raises:
        ValueError: As for `write`.
        OSError: As for `write`.
    """
    if arguments.model_id is not None:
        from modeling_dsa.hub.publishing import check_repo_id

        check_repo_id(arguments.model_id)
    output = arguments.output
    size = write(arguments.folder, output, arguments.model_id, arguments.bundle)
    quoted = shlex.quote(str(output))
    logger.info(f"{output} holds the page, {size / 1e6:.1f} MB: `python -m http.server -d {quoted}` shows it.")
    return 0
