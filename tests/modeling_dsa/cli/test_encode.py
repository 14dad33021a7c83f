"""`dsa encode` from outside: every kind of input and output, stops, processes, memory, and every mistake."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import datasets
import huggingface_hub.constants
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from small_encoders import many_sentences, save_encoder
from upath import UPath

from modeling_dsa.batching_dsa import Vectors
from modeling_dsa.cli.main import main
from modeling_dsa.encoding.encoder import SentenceEncoder

DSA = Path(sysconfig.get_path("scripts")) / "dsa"
ENVIRONMENT = os.environ | {"HF_HUB_OFFLINE": "1"}
SENTENCES = many_sentences(120)
SHARDS = [f"vectors-00000{number}.parquet" for number in range(4)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("model") / "small")


@pytest.fixture(scope="module")
def expected(model: Path) -> Vectors:
    return SentenceEncoder.from_pretrained(model).encode(SENTENCES)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    return path


def command(*words: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    call = [str(DSA), "encode", *map(str, words)]
    return subprocess.run(call, env=ENVIRONMENT | variables, capture_output=True, text=True, timeout=240)


def run(*words: object) -> int:
    return main(["encode", *map(str, words)])


def vectors(output: Path) -> Vectors:
    if output.suffix == ".npy":
        found: Vectors = np.load(output)
        return found
    table = pyarrow.parquet.read_table(output)
    assert table["row"].to_pylist() == list(range(table.num_rows))
    return np.array(table["vector"].to_pylist(), table.schema.field("vector").type.value_type.to_pandas_dtype())


def test_an_array_is_written_and_the_command_says_so(
    model: Path,
    lines: Path,
    expected: Vectors,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    output = tmp_path / "new" / "a.npy"
    assert run(lines, output, "--model", model) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "120 sentences" in said.err  # the bar
    assert caplog.messages == [
        "20 of the sentences are empty: their vectors are zeros.",
        f"{output} holds the vectors of 120 sentences, 4 numbers each.",
    ]
    assert np.abs(vectors(output) - expected).max() <= 1e-6
    assert list(output.parent.iterdir()) == [output]


def test_every_input_gives_the_same_vectors(model: Path, lines: Path, expected: Vectors, tmp_path: Path) -> None:
    rows = [{"id": str(number), "text": sentence} for number, sentence in enumerate(SENTENCES)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in rows))
    (tmp_path / "a.tsv").write_text("id\ttext\n" + "".join(f"{row['id']}\t{row['text']}\n" for row in rows))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(lines.read_bytes()))
    (tmp_path / "set").mkdir()
    for path in (tmp_path / "a.parquet", tmp_path / "set" / "train.parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    for name in ("a.jsonl", "a.csv", "a.tsv", "a.txt.gz", "a.parquet", "set"):
        output = tmp_path / f"{name}.npy"
        assert run(tmp_path / name, output, "--model", model) == 0, name
        assert np.abs(vectors(output) - expected).max() <= 1e-6
    assert run(tmp_path / "set", tmp_path / "x.npy", "--model", model, "--text_column", "id", "--split", "train") == 0
    assert np.abs(vectors(tmp_path / "x.npy") - expected).max() > 1e-3


@pytest.mark.parametrize(("output", "dtype"), [("a.npy", "int8"), ("a", "float16")])
def test_options_reach_the_vectors(model: Path, lines: Path, tmp_path: Path, output: str, dtype: str) -> None:
    words = ["--batch_size", 7, "--normalize", "--dtype", dtype, *([] if ".npy" in output else ["--shard_size", 50])]
    assert run(lines, tmp_path / output, "--model", model, *words) == 0
    encoder = SentenceEncoder.from_pretrained(model)
    wanted = encoder.encode(SENTENCES, normalize=True, dtype=dtype)  # type: ignore[arg-type]
    found = vectors(tmp_path / output)
    assert found.dtype == wanted.dtype
    step = {"float16": 1e-3, "int8": 1}[dtype]
    assert np.abs(found.astype(np.float32) - wanted.astype(np.float32)).max() <= step


def test_other_file_systems_are_read_and_written(
    model: Path, lines: Path, expected: Vectors, caplog: pytest.LogCaptureFixture
) -> None:
    home = UPath("memory://encode")
    home.mkdir()
    (home / "a.txt.gz").write_bytes(gzip.compress(lines.read_bytes()))
    rows = pyarrow.table({"text": SENTENCES})
    with (home / "a.parquet").open("wb") as file:
        pyarrow.parquet.write_table(rows, file)
    for name in ("a.txt.gz", "a.parquet"):
        assert run(home / name, home / "new" / f"{name}.npy", "--model", model) == 0
        with (home / "new" / f"{name}.npy").open("rb") as file:
            assert np.abs(np.load(file) - expected).max() <= 1e-6
    words = [home / "a.parquet", home / "shards", "--model", model, "--shard_size", 40]
    assert run(*words) == 0
    shards = sorted(path for path in (home / "shards").iterdir() if path.suffix == ".parquet")
    assert [path.name for path in shards] == SHARDS[:3]
    found = pyarrow.concat_tables(pyarrow.parquet.read_table(path.open("rb")) for path in shards)
    assert found["row"].to_pylist() == list(range(120))
    assert np.abs(np.array(found["vector"].to_pylist()) - expected).max() <= 1e-6
    written = [MemoryFileSystem.store[path.path] for path in shards]
    shards[1].unlink()
    assert run(*words) == 0  # a run that was stopped is resumed
    stayed = [MemoryFileSystem.store[path.path] is file for path, file in zip(shards, written, strict=True)]
    assert stayed == [True, False, True]
    assert run(*words, "--normalize") == 2
    assert "memory://encode/shards holds vectors of another run, which differs in its options" in caplog.messages[-1]
    assert run(home / "a.txt.gz", home / "new" / "a.parquet.npy", "--model", model) == 2
    assert "a.parquet.npy exists: give --overwrite to replace it" in caplog.messages[-1]
    assert {path.name for path in home.iterdir()} == {"a.txt.gz", "a.parquet", "new", "shards"}


def slow_input(folder: Path, rows: int) -> Path:
    """Enough for a stop in the middle: a few seconds of the small model."""
    path = folder / "many.txt"
    path.write_text("".join(f"{sentence} {row}\n" for row, sentence in enumerate(many_sentences(rows))))
    return path


def hear_interrupts() -> None:
    """A shell that runs the tests in the background has its children ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_and_stop(output: Path, *words: object) -> tuple[int, str, dict[Path, int]]:
    """Start a run, interrupt it after its second shard: its code, what it said, and the times of its files."""
    call = [str(DSA), "encode", *map(str, words)]
    with subprocess.Popen(
        call, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
    ) as process:
        end = time.monotonic() + 120
        while not (output / SHARDS[1]).exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    return process.returncode, said, {path: path.stat().st_mtime_ns for path in sorted(output.glob("vectors-*"))}


@pytest.mark.slow
def test_stopped_run_goes_on_to_the_same_files(model: Path, tmp_path: Path) -> None:
    many, output = slow_input(tmp_path, 40_000), tmp_path / "a"
    words = [many, output, "--model", model, "--shard_size", 2000]
    code, said, finished = start_and_stop(output, *words)
    assert 2 <= len(finished) < 20
    assert code == 130
    assert said.splitlines()[-1] == "Stopped; the same command resumes after the last shard."
    assert not list(output.glob(".*"))
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert command(many, tmp_path / "b", *words[2:]).returncode == 0
    names = [path.name for path in sorted((tmp_path / "b").iterdir())]
    assert [path.name for path in sorted(output.iterdir())] == names
    assert len(names) == 21
    for name in names:
        assert (output / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.slow
def test_interrupt_leaves_no_half_array(model: Path, tmp_path: Path) -> None:
    many = slow_input(tmp_path, 60_000)
    call = [str(DSA), "encode", str(many), str(tmp_path / "a.npy"), "--model", str(model)]
    with subprocess.Popen(
        call, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
    ) as process:
        while not list(tmp_path.glob(".unfinished-*")) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "Stopped; nothing was written."
    assert list(tmp_path.iterdir()) == [many]


@pytest.mark.slow
def test_an_object_store_has_whole_shards_whatever_is_killed(model: Path, tmp_path: Path) -> None:
    server = pytest.importorskip("moto.server", reason="moto, a server with the interface of S3, is not installed")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    service = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    service.start()
    url = "http://{}:{}".format(*service.get_host_and_port())
    keys = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    store = s3fs.S3FileSystem(key="user", secret="secret", endpoint_url=url, use_listings_cache=False)
    variables = {"AWS_ENDPOINT_URL": url, **keys}
    try:
        store.mkdir("bucket")
        store.put_file(str(slow_input(tmp_path, 20_000)), "bucket/many.txt")
        words = ["s3://bucket/many.txt", "s3://bucket/vectors", "--model", model, "--shard_size", 1000]
        with subprocess.Popen([str(DSA), "encode", *map(str, words)], env=ENVIRONMENT | variables) as process:
            while len(store.glob("bucket/vectors/vectors-*")) < 2 and process.poll() is None:
                time.sleep(0.005)
            process.kill()
        assert 2 <= len(store.glob("bucket/vectors/vectors-*")) < 20
        done = command(*words, **variables)
        assert done.returncode == 0, done.stderr
        store.get("bucket/vectors", str(tmp_path / "there"), recursive=True)
        assert command(tmp_path / "many.txt", tmp_path / "here", *words[2:]).returncode == 0
        names = [path.name for path in sorted((tmp_path / "here").glob("vectors-*"))]
        assert [path.name for path in sorted((tmp_path / "there").glob("vectors-*"))] == names
        for name in names:
            assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
        mistyped = command(words[0], "s3://buckets/vectors", *words[2:], **variables)
        assert mistyped.returncode == 2
        assert "s3://buckets/vectors cannot be written" in mistyped.stderr
        assert store.ls("") == ["bucket"]
    finally:
        service.stop()


def test_two_processes_share_the_shards(
    model: Path,
    lines: Path,
    expected: Vectors,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One after another: they need not know of each other. At once they run in a snippet of the site."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        assert run(lines, tmp_path / "a", "--model", model, "--shard_size", 40) == 0
        assert ("sentences/s" in capsys.readouterr().err) == (rank == 0)
    assert f"{tmp_path / 'a'} holds process 1's part of the vectors of 120 sentences" in caplog.messages[-1]
    assert [path.name for path in sorted((tmp_path / "a").glob("*.parquet"))] == SHARDS[:3]
    assert np.abs(vectors(tmp_path / "a") - expected).max() <= 1e-6


@pytest.mark.slow
def test_memory_stays_flat(model: Path, tmp_path: Path) -> None:
    peaks = []
    for rows in (20_000, 200_000):
        many = slow_input(tmp_path, rows)
        call = [sys.executable, "-c", PEAK, "encode", many, tmp_path / f"{rows}.npy", "--model", model]
        done = subprocess.run([*map(str, call)], env=ENVIRONMENT, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) / 1024)
    # Ten times the sentences: their texts alone are 5 MB more, and their vectors 3 MB.
    assert peaks[1] - peaks[0] < 30, peaks


PEAK = """
import resource, sys
from modeling_dsa.cli.main import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


@pytest.fixture
def mistakes(model: Path, lines: Path, tmp_path: Path) -> list[tuple[list[object], str]]:
    (tmp_path / "bad.txt").write_bytes(b"good\nbad \xff\n")
    (tmp_path / "a.csv").write_text("id,text\n1,a\n")
    (tmp_path / "there.npy").write_text("")
    empty = tmp_path / "no model"
    empty.mkdir()
    output = tmp_path / "out.npy"
    return [
        ([tmp_path / "no.txt", output, "--model", model], f"There is no file {tmp_path / 'no.txt'}: give"),
        (
            [tmp_path / "a.csv", output, "--model", model, "--text_column", "txt"],
            "has no column 'txt': it has id, text; did you mean 'text'?",
        ),
        ([tmp_path / "bad.txt", output, "--model", model], "bad.txt, line 2 is not UTF-8: save it as UTF-8."),
        ([lines, tmp_path / "there.npy", "--model", model], "there.npy exists: give --overwrite to replace it"),
        ([lines, tmp_path / "out.csv", "--model", model], "out.csv has an unsupported extension: give a file.npy"),
        ([lines, output, "--model", empty], "no model has no config.json: give the folder of a saved model."),
        (
            [lines, output, "--model", tmp_path / "nowhere"],
            "nowhere is no folder here, and on the Hub its config.json",
        ),
        (["org/nowhere", output, "--model", model], "org/nowhere is no file, and no data set that can be read ("),
        (["memory://no.txt", output, "--model", model], "There is no file memory://no.txt: give"),
        (
            [lines, "gs://bucket/a.npy", "--model", model],
            "gs://bucket/a.npy needs a package that is missing: Please in",
        ),
    ]


def test_mistakes_are_one_sentence_and_leave_nothing(
    mistakes: list[tuple[list[object], str]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for constants in (huggingface_hub.constants, datasets.config):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # else the Hub is asked five times
    before = set(tmp_path.rglob("*"))
    for words, message in mistakes:
        assert run(*words) == 2, words
        assert message in caplog.messages[-1]
        assert "\n" not in caplog.messages[-1]
        assert set(tmp_path.rglob("*")) == before


def test_array_is_not_for_several_processes(
    model: Path, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(lines, tmp_path / "a.npy", "--model", model) == 2
    assert caplog.messages[-1].endswith("a.npy is one file, which 2 processes cannot write: give a folder.")
    assert run(lines, tmp_path / "a.npy", "--model", model, "--shard_size", 5) == 2
    assert caplog.messages[-1].endswith("a.npy is one file: leave --shard_size out, or give a folder.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.txt", "a.npy"], "the following arguments are required: --model"),
        (["a.txt", "a.npy", "--model", "m", "--dtype", "int4"], "argument --dtype: invalid choice: 'int4'"),
        (["a.txt", "a.npy", "--model", "m", "--batch_size", "0"], "--batch_size: '0' is no whole number from 1"),
        (["a.txt", "a.npy", "--model", "m", "--shard_size", "x"], "--shard_size: 'x' is no whole number from 1"),
    ],
)
def test_mistakes_of_the_command_line(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*words)
    assert stopped.value.code == 2
    first, second = capsys.readouterr().err.splitlines()
    assert message in first
    assert re.fullmatch(r"See dsa encode --help\.", second)
