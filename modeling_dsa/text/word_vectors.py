"""A reader for files of pretrained word vectors: GloVe, word2vec (text and binary) and fastText .vec.

Formats, told apart by what the file holds and not by its name; any of them may be packed with gzip or zip:

- GloVe: one row a line, `word number number ...`. The word of some rows holds spaces (`. . .`, `at name@domain.com` in
  840B), so the numbers are the last `dimension` fields. The dimension is what most of the first rows have.
- word2vec text and fastText .vec: the same after a first line `rows dimension`.
- word2vec binary: the same first line; then for each row its word, one space and little-endian float32 numbers.

Only b" " separates fields and only b"\\n" ends rows (a b"\\r" before it is dropped): words of GloVe twitter and 840B
hold characters such as U+0085, U+00A0 and U+2028, at which `str.split` and `str.splitlines` would break a row.
"""

import codecs
import gzip
import logging
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain, takewhile
from os import PathLike
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from modeling_dsa.files.unpacking import GzipReader, check_unpacked

from .special_tokens import SPECIAL_TOKENS

logger = logging.getLogger(__name__)

_CHUNK = 1 << 18  # bytes read at once (larger ones leave the processor's cache), and the longest row of a text file
_SAMPLE = 100  # rows that decide the dimension of a file without a header
_HEADER = re.compile(rb"(\d{1,12}) (\d{1,9})[ \r]*")
_NUMBER = re.compile(rb"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)
_FRACTION = re.compile(rb"[-+]?\d*\.\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_NOT_TEXT = re.compile(rb"[^\t\n\r -~]")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors, in the order of the file they came from.

    Attributes:
        words: Distinct words.
        vectors: The vector of each word. (words, dimension) float32
    """

    words: list[str]
    vectors: npt.NDArray[np.float32]

    @property
    def dimension(self) -> int:
        """Numbers in each vector."""
        return int(self.vectors.shape[1])


def read_vectors(
    path: str | PathLike[str],
    *,
    words: Collection[str] | None = None,
    max_words: int | None = None,
    progress: bool = True,
) -> WordVectors:
    """Read the vectors of `words`, of the first `max_words` words, or of all words of a file.

    The file is streamed: memory holds the kept rows, the wanted words and one or two MB more, whatever the size of the
    file. Reading stops early once every wanted row is there. A word that stands twice keeps its first row.

    Rows are checked as they are kept: the number of fields, and that each is a finite number in float32's range. Of a
    row that is not kept only the first field is looked at, so a broken one passes. A row whose word is empty or not
    UTF-8 (the word2vec tool cuts long words inside a character) can match no text: it is left out, with one warning.

    Args:
        path: A file in one of the module's formats. Of a zip with several files, one is chosen as
            `glove.6B.zip:glove.6B.100d.txt`.
        words: The wanted words, spelled as in the file; None wants all.
        max_words: Keep at most this many rows, the first ones: the most frequent words, as all these files are sorted.
            With `words`, the first ones among the wanted.
        progress: Show a progress bar, in bytes of the file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is in none of the formats, damaged or cut off, a kept row is broken (the message names its
            line), or it has none of the wanted words.
    """
    if isinstance(words, str):
        raise ValueError("words is one string where a list of strings is needed: put it in a list.")
    if words is not None and not words:
        raise ValueError("words is empty: name the words to read, or give None to read all.")
    if max_words is not None and max_words < 1:
        raise ValueError(f"max_words is {max_words}: give a number above 0, or None to read all.")
    try:
        with (
            _open(Path(path)) as (name, read, size, position),
            tqdm(total=size, desc=f"Reading {Path(name).name}", unit="B", unit_scale=True, disable=not progress) as bar,
        ):
            return _read(name, _chunks(read, position, bar), words, max_words)
    except (EOFError, NotImplementedError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged or cut off ({error}): download it again.") from error


def vectors_file(path: Path) -> tuple[Path, str]:
    """The file of word vectors, and of a zip with several files the chosen one's name, or nothing."""
    archive, mark, member = str(path).rpartition(".zip:")
    return (path, "") if not mark or path.exists() else (Path(f"{archive}.zip"), member)


@contextmanager
def _open(path: Path) -> Iterator[tuple[str, Callable[[int], bytes], int, Callable[[], int]]]:
    """Open a file, unpacked: its name, what reads its bytes, and for the progress bar a size and the position in it."""
    file, member = vectors_file(path)
    if not file.exists():
        raise FileNotFoundError(f"There is no file {file}: give the path of a file of word vectors.")
    if file.is_dir():
        raise ValueError(f"{file} is a folder: give the path of a file of word vectors.")
    if not file.is_file():
        raise ValueError(f"{file} is no regular file: give the path of a file of word vectors.")
    with ExitStack() as stack:
        raw = stack.enter_context(file.open("rb"))
        magic = raw.read(4)
        raw.seek(0)
        if magic in (b"PK\x03\x04", b"PK\x05\x06"):
            unpacked, size = _open_member(stack.enter_context(zipfile.ZipFile(raw)), file, member)
            yield f"{file}:{unpacked.name}", stack.enter_context(unpacked).read, size, unpacked.tell
        elif member:
            raise ValueError(f"{file} is no zip archive, so it has no {member!r}: give the path alone.")
        elif magic.startswith(b"\x1f\x8b"):
            packed = stack.enter_context(BufferedReader(GzipReader(raw, file), _CHUNK))
            yield str(file), packed.read, file.stat().st_size, raw.tell
        else:
            yield str(file), raw.read, file.stat().st_size, raw.tell


def _open_member(archive: zipfile.ZipFile, file: Path, wanted: str) -> tuple[IO[bytes], int]:
    members = [info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX/")]
    listed = ", ".join(info.filename for info in members)
    if not members:
        raise ValueError(f"{file} is a zip archive without a file in it: download it again.")
    if not wanted and len(members) > 1:
        raise ValueError(f"{file} holds several files ({listed}): choose one as {file}:{members[0].filename}.")
    chosen = [info for info in members if wanted in ("", info.filename)]
    if not chosen:
        raise ValueError(f"{file} has no file {wanted!r}: it holds {listed}.")
    check_unpacked(str(file), chosen[0].file_size, file.stat().st_size)
    try:
        return archive.open(chosen[0]), chosen[0].file_size
    except RuntimeError as error:  # a password, or a compression method that zipfile does not know
        raise ValueError(f"{file} cannot be unpacked ({error}): unpack it with another tool.") from error


def _chunks(read: Callable[[int], bytes], position: Callable[[], int], bar: "tqdm[NoReturn]") -> Iterator[bytes]:
    while chunk := read(_CHUNK):
        bar.update(position() - bar.n)
        yield chunk


def _read(name: str, chunks: Iterator[bytes], words: Collection[str] | None, max_words: int | None) -> WordVectors:
    first = next(chunks, b"")
    start = first.removeprefix(codecs.BOM_UTF8)
    layout = _find_layout(name, start, whole=len(first) < _CHUNK)
    chunks = chain([start[layout.header_bytes :]], chunks)
    kept = _Kept(words, max_words)
    if layout.binary:
        _read_binary(name, chunks, layout, kept)
    else:
        _read_text(name, chunks, layout, kept)
    if kept.left_out:
        logger.warning(
            f"{name}: left out {len(kept.left_out):,} rows whose word is empty or not UTF-8, the first at "
            f"{'row' if layout.binary else 'line'} {kept.left_out[0]}."
        )
    if not kept.words and words is not None:
        example = next(filter(str.isalpha, words), next(iter(words)))  # rather than a special token or a piece
        count = len(set(words) - set(SPECIAL_TOKENS))
        raise ValueError(
            f"{name} has none of the {count:,} wanted words, such as {example!r}: "
            "check its language and whether its words are lower-cased."
        )
    if not kept.words:
        raise ValueError(f"{name} has no row with a word: it is no file of word vectors.")
    vectors = np.frombuffer(kept.numbers, dtype=np.float32).reshape(-1, layout.dimension)  # (words, dimension)
    return WordVectors(list(kept.words), vectors)


@dataclass(frozen=True)
class _Layout:
    dimension: int
    rows: int | None  # as the header says; None without one
    header_bytes: int
    binary: bool


def _find_layout(name: str, start: bytes, *, whole: bool) -> _Layout:
    if not start.strip():
        raise ValueError(f"{name} is empty: download it again.")
    # The last row of a part of the file may be cut off.
    sample = (start if whole else start[: start.rfind(b"\n")]).split(b"\n", _SAMPLE)[:_SAMPLE]
    header = _HEADER.fullmatch(sample[0])
    if header:
        rows, dimension = int(header[1]), int(header[2])
        dimension_of_rows = _most_common_dimension(sample[1:])
        # `2000 7` can also be the word 2000 of a one-dimensional GloVe file: then the next rows have one number too.
        if dimension == 1 or dimension_of_rows != 1:
            header_bytes = len(sample[0]) + 1
            if rows == 0 or dimension == 0 or not start[header_bytes:].strip():
                raise ValueError(f"{name} has a header line but no vectors: download it again.")
            first_numbers = start[header_bytes:].partition(b" ")[2][: 4 * dimension]
            binary = dimension_of_rows == 0 and _NOT_TEXT.search(first_numbers) is not None
            return _Layout(dimension, rows, header_bytes, binary)
    dimension = _most_common_dimension(sample)
    if not dimension:
        raise ValueError(
            f"{name} is no file of word vectors: its first rows are no words followed by numbers with single spaces "
            "between them, and it has no word2vec header (of fastText's files, take the .vec)."
        )
    return _Layout(dimension, None, 0, binary=False)


def _most_common_dimension(rows: Iterable[bytes]) -> int:
    """The count of numbers at the end of most rows; of two counts that are as common, the larger."""
    counts = Counter(
        sum(1 for _ in takewhile(_NUMBER.fullmatch, reversed(row.rstrip(b" \r").split(b" ")[1:])))
        for row in rows
        if row.strip()
    )
    return max(counts, key=lambda count: (counts[count], count), default=0)


class _Kept:
    """The rows kept so far."""

    def __init__(self, wanted: Collection[str] | None, max_words: int | None) -> None:
        # Words that are no Unicode text (lone surrogates) become bytes that no file can hold as UTF-8.
        self.wanted = None if wanted is None else {word.encode(errors="surrogatepass") for word in wanted}
        self.limit = min(sys.maxsize if self.wanted is None else len(self.wanted), max_words or sys.maxsize)
        self.words: dict[str, None] = {}  # a set that keeps its order
        self.numbers = bytearray()  # grows in place, where joining arrays would hold every row twice
        self.left_out: list[int] = []

    @property
    def full(self) -> bool:
        return len(self.words) == self.limit

    def take(self, encoded: bytes, line: int) -> bool:
        """Keep this word, if it is wanted and new; then its numbers must follow with `add`."""
        if self.wanted is not None and encoded not in self.wanted:
            return False
        try:
            word = encoded.decode()
        except UnicodeDecodeError:
            word = ""
        if not word:
            self.left_out.append(line)
        if not word or word in self.words:
            return False
        self.words[word] = None
        return True

    def add(self, numbers: npt.NDArray[np.float32]) -> None:
        self.numbers += numbers.tobytes()


def _read_text(name: str, chunks: Iterable[bytes], layout: _Layout, kept: _Kept) -> None:
    dimension = layout.dimension
    # Most rows are told unwanted by their first field alone: finding the whole word takes much longer.
    first_fields = None if kept.wanted is None else {word.partition(b" ")[0] for word in kept.wanted}
    line = 1 if layout.rows is None else 2
    seen = 0
    for rows in _lines(name, chunks, line):
        candidates: Iterable[tuple[int, bytes]] = enumerate(rows, line)
        if first_fields is not None:
            candidates = [pair for pair in candidates if pair[1].partition(b" ")[0] in first_fields]
        lines, numbers = [], []
        for number, row in candidates:
            stripped = row.rstrip(b" \r")  # fastText and word2vec end their rows with a space
            if not stripped:
                continue
            if stripped.count(b" ") == dimension:
                word = stripped.partition(b" ")[0]
            else:
                word = _word_with_spaces(f"{name}, line {number}", stripped, layout, kept.wanted)
            if kept.take(word, number):
                lines.append(number)
                numbers.append(stripped[len(word) + 1 :])
                if kept.full:
                    break
        if numbers:
            kept.add(_parse(name, numbers, lines))
        if kept.full:
            return
        line += len(rows)
        if layout.rows is not None:
            seen += len(rows) - rows.count(b"") - rows.count(b"\r")
    if layout.rows is not None and seen != layout.rows:
        ends = "ends after" if seen < layout.rows else "has"
        raise ValueError(
            f"{name} {ends} {seen:,} rows where its header (line 1) says {layout.rows:,}: download it again."
        )


def _lines(name: str, chunks: Iterable[bytes], line: int) -> Iterator[list[bytes]]:
    rest = b""
    for chunk in chunks:
        *rows, rest = (rest + chunk).split(b"\n")
        line += len(rows)
        if len(rest) > _CHUNK:
            raise ValueError(f"{name}, line {line}: the row is longer than {_CHUNK:,} bytes: this is no word vector.")
        yield rows
    if rest:
        yield [rest]


def _word_with_spaces(location: str, row: bytes, layout: _Layout, wanted: set[bytes] | None) -> bytes:
    """The word of a row that has not one field more than the dimension: it holds spaces, or the row is broken."""
    word, *numbers = row.rsplit(b" ", layout.dimension)
    source = "the first rows have" if layout.rows is None else "the header (line 1) says"
    if len(numbers) < layout.dimension:
        raise ValueError(
            f"{location}: {_shown(word)} is followed by {len(numbers)} fields where {source} {layout.dimension} "
            "numbers: fix or remove the row."
        )
    # A row with too many numbers would pass as one whose word ends in them, and the real word would be missing.
    if (wanted is None or word not in wanted) and any(
        not field or _FRACTION.fullmatch(field) for field in word.split(b" ")[1:]
    ):
        raise ValueError(
            f"{location}: {_shown(word.partition(b' ')[0])} is followed by {row.count(b' ')} fields where {source} "
            f"{layout.dimension} numbers: fix or remove the row."
        )
    return word


def _parse(name: str, rows: list[bytes], lines: list[int]) -> npt.NDArray[np.float32]:
    """Rows of numbers as one array. (rows, dimension)"""
    try:
        numbers = np.loadtxt(rows, dtype=np.float32, comments=None, delimiter=" ", ndmin=2, encoding="ascii")
    except ValueError as error:
        line, field = next(
            (line, field)
            for line, row in zip(lines, rows, strict=True)
            for field in row.split(b" ")
            if not _NUMBER.fullmatch(field)
        )
        raise ValueError(f"{name}, line {line}: {_shown(field)} is not a number: fix or remove the row.") from error
    _check_finite(name, "line", numbers, lines)
    return numbers


def _read_binary(name: str, chunks: Iterable[bytes], layout: _Layout, kept: _Kept) -> None:
    assert layout.rows is not None
    size = 4 * layout.dimension
    row, rest = 0, b""
    for chunk in chunks:
        buffer = rest + chunk
        begin = 0
        rows, numbers = [], []
        while row < layout.rows and not kept.full:
            space = buffer.find(b" ", begin)
            end = space + 1 + size
            if space < 0 or end > len(buffer):
                break
            row += 1
            # The word2vec tool ends each row with a line end, gensim does not.
            if kept.take(buffer[begin:space].lstrip(b"\n"), row):
                rows.append(row)
                numbers.append(buffer[space + 1 : end])
            begin = end
        if numbers:
            batch = np.frombuffer(b"".join(numbers), dtype="<f4").reshape(-1, layout.dimension)  # (rows, dimension)
            _check_finite(name, "row", batch, rows)
            kept.add(batch.astype(np.float32, copy=False))
        if kept.full or row == layout.rows:
            return
        rest = buffer[begin:]
        if len(rest) > size + _CHUNK:
            raise ValueError(f"{name}, row {row + 1}: no word ends within {_CHUNK:,} bytes: this is no word2vec file.")
    raise ValueError(
        f"{name} is cut off in row {row + 1:,} of the {layout.rows:,} that its header says: download it again."
    )


def _check_finite(name: str, unit: str, numbers: npt.NDArray[np.float32], rows: list[int]) -> None:
    finite = np.isfinite(numbers)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name}, {unit} {rows[row]}: number {column + 1} is not a finite float32 ({numbers[row, column]}): "
            "fix or remove the row."
        )


def _shown(field: bytes) -> str:
    text = field.decode(errors="backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "...")
