"""modeling_dsa.encoding.bulk: rows keep their order through windows, shards, stops and processes."""

import itertools
import json
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow.parquet
import pytest
import torch
from small_encoders import many_sentences, small_encoder

from modeling_dsa.batching_dsa import Vectors, VectorType
from modeling_dsa.command.launchers import Process
from modeling_dsa.encoding import windows
from modeling_dsa.encoding.bulk import BulkOptions, check_output, encode_bulk
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.encoding.manifest import MANIFEST
from modeling_dsa.encoding.sources import SentenceSource, open_sentences

SENTENCES = many_sentences(230)
OPTIONS = BulkOptions(shard_size=50, batch_size=16)
ALONE = Process()


class Watched(SentenceEncoder):
    """Remembers how many sentences it was asked for, and stops where it is told."""

    asked: int = 0
    stop_at: float = float("inf")

    def encode(self, sentences: str | Sequence[str], **options: Any) -> Vectors:
        self.asked += len(sentences)
        if self.asked > self.stop_at:
            raise KeyboardInterrupt
        return super().encode(sentences, **options)


def watched(**changes: Any) -> Watched:
    encoder = small_encoder(**changes)
    return Watched(encoder.model, encoder.tokenizer)


def source(sentences: Sequence[str] = SENTENCES, **fingerprint: Any) -> SentenceSource:
    return SentenceSource("rows", {"rows": len(sentences), **fingerprint}, None, lambda: iter(sentences))


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def read(folder: Path) -> Vectors:
    table = pyarrow.parquet.read_table(folder)
    assert table["row"].to_pylist() == list(range(table.num_rows))
    found: Vectors = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return found.reshape(table.num_rows, -1)


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_TEXTS", 20)


@pytest.mark.parametrize("output", ["vectors.npy", "vectors"])
def test_empty_sentences_and_those_that_are_cut_are_counted(
    output: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = [sentence for sentence in SENTENCES if sentence]
    given = source([*written, "", "  ", *written[:60], ""])
    encode_bulk(small_encoder(max_sentence_tokens=8), given, tmp_path / output, OPTIONS, ALONE)
    cut = sum(len(sentence.split()) > 8 for sentence in given.read())
    assert caplog.messages == [
        "3 of the sentences are empty: their vectors are zeros.",
        f"{cut} of the sentences are longer than the 8 tokens that the model reads: their vectors say nothing of the "
        "rest.",
    ]


def test_texts_without_a_known_word_are_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encode_bulk(small_encoder(), source(["", "", "", "一", "二", "a dog"] * 20), tmp_path / "vectors", OPTIONS, ALONE)
    told = [message for message in caplog.messages if "empty" not in message]
    assert told == [" knows no word of 6 of 9 texts, such as '一', the first ones: their vectors say nothing."]


@pytest.mark.parametrize(("dtype", "normalize"), [("float32", False), ("float16", True), ("int8", False)])
def test_row_of_output_is_row_of_input(tmp_path: Path, dtype: VectorType, normalize: bool) -> None:
    options = replace(OPTIONS, dtype=dtype, normalize=normalize)
    encoder = small_encoder()
    expected = encoder.encode(SENTENCES, dtype=dtype, normalize=normalize)
    for name in ("new/a.npy", "new/shards", "new/shards.parquet"):
        assert encode_bulk(encoder, source(), tmp_path / name, options, ALONE) == len(SENTENCES)
        found = np.load(tmp_path / name) if name.endswith(".npy") else read(tmp_path / name)
        assert found.dtype == expected.dtype
        step = {"float32": 1e-6, "float16": 1e-3, "int8": 1}[dtype]  # sums of other batches may round otherwise
        assert np.abs(found.astype(np.float32) - expected.astype(np.float32)).max() <= step
    assert [path.name for path in shards(tmp_path / "new" / "shards")] == [
        f"vectors-00000{i}.parquet" for i in range(5)
    ]


def test_other_readers_take_the_folder_as_it_is(tmp_path: Path, datasets_cache: None) -> None:
    encode_bulk(small_encoder(), source(), tmp_path / "a", OPTIONS, ALONE)
    rows = datasets.load_dataset(str(tmp_path / "a"), split="train")
    assert rows["row"][:] == list(range(len(SENTENCES)))
    assert len(rows["vector"][0]) == 4


@pytest.mark.parametrize(("count", "files"), [(0, [0]), (1, [1]), (50, [50]), (100, [50, 50]), (101, [50, 50, 1])])
def test_last_shard_holds_the_rest(tmp_path: Path, count: int, files: list[int]) -> None:
    assert encode_bulk(small_encoder(), source(SENTENCES[:count]), tmp_path / "a", OPTIONS, ALONE) == count
    assert [pyarrow.parquet.read_metadata(path).num_rows for path in shards(tmp_path / "a")] == files
    assert encode_bulk(small_encoder(), source(SENTENCES[:count]), tmp_path / "a.npy", OPTIONS, ALONE) == count
    assert np.load(tmp_path / "a.npy").shape == (count, 4)


def test_windows_end_early_where_sentences_are_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    class Sized(SentenceEncoder):
        def encode(self, sentences: str | Sequence[str], **options: Any) -> Vectors:
            sizes.append(len(sentences))
            return super().encode(sentences, **options)

    monkeypatch.setattr(windows, "_CHARACTERS", 1000)
    encoder, sentences = small_encoder(), ["a " * 250] * 4 + ["dog"] * 30 + ["a " * 5000] * 2
    encode_bulk(Sized(encoder.model, encoder.tokenizer), source(sentences), tmp_path / "a.npy", OPTIONS, ALONE)
    assert sizes == [2, 2, 20, 11, 1]


def test_stopped_run_goes_on_and_leaves_finished_shards_alone(tmp_path: Path) -> None:
    encoder = watched()
    encoder.stop_at = 130
    with pytest.raises(KeyboardInterrupt):
        encode_bulk(encoder, source(), tmp_path / "a", OPTIONS, ALONE)
    finished = {path: path.stat().st_mtime_ns for path in shards(tmp_path / "a")}
    assert len(finished) == 2
    assert {path.name for path in (tmp_path / "a").iterdir()} == {MANIFEST, *(path.name for path in finished)}
    (tmp_path / "a" / f".unfinished-{socket.gethostname()}-4194305-vectors-000002.parquet").write_text(
        "PAR1 half"
    )  # as a kill leaves it
    encoder = watched()
    assert encode_bulk(encoder, source(), tmp_path / "a", OPTIONS, ALONE) == len(SENTENCES)
    assert encoder.asked == len(SENTENCES) - 100
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    encode_bulk(small_encoder(), source(), tmp_path / "b", OPTIONS, ALONE)
    for path in shards(tmp_path / "b"):
        assert (tmp_path / "a" / path.name).read_bytes() == path.read_bytes()
    assert not list((tmp_path / "a").glob(".*"))
    encoder = watched()
    assert encode_bulk(encoder, source(), tmp_path / "a", OPTIONS, ALONE) == len(SENTENCES)
    assert encoder.asked == 0


def test_processes_share_the_shards_and_encode_no_others(tmp_path: Path) -> None:
    encode_bulk(small_encoder(), source(), tmp_path / "alone", OPTIONS, ALONE)
    for rank, (asked, names) in enumerate([(100, [0, 3]), (80, [1, 4]), (50, [2])]):
        encoder = watched()
        assert encode_bulk(encoder, source(), tmp_path / "a", OPTIONS, Process(rank, 3)) == len(SENTENCES)
        assert encoder.asked == asked
        mine = [f"vectors-00000{number}.parquet" for number in names]
        assert {path.name for path in shards(tmp_path / "a")} >= set(mine)
    assert (read(tmp_path / "a") == read(tmp_path / "alone")).all()
    # another number of processes finds them finished
    encoder = watched()
    encode_bulk(encoder, source(), tmp_path / "a", OPTIONS, Process(1, 2))
    assert encoder.asked == 0


def test_only_the_first_process_shows_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encode_bulk(small_encoder(), source(), tmp_path / "a", OPTIONS, Process(1, 2))
    assert capsys.readouterr().err == ""
    encode_bulk(small_encoder(), source(), tmp_path / "a", OPTIONS, Process(0, 2))
    assert f"{len(SENTENCES)} sentences" in capsys.readouterr().err


def test_vectors_of_something_else_are_refused_and_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    encode_bulk(small_encoder(), source(), folder, OPTIONS, ALONE)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    other = small_encoder()
    with torch.no_grad():
        other.model.get_parameter("embed_tokens.weight")[-1] += 1
    shorter = SENTENCES[::-1][:70]
    cases: list[tuple[SentenceEncoder, SentenceSource, BulkOptions, str]] = [
        (other, source(), OPTIONS, "model"),
        (small_encoder(routing_scale=2.0), source(), OPTIONS, "model"),
        (small_encoder(), source(shorter), OPTIONS, "input"),
        (small_encoder(), source(), replace(OPTIONS, normalize=True), "options"),
        (small_encoder(), source(), replace(OPTIONS, dtype="int8"), "options"),
        (small_encoder(), source(), replace(OPTIONS, shard_size=49), "options"),
        (other, source(shorter), OPTIONS, "model and its input"),
    ]
    for encoder, rows, options, what in cases:
        with pytest.raises(ValueError, match=f"a holds vectors of another run, which differs in its {what}: give "):
            encode_bulk(encoder, rows, folder, options, ALONE)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    # What does not change the vectors is no difference.
    encode_bulk(small_encoder(), replace(source(), name="moved"), folder, replace(OPTIONS, batch_size=3), ALONE)

    stopped = Watched(other.model, other.tokenizer)
    stopped.stop_at = 60
    with pytest.raises(KeyboardInterrupt):
        encode_bulk(stopped, source(shorter), folder, replace(OPTIONS, overwrite=True), ALONE)
    assert encode_bulk(other, source(shorter), folder, OPTIONS, ALONE) == 70  # resumed with the new ones
    assert len(shards(folder)) == 2
    assert np.abs(read(folder) - other.encode(shorter)).max() <= 1e-6


def test_overwriting_starts_again(tmp_path: Path) -> None:
    encode_bulk(small_encoder(), source(), tmp_path / "a", OPTIONS, ALONE)
    encoder = watched()
    encode_bulk(encoder, source(), tmp_path / "a", replace(OPTIONS, overwrite=True), ALONE)
    assert encoder.asked == len(SENTENCES)
    (tmp_path / "a.npy").write_text("old")
    encode_bulk(encoder, source(), tmp_path / "a.npy", replace(OPTIONS, overwrite=True), ALONE)
    assert len(np.load(tmp_path / "a.npy")) == len(SENTENCES)


@pytest.mark.parametrize("overtaken_at", [50, 230])
def test_a_run_that_another_one_overtakes_in_its_folder_ends_with_a_mistake(tmp_path: Path, overtaken_at: int) -> None:
    options, encoder = replace(OPTIONS, overwrite=True), small_encoder()

    def read_slowly() -> Iterator[str]:
        yield from SENTENCES[:overtaken_at]
        encode_bulk(encoder, source(SENTENCES[:100]), tmp_path / "vectors", options, ALONE)
        yield from SENTENCES[overtaken_at:]

    slow = SentenceSource("rows", {"rows": 230}, None, read_slowly)
    with pytest.raises(ValueError, match="was written by another run, too: its vectors are mixed"):
        encode_bulk(encoder, slow, tmp_path / "vectors", options, ALONE)


def test_mistake_in_the_data_leaves_only_whole_files(tmp_path: Path) -> None:
    def broken() -> Iterator[str]:
        yield from SENTENCES[:120]
        raise ValueError("rows, line 121 is broken")

    rows = SentenceSource("rows", {}, None, broken)
    for output in (tmp_path / "a", tmp_path / "a.npy"):
        with pytest.raises(ValueError, match="line 121 is broken"):
            encode_bulk(small_encoder(), rows, output, OPTIONS, ALONE)
    assert {path.name for path in tmp_path.rglob("*")} == {
        "a",
        MANIFEST,
        "vectors-000000.parquet",
        "vectors-000001.parquet",
    }


def test_manifest_says_what_made_the_vectors(tmp_path: Path) -> None:
    encode_bulk(small_encoder(), source(), tmp_path / "a", OPTIONS, ALONE)
    manifest = json.loads((tmp_path / "a" / MANIFEST).read_text())
    assert re.fullmatch(r"[0-9a-f]{64}", manifest["model"]["sha256"])
    assert manifest["input"] == {"name": "rows", "rows": len(SENTENCES)}
    assert manifest["options"] == {"normalize": False, "dtype": "float32", "shard_size": 50}
    written = (tmp_path / "a" / MANIFEST).stat()
    encode_bulk(small_encoder(), source(), tmp_path / "a", OPTIONS, ALONE)
    assert (tmp_path / "a" / MANIFEST).stat() == written  # it is not written again
    (tmp_path / "a" / MANIFEST).write_text("[")
    with pytest.raises(ValueError, match=r"_manifest\.json is broken: give --overwrite to start again"):
        encode_bulk(small_encoder(), source(), tmp_path / "a", OPTIONS, ALONE)


def test_nothing_is_read_ahead_of_a_window(tmp_path: Path) -> None:
    taken = itertools.count()

    def rows() -> Iterator[str]:
        for sentence in SENTENCES:
            next(taken)
            yield sentence

    encoder = watched()
    encoder.stop_at = 20
    with pytest.raises(KeyboardInterrupt):
        encode_bulk(encoder, SentenceSource("rows", {}, None, rows), tmp_path / "a", OPTIONS, ALONE)
    assert next(taken) == 40


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.csv", "a.csv has an unsupported extension: give a file.npy, or a folder for shards"),
        ("there.npy", "there.npy exists: give --overwrite to replace it, or another name."),
        ("folder.npy", "folder.npy is a folder: give the name of a file."),
        ("file", "file is a file: shards go to a folder, so give another name."),
        ("there.npy/x.npy", "there.npy is a file: give OUTPUT a folder."),
        ("model", "model holds a model: give another folder for the vectors."),
        ("model/x.npy", "model/x.npy is in the folder of a model: give another OUTPUT."),
        ("model/x", "model/x is in the folder of a model: give another OUTPUT."),
        ("full", "full is not empty and holds no vectors: give another folder, or --overwrite."),
    ],
)
def test_outputs_that_cannot_be_written(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "there.npy").write_text("")
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "dsa"}')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match=re.escape(message)):
        check_output(tmp_path / name, False, ALONE)


def test_outputs_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "empty.v2").mkdir()
    for name in ("empty.v2", "new", "new.parquet", "new.npy"):
        check_output(tmp_path / name, False, ALONE)
    with pytest.raises(ValueError, match=r"a\.npy is one file, which 2 processes cannot write: give a folder\."):
        check_output(tmp_path / "a.npy", False, Process(0, 2))


def test_standard_input_is_not_for_several_processes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 processes cannot share standard input: give a file, or run one process"):
        encode_bulk(small_encoder(), open_sentences("-"), tmp_path / "a", OPTIONS, Process(0, 2))
    assert not (tmp_path / "a").exists()


def test_vectors_that_the_type_cannot_hold_are_refused(tmp_path: Path) -> None:
    encoder, options = small_encoder(pooling="mean", token_norm=1e7), replace(OPTIONS, dtype="float16")
    with pytest.raises(ValueError, match=r"The vector of the sentence .* is not finite as float16: give dtype float32"):
        encode_bulk(encoder, source(), tmp_path / "a.npy", options, ALONE)
    encoder = small_encoder(pooling="mean", token_norm=1e39)
    with pytest.raises(ValueError, match="A vector is not finite, which int8 cannot say"):
        encode_bulk(encoder, source(), tmp_path / "a.npy", replace(OPTIONS, dtype="int8"), ALONE)
    assert not list(tmp_path.iterdir())
