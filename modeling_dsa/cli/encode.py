"""`dsa encode`: any number of sentences to files of vectors."""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from modeling_dsa.batching_dsa import BATCH_SIZE, DTYPES
from modeling_dsa.command.command_line import whole_number
from modeling_dsa.command.launchers import Process
from modeling_dsa.encoding.vector_files import SHARD_SIZE
from modeling_dsa.files.lines import STANDARD_INPUT
from modeling_dsa.files.remote_paths import AnyPath, check_writable, parse_path
from modeling_dsa.shipped.models import model_source

logger = logging.getLogger(__name__)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Turn sentences into vectors: any number of them, in memory that stays flat."
    parser = commands.add_parser("encode", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="Sentences: .txt with one a line, .jsonl, .csv, .tsv or .parquet, each also with .gz behind, here "
        "or by a URL (s3://...); or a data set's Hub id or folder; or - for standard input with one a line.",
    )
    parser.add_argument(
        "output",
        metavar="OUTPUT",
        help="file.npy; or a folder, for Parquet files of --shard_size rows each; here or by a URL (s3://...). Only a "
        "folder can be written by several processes (accelerate launch or torchrun), and resumed after a stop, by the "
        "same command.",
    )
    parser.add_argument(
        "--model", required=True, type=model_source, metavar="MODEL", help="Folder or Hub id of a model."
    )
    parser.add_argument(
        "--text_column", metavar="NAME", help="Column of the sentences; default: found as for training, such as 'text'."
    )
    parser.add_argument("--split", metavar="NAME", help="Split of a data set; default: the only one.")
    parser.add_argument(
        "--batch_size",
        type=whole_number(1, sys.maxsize),
        default=BATCH_SIZE,
        metavar="N",
        help="Sentences that the model sees at once; default: %(default)s, for a CPU.",
    )
    parser.add_argument(
        "--normalize", action="store_true", help="Give every vector the length 1; that of an empty text stays 0."
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="Of the vectors; int8 keeps their direction, for cosines; default: %(default)s.",
    )
    parser.add_argument(
        "--shard_size",
        type=whole_number(1, sys.maxsize),
        metavar="ROWS",
        help=f"Rows of a file in a folder; default: {SHARD_SIZE}.",
    )
    parser.add_argument("--overwrite", action="store_true", help="Replace what is there and start again.")


def run(arguments: argparse.Namespace) -> int:
    """Write the vectors.

    Raises:
        ValueError: An input cannot be read or does not fit, or the output is in use.
        OSError: A file is missing or cannot be written.
    """
    from modeling_dsa.encoding.bulk import BulkOptions, check_output, encode_bulk
    from modeling_dsa.encoding.encoder import SentenceEncoder
    from modeling_dsa.encoding.sources import open_sentences

    if arguments.output == "-":
        raise ValueError("Vectors go to a .npy file or to a folder, and not to standard output: give its name.")
    output = parse_path(arguments.output)
    if output.suffix == ".npy" and arguments.shard_size is not None:
        raise ValueError(f"{output} is one file: leave --shard_size out, or give a folder.")
    process = Process.from_environment()
    check_output(output, arguments.overwrite, process)
    check_writable(output)
    _refuse_one_in_the_other(output, arguments.input)
    source = open_sentences(arguments.input, arguments.text_column, arguments.split)
    encoder = SentenceEncoder.from_pretrained(arguments.model)
    encoder.fold_small_vocabulary()
    options = BulkOptions(
        batch_size=arguments.batch_size,
        normalize=arguments.normalize,
        dtype=arguments.dtype,
        shard_size=arguments.shard_size or SHARD_SIZE,
        overwrite=arguments.overwrite,
    )
    try:
        rows = encode_bulk(encoder, source, output, options, process)
    except KeyboardInterrupt:
        again = "the same command" + (" without --overwrite" if arguments.overwrite else "")
        stays = f"{again} resumes after the last shard"
        if output.suffix == ".npy":
            stays = "nothing was written"
        elif source.name == STANDARD_INPUT:
            stays = "standard input cannot be read again, so nothing resumes: give --overwrite next time"
        logger.error(f"Stopped; {stays}.")
        return 130
    part = f"process {process.rank}'s part of the " if process.count > 1 else "the "
    logger.info(f"{output} holds {part}vectors of {rows:,} sentences, {encoder.width} numbers each.")
    return 0


def _refuse_one_in_the_other(output: AnyPath, name: str) -> None:
    """Refuse an input where shards are written, and older ones removed, and an output that a data set would have."""
    given = parse_path(name)
    if not (isinstance(output, Path) and isinstance(given, Path) and given.exists()):
        return
    folder, place = output.resolve(), given.resolve()
    if output.is_dir() and (place == folder or folder in place.parents):
        raise ValueError(f"{given} is in {output}, where the vectors go: give another folder for them.")
    if output.suffix != ".npy" and given.is_dir() and place in folder.parents:
        raise ValueError(
            f"{output} is in the data set's folder {given}, which would be read with the vectors next time: give "
            "another place for them."
        )
