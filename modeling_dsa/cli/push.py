"""`dsa push`: a model's folder to the Hub."""

import argparse
import logging
import shlex
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import widget

logger = logging.getLogger(__name__)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Push a model's folder to the Hub in one commit: weights, code, tokenizer, card and results."
    parser = commands.add_parser("push", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="Folder of a saved model; it stays as it is.")
    parser.add_argument("repo_id", metavar="ORG/NAME", help="Repository; it is made where it does not exist.")
    parser.add_argument("--private", action="store_true", help="Make a new repository private.")
    parser.add_argument("--revision", metavar="BRANCH", help="Push to this branch instead of main.")
    parser.add_argument(
        "--widget",
        metavar="ORG/NAME",
        help="Also push a static Space of this id, which runs the model in the browser; needs dsa onnx --int8.",
    )
    widget.add_bundle(parser)


def run(arguments: argparse.Namespace) -> int:
    """Push the folder, and the model's widget where one is asked for.

    Returns:
        0, or 1 where the Hub did not get the model or the widget.

    Raises:
        ValueError: The folder holds no model, a repository's name cannot be one, or there can be no widget.
        OSError: The folder holds no config.json, or a file of the widget is missing.
    """
    from modeling_dsa.files.card_sections import CARD
    from modeling_dsa.hub.publishing import NotPushedError, check_repo_id, push_folder, push_static_space

    folder, repo_id, space_id = arguments.folder, arguments.repo_id, arguments.widget
    private = arguments.private or None
    if arguments.bundle is not None and space_id is None:
        raise ValueError("--bundle is the page of a widget: give --widget too.")
    with ExitStack() as stack:
        if space_id is not None:
            for name in (repo_id, space_id):
                check_repo_id(name)
                if "/" not in name:
                    raise ValueError(
                        f"'{name}' does not say whose repository it is, which a widget's links need: give org/name."
                    )
            # Before anything goes up, as it may be refused.
            page = Path(stack.enter_context(TemporaryDirectory()), "page")
            widget.write(folder, page, repo_id, arguments.bundle)
        try:
            commit = push_folder(
                folder,
                repo_id,
                private=private,
                revision=arguments.revision,
                widget=space_id,
                command=arguments.command,
            )
            space = None
            if space_id is not None:
                space = push_static_space(page, space_id, private=private, command=arguments.command)
        except NotPushedError as error:
            logger.error(f"error: {error}")
            return 1
    if not (folder / CARD).is_file():
        make = f"python -m run_glue_style.reporting.model_card {shlex.quote(str(folder))} --model_id {repo_id}"
        logger.warning(f"It has no model card. Make one and push again: {make}")
    logger.info(f"The model is on the Hub: {commit.commit_url}")
    if space is not None:
        logger.info(f"Its widget is on the Hub: {space.repo_url}")
    return 0
