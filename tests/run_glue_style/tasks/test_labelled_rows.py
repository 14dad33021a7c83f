"""run_glue_style.tasks.labelled_rows: what the kinds of data share and their own tests do not show."""

from functools import partial
from pathlib import Path

import datasets
import pytest

from modeling_dsa.files.text_files import Rows, read_lines
from run_glue_style.tasks.labelled_rows import RowRules, fingerprint, load_file

RULES = RowRules(texts={"question": ("q", "question")}, labels=("y",), label_names=("no", "yes"), version=1)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def read_words(path: Path, label: str) -> Rows:
    return ((place, {"q": line, "y": label}) for place, line in read_lines(path))


def test_first_name_of_a_column_wins(tmp_path: Path) -> None:
    assert RULES.convert({"question": "b", "q": "a", "y": " YES "}, "here") == {"question": "a", "label": 1}
    with pytest.raises(ValueError, match="here: there is no column q or question, only y"):
        RULES.convert({"y": 1}, "here")


def test_cache_tells_readers_and_versions_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\nb\n")
    found = [load_file("train", path, RULES, partial(read_words, label=label)) for label in ("no", "yes", "no")]
    assert [split["label"][:] for split in found] == [[0, 0], [1, 1], [0, 0]]
    files = [split.cache_files[0]["filename"] for split in found]
    assert files[0] == files[2] != files[1]
    newer = RowRules(RULES.texts, RULES.labels, RULES.label_names, version=2)
    other = load_file("train", path, newer, partial(read_words, label="no"))
    assert other.to_dict() == found[0].to_dict()
    assert other.cache_files[0]["filename"] not in files


def test_fingerprint_is_of_the_given_columns_in_their_order() -> None:
    rows = datasets.Dataset.from_dict({"a": ["x", "y"], "b": ["x", "y"], "c": [0, 1]})
    assert fingerprint(rows, ("a", "c")) == fingerprint(rows, ("b", "c")) != fingerprint(rows, ("c", "a"))
