"""What is given broken files: every reader of the package, the tokenizer, the handler and the demo.

A target reads a file. It ends in silence or with an error that a user reads as one sentence; whatever else it raises is
a fault, and so is a wait of seconds.
"""

import csv
import gzip
import io
import json
import random
import shutil
import traceback
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import torch
from safetensors import SafetensorError
from small_grids import GRID
from small_repositories import save_system

from modeling_dsa import DSAModel
from modeling_dsa.encoding.sources import open_sentences
from modeling_dsa.files.columns import find_columns
from modeling_dsa.files.loading import load_config, load_model, load_model_and_tokenizer, loading_errors
from modeling_dsa.files.tables import file_table
from modeling_dsa.files.text_files import read_rows
from modeling_dsa.handler import EndpointHandler
from modeling_dsa.prediction.texts import open_texts
from modeling_dsa.shipped.settings import read_recipe
from modeling_dsa.text.tokenization import build_tokenizer
from modeling_dsa.text.word_vectors import read_vectors
from run_glue_style.distillation.teacher_vectors import open_vectors
from run_glue_style.reporting.grid.definition import read_grid
from run_glue_style.tasks.label_inference import infer_labels
from run_glue_style.tasks.nli import NLI

TEXTS = ["A man sleeps.", "", 'He said "no", twice.', "Straße\u2028…"]
ROWS = [{"id": number, "text": text, "label": "yes" if number % 2 else "no"} for number, text in enumerate(TEXTS)]
PAIRS = [
    {"gold_label": label, "sentence1": "A man sleeps.", "sentence2": "He is awake."}
    for label in ("neutral", "-", "entailment", "contradiction")
]
RECIPE = b"# how\nlearning_rate: 0.001\nkernel_sizes: [3, 5]\nschedule: cosine\nmax_train_steps: null\n"


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes:
        seeds: Whole files, by name; what is read is one of them with changes.
        read: Reads a file of that name.
    """

    seeds: Sequence[tuple[str, bytes]]
    read: Callable[[Path], object]


class Fault(Exception):  # noqa: N818  (it is what is looked for)
    """A reader did not take a file as it must."""


def read_or_refuse(target: Target, path: Path) -> bool:
    """Whether a reader reads a file; False where it refuses it with a sentence.

    Raises:
        Fault: It does neither.
    """
    try:
        target.read(path)
    except (ValueError, OSError, SafetensorError) as error:
        said = str(error)
        if isinstance(error, UnicodeError | json.JSONDecodeError) or not said or "\n" in said or len(said) > 2000:
            raise Fault(f"{type(error).__name__}, which is no clear sentence: {said[:300]!r}") from error
        return False
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise Fault("".join(traceback.format_exception(error))[-2000:]) from error
    return True


def targets(folder: Path) -> dict[str, Target]:
    """All targets; some need files in a folder."""
    classifier = save_system(folder, "nli").folder
    parts = {
        "config": ("config.json", _read_model_config),
        "tokenizer": ("tokenizer.json", _read_tokenizer),
        "tokenizer config": ("tokenizer_config.json", _read_tokenizer),
        "weights": ("model.safetensors", load_model),
    }
    of_model = {
        name: Target([(file, (classifier / file).read_bytes())], _in_copy(classifier, read))
        for name, (file, read) in parts.items()
    }
    return {
        "tables of texts": Target(_tables(ROWS), _read_table),
        "pairs": Target(_tables(PAIRS), _read_pairs),
        "word vectors": Target(_vectors(), _read_vectors),
        "teacher vectors": Target([("a.npy", _npy())], lambda path: open_vectors(path).take(np.zeros(1, np.int64))),
        "recipe": Target([("a.yaml", RECIPE)], read_recipe),
        "grid": Target([("a.yaml", GRID.encode())], read_grid),
        **of_model,
        "text to tokens": Target([("a.txt", text.encode()) for text in TEXTS], _tokenize),
        "request to the handler": Target(_requests(), _request(classifier)),
        "text to the demo": Target([("a.json", json.dumps([TEXTS[0], TEXTS[2]]).encode())], _demo(classifier)),
    }


def _tables(rows: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
    """The same rows in every format."""
    header, values = list(rows[0]), [[str(value) for value in row.values()] for row in rows]
    quoted = io.StringIO(newline="")
    csv.writer(quoted, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([header, *values])
    objects = [json.dumps(row) for row in rows]
    parquet = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), parquet, compression="snappy")
    plain = [
        ("a.csv", quoted.getvalue().encode()),
        ("a.tsv", "\r\n".join("\t".join(row) for row in [header, *values]).encode()),
        ("a.jsonl", "\n".join(objects).encode()),
        ("a.json", f"[{', '.join(objects)}]".encode()),
        ("a.txt", "\n".join("\t".join(row) for row in [header, *values]).encode()),
    ]
    return [*plain, ("a.parquet", parquet.getvalue()), ("a.csv.gz", gzip.compress(plain[0][1], mtime=0))]


def _vectors() -> list[tuple[str, bytes]]:
    generator = np.random.default_rng(0)
    rows = {word: generator.normal(size=3).astype("<f4") for word in ("the", "man", ". .", "sleeps")}
    glove = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()).encode()
    binary = b"4 3\n" + b"".join(word.replace(" ", "").encode() + b" " + row.tobytes() for word, row in rows.items())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("glove.txt"), glove)
    return [
        ("a.txt", glove),
        ("a.vec", b"4 3\n" + glove),
        ("a.bin", binary),
        ("a.gz", gzip.compress(glove, mtime=0)),
        ("a.zip", packed.getvalue()),
    ]


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones((5, 3), np.float16))
    return file.getvalue()


def _requests() -> list[tuple[str, bytes]]:
    pair = {"text": "A man sleeps.", "text_pair": "He is awake."}
    bodies: list[Any] = [
        {"inputs": pair},
        {"inputs": [pair, pair], "parameters": {"top_k": None, "function_to_apply": "sigmoid"}},
        {"inputs": ["A man sleeps.", ""], "parameters": {"task": "sentence-embedding", "normalize": True}},
    ]
    return [("a.json", json.dumps(body).encode()) for body in bodies]


def _read_table(path: Path) -> None:
    """As sentences to encode, texts to classify, and examples whose columns and labels are found."""
    ways: list[Callable[[], object]] = [
        lambda: list(open_sentences(str(path)).read()),
        lambda: list(open_texts(str(path), None, [], pairs=False)),
        lambda: infer_labels({"train": file_table(path)}, find_columns(file_table(path))[1]),
    ]
    for way in ways[:-1]:
        with suppress(ValueError):
            way()
    ways[-1]()


def _read_pairs(path: Path) -> None:
    for location, row in file_table(path).read(None):
        NLI.convert(row, location)
    list(read_rows(path, ["sentence1"]))


def _read_vectors(path: Path) -> None:
    with suppress(ValueError):
        read_vectors(path, words=["man", "sleeps"], progress=False)
    found = read_vectors(path, progress=False)
    assert np.isfinite(found.vectors).all()
    assert found.vectors.shape == (len(found.words), found.dimension)


def _in_copy(model: Path, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """Puts a file beside the other files of a model."""

    def act(path: Path) -> object:
        for other in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            if other != path.name and not (path.parent / other).exists():
                shutil.copyfile(model / other, path.parent / other)
        return read(path.parent)

    return act


def _read_model_config(folder: Path) -> None:
    config = load_config(folder)
    with torch.device("meta"), loading_errors("the model"):
        DSAModel(config)


def _read_tokenizer(folder: Path) -> None:
    model, tokenizer = load_model_and_tokenizer(folder)
    encoded = tokenizer(TEXTS[0], TEXTS[2], return_tensors="pt")
    with torch.no_grad():
        assert model(**encoded).logits.isfinite().all()


@cache
def _tokenizers() -> list[Any]:
    words = ["man", "sleeps"]
    made = [build_tokenizer(words, lowercase=True), build_tokenizer(words, lowercase=False, pieces=["##s", "sl"])]
    return [tokenizer.backend_tokenizer for tokenizer in made]


def _tokenize(path: Path) -> None:
    """Each text alone, and repeated: time must not grow faster than the text."""
    text = path.read_bytes().decode("utf-8", "replace")
    for tokenizer in _tokenizers():
        for read in (text, text * (5000 // max(1, len(text)))):
            encoded = tokenizer.encode(read)
            assert all(0 <= first <= end <= len(read) for first, end in encoded.offsets)


def _request(model: Path) -> Callable[[Path], object]:
    handler: list[EndpointHandler] = []

    def act(path: Path) -> object:
        if not handler:
            handler.append(EndpointHandler(str(model)))
        try:
            body = json.loads(path.read_bytes())
        except (ValueError, RecursionError):  # the server's part
            return None
        return json.dumps(handler[0](body), allow_nan=False)

    return act


def _demo(model: Path) -> Callable[[Path], object]:
    def act(path: Path) -> object:
        from reading import load_model, read

        try:
            texts: Any = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return None
        pair: Any = texts if isinstance(texts, list) and len(texts) == 2 else (texts, None)
        return read(*load_model(str(model)), *pair)

    return act


# Whole values that break what expects others.
WORDS: tuple[bytes, ...] = (
    *(b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b"\t", b",", b";", b'"', b"'", b"\\", b" ", b"\n\n\n"),
    *(b"0", b"-1", b"1e999", b"NaN", b"Infinity", b"null", b"true", b"[]", b"{}", b'""', b"no", b"1:30", b"0x10"),
    *(b"9" * 400, b"9" * 5000, b"[" * 3000, b'{"a":' * 2000, b"- " * 2000, b"(" * 500, b"a" * 70_000, b"\n" * 5000),
    *(b"\\ud800", b"\xed\xa0\x80", "é\u0301\u200b漢🐕".encode(), b"../../../../etc/passwd", b"/dev/zero", b"[SEP]"),
    *(b"!!python/object/apply:os.system", b"&a [*a]", b"*b", b"<<: ", b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"{{"),
    *(b"1" + b"0" * 12, b"4294967296", b"-9223372036854775809", b"0.1", b"text", b"label", b"auto_map", b"http://"),
)


def mutated(content: bytes, draw: random.Random) -> bytes:
    """The content with a few changes: bytes, whole values, parts twice or elsewhere, and the end cut off."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        at = draw.randrange(len(changed) + 1)
        end = min(len(changed), at + draw.choice((1, 1, 2, 4, 8, 32, 256)))
        kind = draw.randrange(8)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[at:end] = draw.randbytes(end - at)
        elif kind == 2:
            del changed[at:end]
        elif kind == 3:
            changed[at:at] = changed[at:end] * draw.choice((1, 2, 100))
        elif kind == 4:
            del changed[at:]
        else:
            first, last = _value_at(changed, at) if kind > 5 else (at, at)
            changed[first:last] = draw.choice(WORDS)
    return bytes(changed)


_MARKS = frozenset(b' \t\r\n,:;"{}[]')


def _value_at(content: bytearray, at: int) -> tuple[int, int]:
    """Start and end of the value around an index, as most formats separate them."""
    first = end = at
    while first > 0 and content[first - 1] not in _MARKS:
        first -= 1
    while end < len(content) and content[end] not in _MARKS:
        end += 1
    return first, end
