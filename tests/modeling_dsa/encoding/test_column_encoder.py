"""`ColumnEncoder` under each engine: vectors are `SentenceEncoder`'s, and a dead worker loses and doubles no row."""

import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas
import psutil
import pyarrow
import pyarrow.parquet
import pytest
from pages import SNIPPETS
from small_encoders import SENTENCES, WORDS, save_encoder

from modeling_dsa.encoding.column_encoder import ColumnEncoder
from modeling_dsa.encoding.encoder import SentenceEncoder

TEXTS = [*SENTENCES, None]
FILES, ROWS = 24, 1024


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("model") / "small")


def test_rows_keep_their_columns_and_get_the_vectors_of_their_sentences(model: Path) -> None:
    expected = SentenceEncoder.from_pretrained(model).encode(["" if text is None else text for text in TEXTS])
    sent = pickle.loads(pickle.dumps(ColumnEncoder(str(model), text_column="s", vector_column="v", batch_size=2)))
    rows = sent({"id": list(range(len(TEXTS))), "s": np.array(TEXTS, object)})
    assert list(rows) == ["id", "s", "v"]
    assert np.abs(rows["v"] - expected).max() <= 1e-6
    given = datasets.Dataset.from_dict({"id": [0, 1], "s": ["a dog", ""]})
    assert given.map(sent, batched=True, remove_columns="s").column_names == ["id", "v"]
    for kind in (object, "str"):
        frames = [pandas.DataFrame({"s": pandas.Series(TEXTS[:4], dtype=kind), "id": range(4)}) for _ in range(2)]
        for frame in sent.frames(iter(frames)):
            assert list(frame) == ["s", "id", "v"]
            assert np.abs(np.stack(frame["v"]) - expected[:4]).max() <= 1e-6


def test_arrow_keeps_whole_numbers_beside_missing_ones(model: Path) -> None:
    expected = SentenceEncoder.from_pretrained(model).encode(["" if text is None else text for text in TEXTS])
    encode = ColumnEncoder(str(model))
    ids = pyarrow.array([None, 2**53 + 1, *range(len(TEXTS) - 2)], pyarrow.int64())
    texts = [text if text is None else text.replace("\ud800", "\ufffd") for text in TEXTS]
    table = pyarrow.table({"id": ids, "text": texts})
    batches = table.to_batches(max_chunksize=4)
    for found in (
        encode(table),
        pyarrow.Table.from_batches(encode.record_batches(iter([batches[0].slice(0, 0), *batches]))),
    ):
        assert found.drop_columns("vector") == table
        assert found.schema.field("vector").type == pyarrow.list_(pyarrow.float32())
        assert np.abs(np.array(found["vector"].to_pylist()) - expected).max() <= 1e-6


def test_options_are_those_of_the_encoder(model: Path) -> None:
    expected = SentenceEncoder.from_pretrained(model).encode(["a dog"], normalize=True, dtype="int8")
    encode = ColumnEncoder(str(model), normalize=True, dtype="int8", device="cpu")
    assert (encode({"text": ["a dog"]})["vector"] == expected).all()
    with pytest.raises(NotImplementedError, match="meta tensor"):  # the other device that every machine has
        ColumnEncoder(str(model), device="meta")


def test_a_process_loads_a_model_once(model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    sent = pickle.dumps(ColumnEncoder(str(folder)))
    first = pickle.loads(sent)({"text": ["a dog"]})["vector"]
    shutil.rmtree(folder)
    assert (pickle.loads(sent)({"text": ["a dog"]})["vector"] == first).all()


@pytest.mark.parametrize(
    ("changes", "is_folded"),
    [({}, True), ({"encoder": "bilstm", "hidden_size": 6, "pooling": "max"}, False)],
)
def test_a_worker_folds_the_word_table_where_the_encoder_can(
    changes: dict[str, Any], is_folded: bool, tmp_path: Path
) -> None:
    sent = pickle.loads(pickle.dumps(ColumnEncoder(str(save_encoder(tmp_path / "model", **changes)))))
    assert (sent._loaded().model.folded is not None) == is_folded
    expected = SentenceEncoder.from_pretrained(tmp_path / "model").encode(SENTENCES)
    assert np.abs(sent({"text": SENTENCES})["vector"] - expected).max() <= 1e-6


def test_a_mistake_stops_the_worker(model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    encode = ColumnEncoder(str(folder))
    with pytest.raises(ValueError, match=r"no column 'text': they have id, sentence\."):
        encode({"id": [1], "sentence": ["a"]})
    with pytest.raises(ValueError, match="have a column 'vector': give another vector_column"):
        encode({"text": ["a"], "vector": [1]})
    with pytest.raises(ValueError, match=r"'text' holds one text, .* give map\(\.\.\., batched=True\)"):
        encode({"text": "a man"})
    with pytest.raises(ValueError, match=r"as a pyarrow\.Table, got DataFrame: give a data set with_format\(None\)"):
        encode(pandas.DataFrame({"text": ["a"]}))
    twice = pandas.DataFrame([["a man", "x"], ["a dog", "y"]], columns=["text", "text"])
    with pytest.raises(ValueError, match="have two columns 'text': give one of them another name"):
        next(encode.frames(iter([twice])))
    with pytest.raises(ValueError, match="index 0 is 1, which is no string"):
        encode({"text": [1]})
    shutil.rmtree(folder)
    save_encoder(folder, head_count=1)
    with pytest.raises(ValueError, match="is another model on this worker"):
        pickle.loads(pickle.dumps(encode))({"text": ["a"]})
    with pytest.raises(ValueError, match="is another model on this worker"):
        ColumnEncoder(str(folder), sha256=encode.sha256)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of rows that are worth some seconds of the small model, so that there is a middle of the work."""
    folder = tmp_path_factory.mktemp("data") / "sentences"
    folder.mkdir()
    for file in range(FILES):
        ids = range(file * ROWS, (file + 1) * ROWS)
        texts = [" ".join(WORDS[(row + word) % len(WORDS)] for word in range(row % 31)) + f" {row}" for row in ids]
        numbers = [2**53 + row if row % 2 else None for row in ids]
        table = pyarrow.table({"id": list(ids), "text": texts, "number": numbers})
        # The name of another split is a file like any other.
        pyarrow.parquet.write_table(table, folder / f"{file:02}{'-test' if file == FILES - 1 else ''}.parquet")
    return folder


def script(name: str, model: Path, sentences: Path, folder: Path) -> str:
    """A snippet of the guide with the folders of a test."""
    text = SNIPPETS[name].text
    for shown, used in (("/models/dsa-mini-en", model), ("/data/sentences", sentences), ("/data/", f"{folder}/")):
        assert shown in text
        text = text.replace(shown, str(used))
    return text


def command_line(process: psutil.Process) -> list[str]:
    """None of a process that has just ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def killing_one(
    script: str,
    is_worker: Callable[[list[str]], bool],
    is_in_the_middle: Callable[[], bool],
    **variables: str,
) -> int:
    """Run a script, kill one of its two workers in the middle of the work: the script's exit code."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1"} | variables
    program = psutil.Popen([sys.executable, "-c", script], env=environment)
    try:
        end = time.monotonic() + 300
        workers: list[psutil.Process] = []
        while len(workers) < 2 or not is_in_the_middle():
            assert program.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
            workers = [process for process in program.children(recursive=True) if is_worker(command_line(process))]
        workers[0].kill()
        return int(program.wait(300))
    finally:
        for process in [*program.children(recursive=True), program] if program.is_running() else []:
            process.kill()


def check_all(model: Path, vectors: Path, given: pyarrow.Table) -> None:
    """Each given row is there once, with its vector."""
    given, found = (table.sort_by("id") for table in (given, pyarrow.parquet.read_table(vectors)))
    for name in given.column_names:
        assert found[name].to_pylist() == given[name].to_pylist()
    expected = SentenceEncoder.from_pretrained(model).encode(given["text"].to_pylist(), normalize=True)
    assert np.abs(np.array(found["vector"].to_pylist()) - expected).max() <= 1e-5


@pytest.mark.slow
def test_ray_gives_the_work_of_a_killed_actor_to_another(model: Path, sentences: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    vectors = tmp_path / "vectors"

    def is_in_the_middle() -> bool:
        return 1 <= len(list(vectors.glob("*.parquet"))) < FILES

    def is_actor(command: list[str]) -> bool:
        return any("ray::" in part and "ColumnEncoder" in part for part in command)

    # Ray would make one block of files as small as these, and give it to one actor.
    given = f'read_parquet("{sentences}")'
    code = killing_one(
        script("ray", model, sentences, tmp_path).replace(given, f"{given}.repartition({FILES})"),
        is_actor,
        is_in_the_middle,
        RAY_AUTH_MODE="disabled",
        RAY_USAGE_STATS_ENABLED="0",
        RAY_worker_niceness="0",  # at Ray's 15 its workers wait for whatever else runs here
    )
    assert code == 0
    check_all(model, vectors, pyarrow.parquet.read_table(sentences))


# Whole numbers are not missing here; in the session of the other work, as Spark takes long to start.
SPARK_FRAMES = """
few = sentences.where("id < 100").drop("number")
schema = few.selectExpr("*", "cast(null as array<float>) as vector").schema
few.mapInPandas(encode.frames, schema).write.parquet("{}")
"""


@pytest.mark.slow
def test_spark_gives_the_work_of_a_killed_executor_to_another(model: Path, sentences: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    vectors, frames = tmp_path / "vectors", tmp_path / "frames"

    def is_executor(command: list[str]) -> bool:
        return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in command

    code = killing_one(
        script("spark", model, sentences, tmp_path) + SPARK_FRAMES.format(frames),
        is_executor,
        lambda: any(vectors.rglob("part-*.parquet")),
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_SUBMIT_ARGS="--master local-cluster[2,1,1024] pyspark-shell",
    )
    assert code == 0
    check_all(model, vectors, pyarrow.parquet.read_table(sentences))
    check_all(model, frames, pyarrow.parquet.read_table(sentences, columns=["id", "text"]).slice(0, 100))


@pytest.mark.slow
def test_datasets_encodes_what_a_killed_process_left(model: Path, sentences: Path, tmp_path: Path) -> None:
    # Nothing but a fork's start tells that it works: its last row keeps it busy until that is seen.
    sentences = shutil.copytree(sentences, tmp_path / "sentences")
    for last in (sorted(sentences.iterdir())[index] for index in (FILES // 2 - 1, FILES - 1)):
        table = pyarrow.parquet.read_table(last)
        texts = [*table["text"].to_pylist()[:-1], " ".join(WORDS * 200_000)]
        pyarrow.parquet.write_table(table.set_column(1, "text", [texts]), last)
    text, vectors, cache = script("map", model, sentences, tmp_path), tmp_path / "vectors.parquet", tmp_path / "cache"
    code = killing_one(
        text,
        lambda command: command[-1:] == [text],  # a fork has its parent's command line
        lambda: len(list(cache.rglob("tmp*"))) >= 2,  # what each process writes
        HF_DATASETS_CACHE=str(cache),
    )
    assert code != 0
    assert not vectors.exists()
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(cache)}
    subprocess.run([sys.executable, "-c", text], env=environment, check=True, timeout=300)
    assert pyarrow.parquet.read_table(vectors)["id"].to_pylist() == list(range(FILES * ROWS))
    check_all(model, vectors, pyarrow.parquet.read_table(sentences))
