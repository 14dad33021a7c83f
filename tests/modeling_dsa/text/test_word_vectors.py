"""modeling_dsa.text.word_vectors: every format, broken rows, memory, a naive parser, real GloVe."""

import gzip
import logging
import re
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modeling_dsa.text.word_vectors import WordVectors, read_vectors

GLOVE = Path(__file__).parents[4] / "shared" / "data" / "glove" / "glove.6B.55k.zip"

ROWS: list[tuple[str, list[float]]] = [
    ("the", [0.25, -1.5, 3e-05]),
    (",", [0.0, 1.0, -2.0]),
    ("straße", [1e10, -0.125, 7.0]),
    (". . .", [1.5, 2.5, 3.5]),
    ("at name@domain.com", [-4.5, 5.5, -6.5]),
    ("a\u00a0b\u0085c\u2028d\x0be", [0.5, 0.75, 0.875]),
    ("42", [8.0, 9.0, 10.0]),
]
WITHOUT_SPACES = [(word, numbers) for word, numbers in ROWS if " " not in word]


def as_text(rows: Sequence[tuple[str, Sequence[float]]], header: bool = False, end: str = "\n") -> bytes:
    lines = [" ".join([word, *map(repr, numbers)]) for word, numbers in rows]
    if header:
        lines.insert(0, f"{len(rows)} {len(rows[0][1])}")
    return (end.join(lines) + end).encode()


def as_binary(rows: Sequence[tuple[str, Sequence[float]]], end: bytes = b"\n") -> bytes:
    head = f"{len(rows)} {len(rows[0][1])}\n".encode()
    return head + b"".join(
        word.encode() + b" " + struct.pack(f"<{len(numbers)}f", *numbers) + end for word, numbers in rows
    )


def as_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write(folder: Path, content: bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def read(path: Path | str, words: Sequence[str] | set[str] | None = None, max_words: int | None = None) -> WordVectors:
    return read_vectors(path, words=words, max_words=max_words, progress=False)


def check(result: WordVectors, rows: Sequence[tuple[str, Sequence[float]]]) -> None:
    assert result.words == [word for word, _ in rows]
    assert result.vectors.dtype == np.float32
    np.testing.assert_array_equal(result.vectors, np.array([numbers for _, numbers in rows], dtype=np.float32))
    assert result.dimension == len(rows[0][1])


Case = tuple[bytes, list[tuple[str, list[float]]]]
FORMATS: dict[str, Case] = {
    "glove": (as_text(ROWS), ROWS),
    "glove, no end of the last line": (as_text(ROWS)[:-1], ROWS),
    "glove, CRLF": (as_text(ROWS, end="\r\n"), ROWS),
    "glove, blank lines at the end": (as_text(ROWS) + b"\n\r\n", ROWS),
    "glove, byte order mark": (b"\xef\xbb\xbf" + as_text(ROWS), ROWS),
    "word2vec text": (as_text(ROWS, header=True), ROWS),
    "word2vec text, CRLF": (as_text(ROWS, header=True, end="\r\n"), ROWS),
    "fastText, a space at the end of rows": (as_text(ROWS, header=True, end=" \n"), ROWS),
    "word2vec binary of the C tool": (as_binary(WITHOUT_SPACES), WITHOUT_SPACES),
    "word2vec binary of gensim": (as_binary(WITHOUT_SPACES, end=b""), WITHOUT_SPACES),
}


@pytest.mark.parametrize(
    ("name", "packing"),
    [
        *((name, "plain") for name in FORMATS),
        *((name, packing) for name in ("word2vec text", "word2vec binary of gensim") for packing in ("gzip", "zip")),
    ],
)
def test_reads_each_format_whatever_the_name(tmp_path: Path, name: str, packing: str) -> None:
    content, rows = FORMATS[name]
    path = tmp_path / "vectors"
    if packing == "plain":
        path.write_bytes(content)
    elif packing == "gzip":
        path.write_bytes(gzip.compress(content))
    else:
        as_zip(path, {"__MACOSX/._inside": b"\0", "inside": content})
    check(read(path), rows)
    check(read(str(path), words={"42", "the", "straße", "absent"}), [rows[0], rows[2], rows[-1]])
    check(read(path, max_words=2), rows[:2])
    check(read(path, words=["42", "straße", "the"], max_words=2), [rows[0], rows[2]])
    check(read(path, max_words=100), rows)


def test_words_with_spaces_are_found_by_their_whole_name(tmp_path: Path) -> None:
    path = write(tmp_path, as_text([*ROWS, (".", [1.0, 1.0, 1.0]), ("at", [2.0, 2.0, 2.0])]))
    check(read(path, words=["at name@domain.com", ". . ."]), [ROWS[3], ROWS[4]])
    check(read(path, words=["at", "."]), [(".", [1.0, 1.0, 1.0]), ("at", [2.0, 2.0, 2.0])])
    versions = write(tmp_path, as_text([*ROWS, ("version 2.0", [1.0, 1.0, 1.0])]))
    check(read(versions, words=["version 2.0"]), [("version 2.0", [1.0, 1.0, 1.0])])
    check(read(write(tmp_path, as_text([ROWS[3], ROWS[4], ROWS[0]]))), [ROWS[3], ROWS[4], ROWS[0]])


def test_a_repeated_word_keeps_its_first_row(tmp_path: Path) -> None:
    rows = [("a", [1.0, 2.0]), ("b", [3.0, 4.0]), ("a", [5.0, 6.0]), ("c", [7.0, 8.0])]
    kept = [rows[0], rows[1], rows[3]]
    for content in (as_text(rows), as_text(rows, header=True), as_binary(rows)):
        path = write(tmp_path, content)
        check(read(path), kept)
        check(read(path, max_words=3), kept)
        check(read(path, words=["c", "a"]), [rows[0], rows[3]])


def test_a_first_row_like_a_header_is_a_row_where_the_next_rows_have_one_number(tmp_path: Path) -> None:
    check(read(write(tmp_path, b"2000 7\nthe 5\nof 6.5\n")), [("2000", [7.0]), ("the", [5.0]), ("of", [6.5])])
    check(read(write(tmp_path, b"2 1\nthe 5\nof 6.5\n")), [("the", [5.0]), ("of", [6.5])])
    check(read(write(tmp_path, b"1 2 3\n4 5 6\n")), [("1", [2.0, 3.0]), ("4", [5.0, 6.0])])


def test_one_odd_first_row_does_not_set_the_dimension(tmp_path: Path) -> None:
    rows = "".join(f"w{i} 0.5 {i}.5\n" for i in range(5)).encode()
    assert read(write(tmp_path, b"route 66 0.1 0.2\n" + rows)).words[0] == "route 66"
    with pytest.raises(ValueError, match="line 1: 'cut' is followed by 1 fields where the first rows have 2 numbers"):
        read(write(tmp_path, b"cut 0.1\n" + rows))


def test_rows_after_every_wanted_one_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, as_text(ROWS) + b"broken 1.5\n")
    check(read(path, words=["the", "42"]), [ROWS[0], ROWS[-1]])
    check(read(path, max_words=len(ROWS)), ROWS)
    # Reading on for a word that is not there passes the broken row, which is not wanted.
    check(read(path, words=["the", "absent"]), ROWS[:1])
    cut = write(tmp_path, as_binary(WITHOUT_SPACES)[:-20])
    check(read(cut, words=["the"]), ROWS[:1])


# Content, the wanted words, the sentence (a pattern) after the file's name.
BROKEN: dict[str, tuple[bytes, list[str] | None, str]] = {
    "too few numbers": (b"a 1.5 2\nb 3.5\nc 4 5\n", None, ", line 2: 'b' is followed by 1 fields where the first rows"),
    "a word alone": (
        b"a 1.5 2\nb\nc 4 5\n",
        ["b"],
        ", line 2: 'b' is followed by 0 fields where the first rows have 2",
    ),
    "too many numbers": (b"a 1.5 2\nb 3.5 4 5\nc 4 5\n", None, ", line 2: 'b' is followed by 3 fields where the first"),
    "too many, wanted": (
        b"a 1.5 2\nb 3.5 4 5\nc 4 5\n",
        ["b"],
        ", line 2: 'b' is followed by 3 fields where the first",
    ),
    "cut off": (b"a 1.5 2\nb 3 4\nc 4", None, ", line 3: 'c' is followed by 1 fields"),
    "two spaces": (b"a 1.5 2\nb  3 4\nc 4 5\n", ["b"], ", line 2: 'b' is followed by 3 fields"),
    "two spaces, a number short": (b"a 1 2\nb  3\nc 4 5\n", ["b"], ", line 2: '' is not a number"),
    "no number": (b"a 1 2\nb 3 4\nc 4 x5\nd 1 1\n", None, ", line 3: 'x5' is not a number"),
    "no ASCII": ("a 1 2\nb 3 4\nc 4 ٥\nd 1 1\n".encode(), None, ", line 3: '٥' is not a number"),
    "Python's underscore": (b"a 1 2\nb 3 4\nc 4 1_0\nd 1 1\n", None, ", line 3: '1_0' is not a number"),
    "a carriage return": (b"a 1 2\nb 3\r 4\nc 4 5\n", None, r", line 2: '3\\r' is not a number"),
    "long": (b"a 1 2\nb 3 4\nc 4 " + b"x" * 99 + b"\n", None, r", line 3: 'x{40}\.\.\.' is not a number"),
    "nan": (b"a 1 2\nb 3 nan\nc 4 5\n", None, r", line 2: number 2 is not a finite float32 \(nan\)"),
    "-nan": (b"a 1 2\nb -nan -nan\n", ["b"], r", line 2: number 1 is not a finite float32 \(nan\)"),
    "infinite": (b"a 1 2\nb 3 -inf\nc 4 5\n", None, r", line 2: number 2 is not a finite float32 \(-inf\)"),
    "beyond float32": (b"a 1 2\nb 3 1e39\nc 4 5\n", None, r", line 2: number 2 is not a finite float32 \(inf\)"),
    "header's dimension is larger": (
        b"2 3\na 1 2\nb 3 4\n",
        None,
        r", line 2: 'a' .* 2 fields where the header \(line 1",
    ),
    "header's dimension is smaller": (
        b"2 2\na 1.5 2.5 3.5\nb 3.5 4.5 5.5\n",
        None,
        ", line 2: 'a' .* 3 fields where the",
    ),
    "fewer rows": (
        b"1000 2\na 1 2\nb 3 4\n",
        None,
        r" ends after 2 rows where its header \(line 1\) says 1,000: ",
    ),
    "more rows": (b"1 2\na 1 2\nb 3 4\n", None, r" has 2 rows where its header \(line 1\) says 1: "),
    "no text row": (b"2 2\na x y\nb z z\n", None, ", line 2: 'x' is not a number"),
    "empty": (b"", None, " is empty"),
    "blank": (b" \n\r\n", None, " is empty"),
    "header alone": (b"400000 300\n", None, " has a header line but no vectors"),
    "no rows": (b"0 300\n", None, " has a header line but no vectors"),
    "prose": (
        b"These are words.\nNo numbers here.\n",
        None,
        " is no file of word vectors: its first rows are no words",
    ),
    "tabs": (b"a\t1\t2\nb\t3\t4\n", None, " is no file of word vectors: .* single spaces"),
    "UTF-16": ("a 1 2\nb 3 4\n".encode("utf-16"), None, " is no file of word vectors"),
    "fastText model": (
        b"\xba\x16\x4f\x2f\x0c\0\0\0d\0\0\0" + b"</s>\0\1\0\0\0\0\0\0\0\0" * 9,
        None,
        r" is no file of word vectors: .*take the \.vec",
    ),
    "none found": (as_text(ROWS), ["The", "Of", "[UNK]"], " has none of the 2 wanted words, such as 'The'"),
    "nameless rows only": (b" 0.5 0.5\n 0.25 1.5\n", None, " has no row with a word"),
    "binary, cut in a row": (
        as_binary(WITHOUT_SPACES)[:-5],
        None,
        " is cut off in row 5 of the 5 that its header says",
    ),
    "binary, cut in a word": (
        as_binary(WITHOUT_SPACES)[:-15],
        None,
        " is cut off in row 5 of the 5 that its header says",
    ),
    "binary, nan": (as_binary([("a", [1, 2]), ("b", [1, float("nan")])]), None, r", row 2: number 2 is not a finite"),
    "binary, no words": (b"9 2\na \0\0\0\0\0\0\0\0" + b"\xff" * (1 << 20), None, ", row 2: no word ends within"),
    "binary, none found": (as_binary(WITHOUT_SPACES), ["The"], " has none of the 1 wanted words"),
    "one endless row": (
        b"a 1 2\nb 3 4\n" + b"1.5 " * (1 << 17),
        None,
        ", line 3: the row is longer than 262,144 bytes",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_refused_in_one_sentence(tmp_path: Path, case: tuple[bytes, list[str] | None, str]) -> None:
    content, words, sentence = case
    path = write(tmp_path, content)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}{sentence}[^\n]*$"):
        read(path, words=words)


def test_line_numbers_go_on_over_chunks(tmp_path: Path) -> None:
    rows = "".join(f"w{i} 0.{i} -0.{i}\n" for i in range(100_000)).encode()
    assert len(rows) > 2 << 20
    with pytest.raises(ValueError, match="line 100001: 'x' is not a number"):
        read(write(tmp_path, rows + b"last 0.5 x\n"))
    with pytest.raises(ValueError, match="line 100002: 'x' is not a number"):
        read(write(tmp_path, b"100001 2\n" + rows + b"last 0.5 x\n"), words=["last"])


def test_rows_that_no_text_can_ask_for_are_left_out_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [b"a 1 2", b"\xe9\x80 3 4", b" 5 6", b"b 7 8", b"\xed\xa0\x80 9 9"]
    path = write(tmp_path, b"\n".join(rows))
    with caplog.at_level(logging.WARNING):
        check(read(path), [("a", [1.0, 2.0]), ("b", [7.0, 8.0])])
    assert caplog.messages == [f"{path}: left out 3 rows whose word is empty or not UTF-8, the first at line 2."]
    check(read(path, max_words=2), [("a", [1.0, 2.0]), ("b", [7.0, 8.0])])
    # Rows that nobody wants do not matter; a lone surrogate (half a character) is no word of a file.
    caplog.clear()
    check(read(path, words=["b", "no such word"]), [("b", [7.0, 8.0])])
    assert caplog.messages == []
    check(read(path, words=["b", "\ud800", ""]), [("b", [7.0, 8.0])])


def test_an_archive_with_several_files_asks_for_one(tmp_path: Path) -> None:
    other = [("x", [1.0])]
    path = as_zip(tmp_path / "both.zip", {"a.50d.txt": as_text(ROWS), "b/c.txt": as_text(other)})
    with pytest.raises(
        ValueError, match=r"holds several files \(a\.50d\.txt, b/c\.txt\): choose one as .*zip:a\.50d\.txt"
    ):
        read(path)
    check(read(f"{path}:a.50d.txt"), ROWS)
    check(read(f"{path}:b/c.txt"), other)
    with pytest.raises(ValueError, match=r"has no file 'c\.txt': it holds a\.50d\.txt, b/c\.txt"):
        read(f"{path}:c.txt")
    with pytest.raises(ValueError, match=r"both\.zip:a\.50d\.txt, line 3"):
        read(f"{as_zip(path, {'a.50d.txt': b'a 1 2' + bytes([10]) + b'b 1 2' + bytes([10]) + b'c 1 x'})}:a.50d.txt")
    with pytest.raises(ValueError, match="zip archive without a file"):
        read(as_zip(path, {}))
    with pytest.raises(ValueError, match="is no zip archive"):
        read(f"{write(tmp_path, as_text(ROWS), 'text.zip')}:a.txt")


def cut_in_half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip_a_byte(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [cut_in_half, flip_a_byte])
@pytest.mark.parametrize("name", ["v.gz", "v.zip"])
def test_a_damaged_archive_is_told(tmp_path: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    generator = np.random.default_rng(0)
    content = as_text([(f"w{i}", generator.normal(size=3).tolist()) for i in range(1000)])
    path = tmp_path / name
    if name == "v.gz":
        path.write_bytes(gzip.compress(content))
    else:
        as_zip(path, {"v.txt": content})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"v\.(gz|zip) is damaged or cut off \(.*\): download it again"):
        read(path)


def test_wrong_arguments(tmp_path: Path) -> None:
    path = write(tmp_path, as_text(ROWS))
    with pytest.raises(FileNotFoundError, match=r"There is no file .*absent\.txt"):
        read(tmp_path / "absent.txt")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*absent\.zip:"):
        read(tmp_path / "absent.zip:a.txt")
    with pytest.raises(ValueError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(ValueError, match="words is one string"):
        read_vectors(path, words="the")
    with pytest.raises(ValueError, match="words is empty"):
        read(path, words=[])
    with pytest.raises(ValueError, match="max_words is 0"):
        read(path, max_words=0)


def test_progress_counts_the_bytes_of_the_file_and_can_be_off(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, as_text([(f"w{i}", [0.5] * 50) for i in range(5000)]), "some.txt")
    packed = write(tmp_path, gzip.compress(path.read_bytes()), "some.gz")
    for file in (path, packed):
        read_vectors(file)
        shown = capfd.readouterr().err
        assert f"Reading {file.name}: 100%" in shown
    read_vectors(path, progress=False)
    assert capfd.readouterr().err == ""


def test_vectors_are_writable_and_fit_torch(tmp_path: Path) -> None:
    result = read(write(tmp_path, as_text(ROWS)))
    tensor = torch.from_numpy(result.vectors)
    tensor[0, 0] = 5.0
    assert result.vectors[0, 0] == 5.0
    assert result.vectors.flags.c_contiguous


@pytest.mark.parametrize("share", ["few", "all"])
@pytest.mark.parametrize("binary", [False, True])
def test_memory_is_that_of_the_kept_rows(tmp_path: Path, share: str, binary: bool) -> None:
    rows, dimension = 40_000, 100
    numbers = [(i % 97 - 48) / 64 for i in range(dimension)]
    row = " ".join(map(repr, numbers)).encode()
    if binary:
        packed = struct.pack(f"<{dimension}f", *numbers)
        content = f"{rows} {dimension}\n".encode() + b"".join(b"w%d %s\n" % (i, packed) for i in range(rows))
    else:
        content = b"".join(b"w%d %s\n" % (i, row) for i in range(rows))
    path = write(tmp_path, content)
    size = len(content)
    assert size > 15 << 20
    del content
    words = None if share == "all" else [f"w{i}" for i in range(0, rows, 100)]
    tracemalloc.start()
    result = read(path, words=words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = rows if words is None else len(words)
    assert result.vectors.shape == (kept, dimension)
    # The rows with an eighth of spare room, 200 bytes for each word, and the chunks in hand.
    assert peak < kept * (dimension * 4 * 1.125 + 200) + (2 << 20)
    if share == "few":
        assert peak < size / 2


def naive(content: bytes, dimension: int, header: bool, words: set[str] | None, limit: int | None) -> WordVectors:
    kept: dict[str, npt.NDArray[np.float32]] = {}
    for line in content.split(b"\n")[1 if header else 0 :]:
        if not line:
            continue
        word, *numbers = line.rsplit(b" ", dimension)
        text = word.decode()
        if (words is None or text in words) and text not in kept:
            kept[text] = np.array([float(number) for number in numbers], dtype=np.float32)
        if len(kept) == limit:
            break
    return WordVectors(list(kept), np.array(list(kept.values())))


# Words may hold single spaces inside, but no part that reads as a number: it would count as one too many. A byte order
# mark is left out too: at the start of a file it is no part of the first word.
PARTS = st.text(
    st.characters(exclude_characters=" \n\r\ufeff", exclude_categories=["Cs"]), min_size=1, max_size=6
).filter(lambda part: not re.fullmatch(r"[-+]?([\d.]+(e.*)?|nan|inf)", part, re.IGNORECASE))
WORDS = st.lists(PARTS, min_size=1, max_size=3).map(" ".join)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[tuple[str, list[float]]], int]:
    dimension = draw(st.integers(1, 5))
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = st.tuples(WORDS, st.lists(floats, min_size=dimension, max_size=dimension))
    return draw(st.lists(row, min_size=3, max_size=12)), dimension


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=files(), header=st.booleans(), final=st.booleans(), limit=st.sampled_from([None, 1, 2, 5]), data=st.data())
def test_equals_a_naive_parser(
    tmp_path: Path,
    file: tuple[list[tuple[str, list[float]]], int],
    header: bool,
    final: bool,
    limit: int | None,
    data: st.DataObject,
) -> None:
    rows, dimension = file
    content = as_text(rows, header)[: None if final else -1]
    path = write(tmp_path, content)
    wanted = data.draw(st.none() | st.sets(st.sampled_from([word for word, _ in rows]), min_size=1))
    expected = naive(content, dimension, header, wanted, limit)
    result = read(path, words=None if wanted is None else wanted | {"absent"}, max_words=limit)
    assert result.words == expected.words
    np.testing.assert_array_equal(result.vectors, expected.vectors)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(PARTS, min_size=1, max_size=12, unique=True),
    dimension=st.integers(2, 40),
    seed=st.integers(0, 2**32 - 1),
    end=st.sampled_from([b"", b"\n"]),
)
def test_binary_gives_every_bit_back(tmp_path: Path, texts: list[str], dimension: int, seed: int, end: bytes) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(texts), dimension)).astype(np.float32)
    rows = [(word, row.tolist()) for word, row in zip(texts, vectors, strict=True)]
    result = read(write(tmp_path, as_binary(rows, end)))
    assert result.words == texts
    np.testing.assert_array_equal(result.vectors, vectors)


@pytest.mark.skipif(not GLOVE.exists(), reason="needs the project's shared data: data/glove/glove.6B.55k.zip")
def test_real_glove_rows_are_exact() -> None:
    result = read(GLOVE)
    assert result.vectors.shape == (55_493, 100)
    assert len(set(result.words)) == 55_493
    assert result.words[:3] == ["the", ",", "."]
    with zipfile.ZipFile(GLOVE) as archive:
        rows = archive.read("glove.6B.100d.txt").split(b"\n")
    for index in range(0, 55_493, 50):
        word, *numbers = rows[index].split(b" ")
        assert result.words[index] == word.decode()
        np.testing.assert_array_equal(result.vectors[index], np.array([float(n) for n in numbers], dtype=np.float32))
    wanted = result.words[::1000]
    some = read(GLOVE, words=set(wanted))
    assert some.words == wanted
    np.testing.assert_array_equal(some.vectors, result.vectors[::1000])
    first = read(GLOVE, max_words=500)
    assert first.words == result.words[:500]
    np.testing.assert_array_equal(first.vectors, result.vectors[:500])
