"""Sentences are read anew each time, and held out by what they say."""

from pathlib import Path

import numpy as np
import pytest

from modeling_dsa.encoding.sources import SentenceSource, open_sentences
from run_glue_style.distillation.sentences import Sentences


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def sentences(path: Path, columns: tuple[str | None, ...] = (None,), limit: int | None = None) -> Sentences:
    return Sentences([open_sentences(str(path), column) for column in columns], limit)


def test_the_same_sentences_are_held_out_in_any_order_and_their_copies_are_in_neither_part(tmp_path: Path) -> None:
    lines = [f"sentence {number % 30}" for number in range(40)]
    first = sentences(write(tmp_path / "a.txt", lines))
    second = sentences(write(tmp_path / "b.txt", lines[::-1]))
    assert list(first) == list(first) == lines
    held_out = []
    for found in (first, second):
        train, validation = found.hold_out(8)
        texts = np.array(list(found))
        held_out.append(set(texts[validation]))
        assert found.at(validation) == [[text] for text in texts[validation]]
        assert len(held_out[-1]) == len(validation) == 8
        assert set(texts[train]) == set(lines) - held_out[-1]
        assert len(train) == sum(line not in held_out[-1] for line in lines)
    assert held_out[0] == held_out[1]
    assert first.sha256 != second.sha256


def test_what_is_held_out_of_fewer_sentences_can_be_told_to_be_the_same(tmp_path: Path) -> None:
    lines = [f"sentence {number}" for number in range(40)]
    path = write(tmp_path / "a.txt", lines)
    chosen = [lines[index] for index in sentences(path).hold_out(8)[1]]
    path = write(tmp_path / "a.txt", [*chosen, *(line for line in lines if line not in chosen)])
    whole, fewer, without = sentences(path), sentences(path, limit=20), sentences(path, limit=7)
    assert whole.hash_of(whole.hold_out(8)[1]) == fewer.hash_of(fewer.hold_out(8)[1])
    assert whole.hash_of(whole.hold_out(5)[1]) != without.hash_of(without.hold_out(4)[1])


def test_what_is_behind_the_limit_is_counted_where_it_is_at_hand(tmp_path: Path) -> None:
    lines = write(tmp_path / "a.txt", [f"sentence {number}" for number in range(40)])
    table = write(tmp_path / "a.tsv", ["q\ta", *("one\teins" for _ in range(30))])
    for found in (sentences(lines, limit=5), sentences(lines, limit=40), sentences(lines, limit=99), sentences(lines)):
        assert found.count_whole() == 40
    assert sentences(table, ("q", "a"), limit=5).count_whole() == 60
    for count in (None, 40):
        of_the_hub = SentenceSource("org/texts", {}, count, lambda: iter("abcdef"))
        assert Sentences([of_the_hub], 5).count_whole() == count


def test_pairs_come_sentence_after_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", ["q\ta", "one\teins", "two\tzwei", "three\tdrei"])
    found = sentences(path, ("q", "a"), limit=2)
    assert (list(found), len(found), found.per_example) == (["one", "eins", "two", "zwei"], 4, 2)
    assert found.at(np.array([1])) == [["two", "zwei"]]


def test_a_pair_with_a_sentence_that_is_held_out_is_not_trained_on(tmp_path: Path) -> None:
    found = sentences(write(tmp_path / "a.tsv", ["p\th", *(f"p{n // 3}\th{n}" for n in range(90))]), ("p", "h"))
    train, held_out = found.hold_out(8)
    premises = np.arange(90) // 3
    assert len(held_out) == 8
    assert set(premises[train]) == set(range(30)) - set(premises[held_out])


def test_half_a_character_is_read_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"text": "a cut \\ud83d"}\n')
    assert list(sentences(tmp_path / "cut.jsonl")) == ["a cut \ufffd"]


def test_what_is_blank_is_in_neither_part(tmp_path: Path) -> None:
    rows = [f"p{n}\t{'' if n % 2 else f'h{n}'}" for n in range(40)]
    found = sentences(write(tmp_path / "a.tsv", ["p\th", *rows]), ("p", "h"))
    train, held_out = found.hold_out(8)
    assert len(held_out) == 8
    assert sorted([*train, *held_out]) == list(range(0, 40, 2))
    lines = sentences(write(tmp_path / "a.txt", [*(" " * n for n in range(20)), "a", "b", "c"]))
    assert sorted(np.concatenate(lines.hold_out(1))) == [20, 21, 22]


def test_too_few_sentences_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"validation_sentences 2 leaves nothing to train on: .* has 3 distinct"):
        sentences(write(tmp_path / "a.txt", ["a", "b", "c", "c"])).hold_out(2)
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match="holds no sentence"):
        sentences(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match="standard input only once"):
        Sentences([open_sentences("-")])
