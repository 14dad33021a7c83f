"""run_glue_style.training.token_store: the tokenizer's own ids, from a file that is made once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from small_runs import pairs, small_tokenizer

from modeling_dsa.text.tokenization import build_tokenizer
from run_glue_style.training import token_store
from run_glue_style.training.token_store import COLUMN, tokenize_once
from run_glue_style.training.tokenized_examples import token_ids

TEXTS = ["A man.", "", "a [SEP] b", "\u200b", "“Curly” – it's 1,000…", *(row["premise"] for row in pairs("train"))]


@pytest.mark.parametrize("texts", [TEXTS, [""], []], ids=["texts", "no words", "no texts"])
def test_ids_are_those_of_the_tokenizer(texts: list[str], tmp_path: Path) -> None:
    tokenizer = small_tokenizer()
    for _ in range(2):  # from the texts, then from the file
        ids, lengths = tokenize_once(tokenizer, texts, tmp_path)
        found = [part.tolist() for part in np.split(ids, lengths.cumsum()[:-1])] if texts else []
        assert found == (tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else [])


def test_texts_are_tokenised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Sequence[str]] = []

    def watched(tokenizer: object, texts: Sequence[str], progress: bool) -> object:
        calls.append(texts)
        return token_ids(small_tokenizer().backend_tokenizer, texts, progress)

    monkeypatch.setattr(token_store, "token_ids", watched)
    for texts in (TEXTS, list(TEXTS), TEXTS[::-1], ["ab", "c"], ["a", "bc"]):
        tokenize_once(small_tokenizer(), texts, tmp_path)
    assert calls == [TEXTS, TEXTS[::-1], ["ab", "c"], ["a", "bc"]]
    tokenize_once(build_tokenizer(["man"], lowercase=True), TEXTS, tmp_path)
    assert len(calls) == 5
    assert len(list(tmp_path.iterdir())) == 5  # and nothing that was written beside


def test_ids_stay_in_the_file(tmp_path: Path) -> None:
    ids, _ = tokenize_once(small_tokenizer(), TEXTS, tmp_path)
    (file,) = tmp_path.iterdir()
    assert not ids.flags.owndata
    assert not ids.flags.writeable
    assert any(str(file) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_datasets_reads_the_file(tmp_path: Path) -> None:
    tokenize_once(small_tokenizer(), TEXTS, tmp_path)
    (file,) = tmp_path.iterdir()
    rows = Dataset.from_file(str(file))[COLUMN][:]
    assert rows == small_tokenizer()(TEXTS, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("keep", [0, 8, -100], ids=["empty", "its first bytes", "without its end"])
def test_a_broken_file_is_made_again(keep: int, tmp_path: Path) -> None:
    expected = tokenize_once(small_tokenizer(), TEXTS, tmp_path)[0].tolist()
    (file,) = tmp_path.iterdir()
    broken = file.with_suffix(".broken")
    broken.write_bytes(file.read_bytes()[: keep or 0])
    broken.replace(file)
    assert tokenize_once(small_tokenizer(), TEXTS, tmp_path)[0].tolist() == expected
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        tokenize_once(small_tokenizer(), TEXTS, tmp_path / "file")


def test_a_text_with_half_a_character_is_read(tmp_path: Path) -> None:
    ids, lengths = tokenize_once(small_tokenizer(), ["a \ud83d man"], tmp_path)
    assert lengths.tolist() == [len(ids)]
    assert ids.tolist() == small_tokenizer()("a \ufffd man", add_special_tokens=False)["input_ids"]
