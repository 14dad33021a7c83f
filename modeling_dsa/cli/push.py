"""`dsa push`: a model's folder to the Hub."""

import argparse
import logging
import shlex
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Push a model's folder to the Hub in one commit: weights, code, tokenizer, card and results."
    parser = commands.add_parser("push", help=text, description=text, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="Folder of a saved model; it stays as it is.")
    parser.add_argument("repo_id", metavar="ORG/NAME", help="Repository; it is made where it does not exist.")
    parser.add_argument("--private", action="store_true", help="Make a new repository private.")
    parser.add_argument("--revision", metavar="BRANCH", help="Push to this branch instead of main.")


def run(arguments: argparse.Namespace) -> int:
    """Push the folder.

    Returns:
        0, or 1 where the Hub did not get the model.

    Raises:
        ValueError: The folder holds no model, or the repository's name cannot be one.
        OSError: The folder holds no config.json.
    """
    from modeling_dsa.hub.publishing import CARD, NotPushedError, push_folder

    folder, repo_id = arguments.folder, arguments.repo_id
    try:
        commit = push_folder(folder, repo_id, private=arguments.private or None, revision=arguments.revision)
    except NotPushedError as error:
        logger.error(f"error: {error}")
        return 1
    if not (folder / CARD).is_file():
        make = f"python -m run_glue_style.reporting.model_card {shlex.quote(str(folder))} --model_id {repo_id}"
        logger.warning(f"It has no model card. Make one and push again: {make}")
    logger.info(f"The model is on the Hub: {commit.commit_url}")
    return 0
