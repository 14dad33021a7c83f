"""modeling_dsa.explanation.word_classes: the real tagger, on sentences whose classes everybody knows."""

import os
import pickle
import sys
from pathlib import Path

import pytest
from HanTa.HanoverTagger import HanoverTagger

from modeling_dsa.explanation.word_classes import load_tagger


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "She/PRON did/AUX n't/PART buy/VERB three/NUM old/ADJ houses/NOUN in/ADP London/PROPN ./PUNCT"),
        ("de", "Sie/PRON kauft/VERB drei/NUM alte/ADJ Häuser/NOUN und/CCONJ wohnt/VERB in/ADP Berlin/PROPN ./PUNCT"),
        ("nl", "Zij/PRON kocht/VERB drie/NUM oude/ADJ huizen/NOUN in/ADP Amsterdam/PROPN ./PUNCT"),
    ],
)
def test_words_have_their_classes(language: str, sentence: str) -> None:
    words, classes = zip(*(word.split("/") for word in sentence.split()), strict=True)
    assert load_tagger(language)(words) == list(classes)


@pytest.mark.parametrize(
    ("language", "others"),
    [
        ("en", {"!!!", "UNC", "UNKNOWN", "ZZ0"}),
        ("de", {"FM", "TRUNC", "UNKNOWN", "XY"}),
        ("nl", {"SPEC(afgebr)", "SPEC(afk)", "SPEC(enof)", "SPEC(meta)", "SPEC(symb)", "SPEC(vreemd)", "UNKNOWN"}),
    ],
)
def test_every_tag_that_the_model_gives_to_words_has_a_class(
    language: str, others: set[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tags: list[str] = []

    def give_every_tag(tagger: HanoverTagger, _words: object, taglevel: int) -> list[str]:
        tagger.list_postags()
        tags.extend(line.partition("\t")[0] for line in capsys.readouterr().out.splitlines())
        return tags

    monkeypatch.setattr(HanoverTagger, "tag_sent", give_every_tag)
    classes = load_tagger(language)(["word"])
    assert len(tags) > 50
    assert {tag for tag, name in zip(tags, classes, strict=True) if name == "X"} == others


def test_words_of_any_script_are_tagged() -> None:
    words = ["你好", "😀", "مرحبا", "\x00", " ", "w" * 2000, "\N{REPLACEMENT CHARACTER}", "don't", "...", "`"]
    assert len(load_tagger("en")(words)) == len(words)
    assert load_tagger("en")([]) == []


def test_no_file_of_the_current_folder_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "morphmodel_en.pgz").write_bytes(pickle.dumps(os.getcwd))
    monkeypatch.chdir(tmp_path)
    assert load_tagger("en")(["London"]) == ["PROPN"]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HanTa", "HanTa.HanoverTagger"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r'--word_classes needs HanTa: pip install "\.\[word-classes\]" in a clone'):
        load_tagger("en")
