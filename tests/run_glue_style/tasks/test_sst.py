"""run_glue_style.tasks.sst: trees, phrases, tables and data sets, and the location of each mistake."""

import gzip
import json
import logging
import re
from collections import Counter
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from run_glue_style.tasks.labelled_examples import load_hub
from run_glue_style.tasks.sst import CLASS_NAMES, SST, Classes, load_sst_files, parse_tree

TREEBANK = Path(__file__).parents[4] / "shared" / "data" / "sst"
TREES = r"""(4 (2 It) (4 (4 works) (2 .)))
(2 (2 (2 -LRB-) (2 Straße)) (2 3 1\/2))

(0 (0 bad) (1 (2 It) (1 (2 's) (1 not))))
(3 (3 (2 a) (3 Gem)) (2 .))
"""
SENTENCES = ["It works .", r"-LRB- Straße 3 1\/2", "bad It 's not", "a Gem ."]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    path = tmp_path / "trees.txt"
    path.write_text(TREES, "utf-8")
    return path


def load(path: Path, classes: Classes, phrases: bool = False) -> datasets.Dataset:
    return load_sst_files({"train": path}, classes, phrases)["train"]


def test_trees_give_sentences_with_five_classes_or_two(trees: Path, caplog: pytest.LogCaptureFixture) -> None:
    five = load(trees, 5)
    assert five.to_dict() == {"sentence": SENTENCES, "label": [4, 2, 0, 3]}
    assert five.features["label"].names == ["very negative", "negative", "neutral", "positive", "very positive"]
    with caplog.at_level(logging.INFO):
        two = load(trees, 2)
    assert two.to_dict() == {"sentence": [SENTENCES[0], *SENTENCES[2:]], "label": [1, 0, 1]}
    assert two.features["label"].names == ["negative", "positive"]
    assert "split 'train': 1 of 4 rows dropped, without a label" in caplog.text


def test_packed_trees_with_a_byte_order_mark_are_the_same(trees: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.TXT.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TREES.replace("\n", "\r\n").encode()))
    assert load(packed, 5).to_dict() == load(trees, 5).to_dict()
    assert SST[5].fingerprint(load(packed, 5)) == SST[5].fingerprint(load(trees, 5))


def test_phrases_are_the_different_nodes_of_the_training_trees_only(trees: Path) -> None:
    splits = load_sst_files({"train": trees, "validation": trees, "test": trees}, 5, phrases=True)
    assert dict(zip(splits["train"]["sentence"], splits["train"]["label"], strict=True)) == {
        "It": 2, "works": 4, ".": 2, "works .": 4, "It works .": 4,
        "-LRB-": 2, "Straße": 2, "-LRB- Straße": 2, r"3 1\/2": 2, r"-LRB- Straße 3 1\/2": 2,
        "bad": 0, "'s": 2, "not": 1, "'s not": 1, "It 's not": 1, "bad It 's not": 0,
        "a": 2, "Gem": 3, "a Gem": 3, "a Gem .": 3,
    }  # fmt: skip
    assert len(splits["train"]) == 20
    for split in ("validation", "test"):
        assert splits[split]["sentence"][:] == SENTENCES
    assert load(trees, 2, phrases=True).to_dict() == {
        "sentence": [
            "works", "works .", "It works .", "bad", "not", "'s not", "It 's not", "bad It 's not", "Gem", "a Gem",
            "a Gem .",
        ],
        "label": [1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1],
    }  # fmt: skip


def test_phrase_with_several_labels_has_the_most_frequent_or_the_first(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("(2 (4 so) (3 so))\n(1 (3 so) (1 la))\n(2 (0 la) (2 mi))\n")
    found = load(path, 5, phrases=True)
    assert found.to_dict() == {"sentence": ["so", "so so", "la", "so la", "mi", "la mi"], "label": [3, 2, 1, 1, 2, 2]}


def test_deep_trees_need_no_recursion(tmp_path: Path) -> None:
    depth = 50_000
    words, nodes = parse_tree("(3 (2 a) " * depth + "(1 b)" + ")" * depth, "here")
    assert words == ["a"] * depth + ["b"]
    assert nodes[depth : depth + 2] == [(1, depth, depth + 1), (3, depth - 1, depth + 1)]
    assert nodes[-1] == (3, 0, depth + 1)
    path = tmp_path / "deep.txt"
    path.write_text("(3 " * depth + "(1 b)" + ")" * depth)
    assert load(path, 5, phrases=True).to_dict() == {"sentence": ["b"], "label": [3]}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("(3 (2 a) (2 b)", "1 closing bracket(s) are missing at the end"),
        ("(3 (2 a", "2 closing bracket(s) are missing at the end"),
        ("(3 (2 a) (2 b)))", "')' stands behind the end"),
        ("(3 (2 a) (2 b)) c", "'c' stands behind the end"),
        ("(3 a) (2 b)", "'(' stands behind the end"),
        ("(5 a)", "a node has the label '5', not 0 to 4"),
        ("(3 (22 a) (2 b))", "a node has the label '22', not 0 to 4"),
        ("(a)", "a node has the label 'a', not 0 to 4"),
        ("(3 ((2 a)))", "a node has the label '(', not 0 to 4"),
        ("(3 (2 a) (", "a node has the label '', not 0 to 4"),
        ("(3 (2 a) (2 ))", "a node with the label 2 is empty"),
        ("(1)", "a node with the label 1 is empty"),
        ("(3 (2 a) b)", "a word stands beside a node"),
        ("(3 b (2 a))", "a word stands beside a node"),
        ("It works .", "it begins with 'It', not with '('"),
        (")", "it begins with ')', not with '('"),
    ],
)
def test_malformed_tree_is_one_sentence(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "train.txt"
    path.write_text(f"(3 (2 a) (4 b))\n\n{line}\n(1 a)\n")
    with pytest.raises(ValueError, match="no tree") as caught:
        load(path, 5)
    assert str(caught.value) == f"{path}, line 3 is no tree of the treebank: {what}; fix or remove this line."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"train\.txt: the file holds no rows"),
        (b"\n\n", r"train\.txt: the file holds no rows"),
        (b"(2 a)\n(2 b)\n", r"train\.txt, split 'train': there is no row with a label"),
        (b"(1 a)\n(2 \xff)\n", r"train\.txt, line 2 is not UTF-8"),
    ],
)
def test_files_without_a_use(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "train.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "train.txt", 2)


ROWS = [("a great film", "Positive"), ('a sad "film", isn\'t it', "negative"), ("nobody knows", "-1"), ("dull", "0")]


@pytest.mark.parametrize("column", ["sentence", "text"])
def test_tables_give_the_same_rows(tmp_path: Path, column: str) -> None:
    quoted = [(text.replace('"', '""'), label) for text, label in ROWS]
    contents = {
        "a.jsonl": "".join(json.dumps({"idx": 1, column: text, "label": label}) + "\n" for text, label in ROWS),
        "b.tsv": f"{column}\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS),
        "c.csv": f"label,{column}\n" + "".join(f'{label},"{text}"\n' for text, label in quoted),
    }
    expected = {"sentence": [ROWS[0][0], ROWS[1][0], "dull"], "label": [1, 0, 0]}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        assert load(tmp_path / name, 2).to_dict() == expected, name
    table = pyarrow.table({column: [text for text, _ in ROWS], "label": [1, 0, -1, 0]})
    pyarrow.parquet.write_table(table, tmp_path / "d.parquet")
    assert load(tmp_path / "d.parquet", 2).to_dict() == expected


def test_five_classes_by_name_and_number(tmp_path: Path) -> None:
    labels = [*CLASS_NAMES[5], "0", "4", " Very Positive "]
    path = tmp_path / "train.csv"
    path.write_text("text,label\n" + "".join(f"a,{label}\n" for label in labels))
    assert load(path, 5)["label"][:] == [0, 1, 2, 3, 4, 0, 4, 4]
    with pytest.raises(
        ValueError,
        match=r"train\.csv, line 2: the label 'very negative' is unknown; .* 0 to 1, or",
    ):
        load(path, 2)


def test_mistakes_in_files(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("sentence,label\na,1\n")
    with pytest.raises(ValueError, match=re.escape(f"{path} has no trees: phrases are read from the .txt files")):
        load(path, 2, phrases=True)
    with pytest.raises(ValueError, match=r"a\.ptb has an un.*: give \.txt, "):
        load(tmp_path / "a.ptb", 2)


def test_data_set_with_bare_numbers_and_names_beside_them(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    lines = [{"text": name, "label": n, "label_text": name} for n, name in enumerate(CLASS_NAMES[5])]
    (tmp_path / "hub" / "train.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = load_hub(str(tmp_path / "hub"), None, SST[5])["train"]
    assert found.to_dict() == {"sentence": list(CLASS_NAMES[5]), "label": [0, 1, 2, 3, 4]}
    with pytest.raises(ValueError, match=r"train\.jsonl, line 3: the label 2 is unknown"):
        load_hub(str(tmp_path / "hub"), None, SST[2])


def test_cache_tells_classes_and_phrases_apart(trees: Path) -> None:
    first = load(trees, 5, phrases=True)
    assert load(trees, 5, phrases=True).cache_files == first.cache_files != []
    assert len({tuple(load(trees, 2, p).cache_files[0].values()) for p in (False, True)}) == 2
    trees.write_text("(1 a)\n")
    assert load(trees, 5, phrases=True).to_dict() == {"sentence": ["a"], "label": [1]}


@pytest.mark.slow
@pytest.mark.skipif(not TREEBANK.is_dir(), reason="needs the SST files of the shared folder")
def test_real_treebank() -> None:
    files = {"train": TREEBANK / "train.txt", "validation": TREEBANK / "dev.txt", "test": TREEBANK / "test.txt"}
    five, two = load_sst_files(files, 5), load_sst_files(files, 2)
    assert {name: len(split) for name, split in five.items()} == {"train": 8544, "validation": 1101, "test": 2210}
    assert {name: len(split) for name, split in two.items()} == {"train": 6920, "validation": 872, "test": 1821}
    assert five["train"][4341]["sentence"].endswith(r"films like Contempt and 8 1\/2 .")
    assert Counter(five["test"]["label"]) == {0: 279, 1: 633, 2: 389, 3: 510, 4: 399}
    assert Counter(two["test"]["label"]) == {0: 912, 1: 909}


@pytest.mark.slow
@pytest.mark.skipif(not TREEBANK.is_dir(), reason="needs the SST files of the shared folder")
def test_real_phrases_have_one_label_each() -> None:
    labels: dict[str, set[int]] = {}
    nodes_of_all = 0
    for number, line in enumerate((TREEBANK / "train.txt").read_text("utf-8").splitlines(), 1):
        words, nodes = parse_tree(line, f"line {number}")
        nodes_of_all += len(nodes)
        for label, first, end in nodes:
            labels.setdefault(" ".join(words[first:end]), set()).add(label)
    assert nodes_of_all == 318_582
    assert all(len(found) == 1 for found in labels.values())
    rows = load(TREEBANK / "train.txt", 5, phrases=True)
    assert len(rows) == 159_274
    assert rows.to_dict() == {"sentence": list(labels), "label": [found.pop() for found in labels.values()]}
    assert len(load(TREEBANK / "train.txt", 2, phrases=True)) == 77_616
