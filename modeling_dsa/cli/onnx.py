"""`dsa onnx`: a model's ONNX files."""

import argparse
import logging
from pathlib import Path
from typing import Any

from modeling_dsa.command.optional_packages import optional_packages
from modeling_dsa.files.loading import load_model

logger = logging.getLogger(__name__)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Write a model's ONNX file into its folder, for onnxruntime: checked to be equal to the model."
    parser = commands.add_parser("onnx", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="Folder of a saved model; the file goes to onnx/.")
    parser.add_argument("--int8", action="store_true", help="Write an int8 file too, which is smaller and faster.")
    parser.add_argument(
        "--memory_mapped",
        action="store_true",
        help="Keep the tables in a file of their own beside each, which processes on one machine share in memory; "
        "not for the page of dsa widget.",
    )
    parser.add_argument("--overwrite", action="store_true", help="Replace the ONNX files that are there, all of them.")


def run(arguments: argparse.Namespace) -> int:
    """Write the files.

    Raises:
        ValueError: A package is missing, files are in the way, or the model cannot be loaded or exported.
        OSError: The folder holds no model, or a file cannot be written.
    """
    with optional_packages("Writing ONNX files", "onnx", "onnx", "onnxruntime", "onnxscript"):
        import onnxruntime

        from modeling_dsa.onnx.export import export_onnx
    folder: Path = arguments.folder
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder here: download the model first (hf download), or save it.")
    output = folder / "onnx"
    old = sorted(output.glob("*.onnx*"))
    if old and not arguments.overwrite:
        raise ValueError(f"{old[0]} is there already: give --overwrite to replace it.")
    model = load_model(folder)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses a torchvision that nobody needs here
    onnxruntime.set_default_logger_severity(3)  # errors: it warns of what its own passes leave unused
    for path in export_onnx(model, output, quantize=arguments.int8, memory_mapped=arguments.memory_mapped):
        logger.info(f"Wrote {path}: {path.stat().st_size / 1e6:.1f} MB.")
    for path in old:
        if not path.exists():
            logger.info(f"Removed {path}, which was of the earlier export.")
    return 0
