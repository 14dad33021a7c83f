"""Any number of sentences to files of vectors: in windows, so that memory stays flat, and in shards, so that a run that
was killed can be resumed, and several processes share the work.

The processes need not know of each other: shard k belongs to process k modulo their number.
"""

import itertools
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from modeling_dsa.batching_dsa import VectorType
from modeling_dsa.command.launchers import Process
from modeling_dsa.files.lines import STANDARD_INPUT
from modeling_dsa.files.model_folder import holds_model
from modeling_dsa.files.outputs import refuse_model_folder, require_folder
from modeling_dsa.files.remote_paths import AnyPath
from modeling_dsa.text.cut_texts import cut_texts
from modeling_dsa.unknown_texts_dsa import told_unknown, unknown_texts

from .encoder import SentenceEncoder
from .finite import check_finite
from .manifest import MANIFEST, Manifest, check_or_write_manifest, require_own
from .model_hash import model_hash
from .sources import SentenceSource
from .vector_files import Append, made_by, write_npy, write_parquet
from .windows import windows

logger = logging.getLogger(__name__)

_LOOKED_AT = 256  # sentences in which a foreign language would be noticed


@dataclass(frozen=True)
class BulkOptions:
    """How sentences are encoded in bulk.

    Attributes:
        batch_size: As for `SentenceEncoder.encode`.
        normalize: As for `SentenceEncoder.encode`.
        dtype: As for `SentenceEncoder.encode`.
        shard_size: Rows in each file of a folder.
        overwrite: Replace what is there.
    """

    batch_size: int
    shard_size: int
    normalize: bool = False
    dtype: VectorType = "float32"
    overwrite: bool = False


@dataclass
class _Counts:
    """How many sentences there were so far.

    Attributes:
        rows: All of them.
        encoded: Those that no earlier run has encoded.
        empty: Those of the encoded ones that are empty.
        cut: Those of the encoded ones that are longer than the model reads.
    """

    rows: int = 0
    encoded: int = 0
    empty: int = 0
    cut: int = 0


def check_output(output: AnyPath, overwrite: bool, process: Process) -> None:
    """Refuse an output that cannot be written, before anything is read.

    Args:
        output: A `.npy` file, or a folder, whose name ends in nothing or in `.parquet`.
        overwrite: Whether it may be there.
        process: The present one.

    Raises:
        ValueError: Its ending is unknown, it is there or of the wrong kind, it is or is in a model's folder, or several
            processes would write one file.
    """
    if isinstance(output, Path):
        require_folder(output.parent, "OUTPUT")
        refuse_model_folder(output, "OUTPUT")
    if output.suffix == ".npy":
        if process.count > 1:
            raise ValueError(f"{output} is one file, which {process.count} processes cannot write: give a folder.")
        if output.is_dir():
            raise ValueError(f"{output} is a folder: give the name of a file.")
        if output.exists() and not overwrite:
            raise ValueError(f"{output} exists: give --overwrite to replace it, or another name.")
        return
    if not output.is_dir() and output.suffix not in ("", ".parquet"):
        raise ValueError(
            f"{output} has an unsupported extension: give a file.npy, or a folder for shards, whose name ends "
            "in .parquet or has no extension."
        )
    if isinstance(output, Path) and holds_model(output):
        raise ValueError(f"{output} holds a model: give another folder for the vectors.")
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file: shards go to a folder, so give another name.")
    if overwrite or not output.is_dir() or (output / MANIFEST).is_file():
        return
    if any(not path.name.startswith(".") for path in output.iterdir()):
        raise ValueError(f"{output} is not empty and holds no vectors: give another folder, or --overwrite.")


def encode_bulk(
    encoder: SentenceEncoder, source: SentenceSource, output: AnyPath, options: BulkOptions, process: Process
) -> int:
    """Encode all sentences of a source; row i of the output is the vector of sentence i.

    Args:
        encoder: The model.
        source: The sentences.
        output: A `.npy` file, or a folder for shards `vectors-000000.parquet` and so on with the columns `row` and
            `vector`; on this machine or by a URL of fsspec. The order of the shards' names is that of the sentences. An
            existing folder is resumed: its finished shards stay.
        options: How.
        process: Which of several processes this is. Each writes its own shards, and the first one shows progress.

    Returns:
        The number of sentences, those of the other processes and of finished shards included.

    Raises:
        ValueError: As in [`check_output`], the folder holds vectors of something else or gets them meanwhile, the data
            are broken or change meanwhile, or several processes would read standard input.
    """
    check_output(output, options.overwrite, process)
    if process.count > 1 and source.name == STANDARD_INPUT:
        raise ValueError(f"{process.count} processes cannot share standard input: give a file, or run one process.")
    counts = _Counts()
    if output.suffix == ".npy":
        output.parent.mkdir(parents=True, exist_ok=True)
        with _progress(source, process) as bar, write_npy(output, options.dtype, encoder.width) as append:
            _encode(encoder, source.read(), options, append, bar, counts)
            source.require_unchanged()
    else:
        output.mkdir(parents=True, exist_ok=True)
        run = check_or_write_manifest(output, _manifest(encoder, source, options), options.overwrite)
        with _progress(source, process) as bar:
            _encode_shards(encoder, source, output, options, process, run, bar, counts)
    if counts.empty:
        logger.warning(f"{counts.empty:,} of the sentences are empty: their vectors are zeros.")
    if counts.cut:
        logger.warning(
            f"{counts.cut:,} of the sentences are longer than the {encoder.model.config.max_sentence_tokens:,} tokens "
            "that the model reads: their vectors say nothing of the rest."
        )
    return counts.rows


def _progress(source: SentenceSource, process: Process) -> "tqdm[Any]":
    return tqdm(total=source.count, unit=" sentences", disable=process.rank > 0)


def _encode_shards(
    encoder: SentenceEncoder,
    source: SentenceSource,
    folder: AnyPath,
    options: BulkOptions,
    process: Process,
    run: str,
    bar: "tqdm[Any]",
    counts: _Counts,
) -> None:
    """Write the shards of a process that are not finished."""
    sentences = source.read()
    own: list[AnyPath] = []
    for number in itertools.count():
        first = next(sentences, None)
        if first is None and number:
            break
        shard = itertools.islice(itertools.chain([] if first is None else [first], sentences), options.shard_size)
        path = folder / f"vectors-{number:06}.parquet"
        is_own = number % process.count == process.rank
        if is_own:
            own.append(path)
        if is_own and (options.overwrite or made_by(path) != run):
            require_own(folder, run)
            with write_parquet(path, options.dtype, encoder.width, counts.rows, run) as append:
                _encode(encoder, shard, options, append, bar, counts)
                source.require_unchanged()
        else:
            skipped = sum(1 for _ in shard)
            counts.rows += skipped
            bar.update(skipped)
    source.require_unchanged()
    for path in folder.glob("vectors-*.parquet"):  # of a longer input, which this one replaces
        found = re.fullmatch(r"vectors-(\d{6,})\.parquet", path.name)
        if found and int(found[1]) >= number:
            path.unlink(missing_ok=True)  # another process may be as far
    require_own(folder, run, own)


def _encode(
    encoder: SentenceEncoder,
    sentences: Iterator[str],
    options: BulkOptions,
    append: Append,
    bar: "tqdm[Any]",
    counts: _Counts,
) -> None:
    """Encode sentences to the end, window by window."""
    for window in windows(sentences):
        if not counts.encoded:
            _tell_unknown(encoder, window[:_LOOKED_AT])
        vectors = encoder.encode(
            window, batch_size=options.batch_size, normalize=options.normalize, dtype=options.dtype
        )
        check_finite(vectors, window)
        append(vectors)
        counts.rows += len(window)
        counts.encoded += len(window)
        counts.empty += sum(not sentence.strip() for sentence in window)
        counts.cut += len(cut_texts(encoder.tokenizer, window, encoder.model.config.max_sentence_tokens))
        bar.update(len(window))


def _tell_unknown(encoder: SentenceEncoder, sentences: Sequence[str]) -> None:
    """Warn where vectors will say nothing, such as those of another language."""
    written = [sentence for sentence in sentences if sentence.strip()]
    unknown = unknown_texts(encoder.tokenizer, written)
    if 2 * len(unknown) > len(written):
        told = told_unknown(str(encoder.model.name_or_path), written, unknown)
        logger.warning(f"{told}, the first ones: their vectors say nothing.")


def _manifest(encoder: SentenceEncoder, source: SentenceSource, options: BulkOptions) -> Manifest:
    """What the vectors depend on."""
    return {
        "model": {"name": encoder.model.name_or_path, "sha256": model_hash(encoder)},
        "input": {"name": source.name, **source.fingerprint},
        "options": {
            "normalize": options.normalize,
            "dtype": options.dtype,
            "shard_size": options.shard_size,
        },
    }
