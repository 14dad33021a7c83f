"""Make the data that ship with the package from the originals: SNLI pairs and the GloVe rows of their words.

python -m run_glue_style.sample.make_sample --train_file train_57k.parquet --validation_file snli_1.0_dev.jsonl
--test_file snli_1.0_test.jsonl --vectors glove.6B.zip --output_dir run_glue_style/sample
"""

import argparse
import sys
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from datasets import DatasetDict

from modeling_dsa.command.command_line import make_parser
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.text.tokenization import count_words
from run_glue_style.tasks.labelled_examples import load_files
from run_glue_style.tasks.nli import NLI


def write_pairs(data: DatasetDict, folder: Path) -> set[str]:
    """Write each split as Parquet and return the lower-case words of all pairs."""
    texts: list[str] = []
    for name, split in data.items():
        texts += [*split["premise"], *split["hypothesis"]]
        table = split.with_format("arrow")[:]
        pq.write_table(table, folder / f"snli_{name}.parquet", compression="zstd", compression_level=19)
    return set(count_words(texts, lowercase=True))


def write_vectors(source: Path, member: str, words: set[str], target: Path) -> None:
    """Copy the rows of `words`, unchanged, from a GloVe archive to a smaller one."""
    entry = zipfile.ZipInfo(member.replace(".txt", ".sample.txt"))  # a fixed date: the same input, the same bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    with (
        zipfile.ZipFile(source).open(member) as rows,
        zipfile.ZipFile(target, "w", compresslevel=9) as archive,
        archive.open(entry, "w") as kept,
    ):
        kept.writelines(row for row in rows if row.partition(b" ")[0].decode("utf-8") in words)


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and write the sample; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    for split in ("train", "validation", "test"):
        parser.add_argument(f"--{split}_file", type=Path, required=True, help=f"SNLI pairs of the {split} split.")
    parser.add_argument("--vectors", type=Path, required=True, help="GloVe archive (.zip).")
    parser.add_argument("--member", default="glove.6B.100d.txt", help="Text file in the archive.")
    parser.add_argument("--output_dir", type=Path, required=True, help="Folder of the sample.")
    return exit_code_of(partial(_make, parser.parse_args(argv)), argv)


def _make(arguments: argparse.Namespace) -> None:
    files = {name: getattr(arguments, f"{name}_file") for name in ("train", "validation", "test")}
    words = write_pairs(load_files(files, NLI), arguments.output_dir)
    write_vectors(arguments.vectors, arguments.member, words, arguments.output_dir / "glove.6B.100d.sample.zip")


if __name__ == "__main__":
    sys.exit(main())
