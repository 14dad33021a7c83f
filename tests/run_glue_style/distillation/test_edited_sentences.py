"""Edited copies of sentences."""

from pathlib import Path

import pytest

from run_glue_style.distillation.edited_sentences import SentenceEditor, main

MINI = Path(__file__).parents[3] / "model_cards" / "dsa-mini-en"
SENTENCES = [
    f"A {size} dog is running over the {color} grass." for size in ("big", "small") for color in ("wet", "dry")
]
SENTENCES += ["Nobody", "", "Two women watch a film at home."]


def edited(folder: Path, *options: str) -> list[str]:
    (folder / "texts.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    assert main([str(folder / "texts.txt"), str(folder / "edited.txt"), "--overwrite", *options]) == 0
    return (folder / "edited.txt").read_text("utf-8").splitlines()


def test_copies_are_new_sentences_of_the_same_words(tmp_path: Path) -> None:
    copies = edited(tmp_path, "--copies", "40")
    assert len(copies) == len(set(copies)) > 100
    assert not set(copies) & set(SENTENCES)
    assert {word for copy in copies for word in copy.split()} - set(" ".join(SENTENCES).split()) == {
        *("not", "no", "There", "some", "one", "two")
    }
    lengths = [len(copy.split()) for copy in copies]
    assert (min(lengths), max(lengths)) == (3, 10)  # a part of three words; a sentence with a "not"
    assert "There is no big dog running over the wet grass." in copies
    assert any("grass. A" in copy for copy in copies)  # the halves of a sentence in the other order
    assert copies == edited(tmp_path, "--copies", "40")
    assert copies != edited(tmp_path, "--copies", "40", "--seed", "1")


def test_words_stand_in_for_near_ones() -> None:
    editor = SentenceEditor(["Big dogs, sleep well."], 0, {"dogs": ["puppies"], "big": ["large"]})
    assert {"Big puppies, sleep well.", "large puppies, sleep well."} <= set(editor.copies(100))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["missing.txt", "edited.txt"], "There is no file missing.txt"),
        (["short.txt", "edited.txt"], "No sentence has 4 words"),
        (["short.txt", "short.txt"], "short.txt is an input, and would be replaced: give another output"),
        (["missing.txt", "short.txt"], "short.txt exists: give --overwrite to replace it, or another name"),
        (["short.txt", "edited.parquet"], "name a .txt file"),
        (["short.txt", "edited.txt", "--near_words", str(MINI)], "no two words stand 3 times in short.txt"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.txt").write_text("Two words\n")
    assert main(options) == 2
    assert message in caplog.messages[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["short.txt"]
