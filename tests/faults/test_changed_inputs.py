"""Inputs of `dsa encode` that change while it reads them, or lie where it writes."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from small_encoders import many_sentences, save_encoder

from modeling_dsa.batching_dsa import Vectors
from modeling_dsa.cli.main import main
from modeling_dsa.encoding.encoder import SentenceEncoder

SENTENCES = many_sentences(120)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("model") / "small")


def run(*words: object) -> int:
    return main(["encode", *map(str, words)])


@pytest.mark.parametrize("output", ["out.npy", "shards"])
@pytest.mark.parametrize("change", ["grows", "is rewritten", "is removed"])
def test_an_input_that_changes_meanwhile_is_noticed(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    output: str,
    change: str,
) -> None:
    lines, encode = tmp_path / "lines.txt", SentenceEncoder.encode
    lines.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))

    def change_and_encode(*arguments: Any, **options: Any) -> Vectors:
        if change == "is removed":
            lines.unlink(missing_ok=True)
        elif change == "grows":
            lines.write_text(lines.read_text() + "One more.\n")
        else:
            lines.write_text(lines.read_text().replace("a", "o"))
        return encode(*arguments, **options)

    monkeypatch.setattr(SentenceEncoder, "encode", change_and_encode)
    shards = [] if output.endswith(".npy") else ["--shard_size", "50"]
    assert run(lines, tmp_path / output, "--model", model, *shards) == 2
    assert caplog.messages[-1] == f"error: {lines} has changed while it was read: start again when it is complete."
    assert {path.name for path in tmp_path.rglob("*")} <= {"lines.txt", "shards", "_manifest.json"}


def test_the_input_is_never_written_over(model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = tmp_path / "vectors-000009.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": SENTENCES}), texts)
    before = texts.read_bytes()
    for given in (texts, tmp_path):
        assert run(given, tmp_path, "--model", model, "--overwrite") == 2
        assert caplog.messages[-1] == (
            f"error: {given} is in {tmp_path}, where the vectors go: give another folder for them."
        )
    assert run(tmp_path, tmp_path / "new", "--model", model) == 2
    assert caplog.messages[-1].startswith(f"error: {tmp_path / 'new'} is in the data set's folder {tmp_path}, which")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {texts.name: before}


def test_a_new_date_of_the_same_input_is_no_change(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, encode = tmp_path / "lines.txt", SentenceEncoder.encode
    expected = SentenceEncoder.from_pretrained(model).encode(SENTENCES)
    lines.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))

    def touch_and_encode(*arguments: Any, **options: Any) -> Vectors:
        os.utime(lines, (1, 1))
        return encode(*arguments, **options)

    monkeypatch.setattr(SentenceEncoder, "encode", touch_and_encode)
    assert run(lines, tmp_path / "out.npy", "--model", model) == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)
