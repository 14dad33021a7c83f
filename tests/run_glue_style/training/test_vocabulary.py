"""The vocabulary of a fresh model: what a teacher gives, and what is refused."""

import re
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose
from small_teachers import save_teacher

from modeling_dsa import DSAConfig
from run_glue_style.training.recipe import ModelArguments
from run_glue_style.training.vocabulary import check_vocabulary, fresh_vocabulary


@pytest.mark.usefixtures("datasets_cache")
def test_a_teacher_gives_the_words_that_are_asked_for(tmp_path: Path) -> None:
    teacher = Path(f"teacher:{save_teacher(tmp_path / 'teacher', 24)}")
    texts = ["a a a dog", "a man sleeps", "a man"]
    (tmp_path / "words.txt").write_text("red\nguitar\nwater\n")

    def found(size: int = 2, overrides: dict[str, Any] | None = None, **options: Any) -> Any:
        arguments = ModelArguments(setting="dsa-small", vectors=teacher, **options)
        check_vocabulary(arguments)
        config = DSAConfig(embedding_size=size)
        return fresh_vocabulary(teacher, arguments, texts, config, overrides or {}, show_progress=False)

    vocabulary, plain = found(vocabulary_size=3, pieces=0)
    assert plain.words == ["a", "man", "dog"]
    assert vocabulary.tokenize("dog sleeps") == ["dog", "[UNK]"]
    assert "[UNK]" not in found(vocabulary_size=3, pieces=4)[0].tokenize("dog sleeps")
    assert found(word_list=tmp_path / "words.txt", vocabulary_size=2, pieces=0)[1].words == ["red", "guitar"]
    weighted = found(vocabulary_size=3, pieces=0, frequency_weighting=0.5)[1]
    assert_allclose(weighted.vectors[0], plain.vectors[0] * 0.5 / (0.5 + 5 / 9), rtol=1e-5)
    assert found(5000)[1].dimension == 24  # which nobody asked for
    with pytest.raises(ValueError, match="so that those of words cannot have 5000"):
        found(5000, {"embedding_size": 5000})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"vocabulary_size": 5},
            "--vocabulary_size is for words whose vectors a teacher gives: give --vectors teacher:",
        ),
        ({"pieces": 0, "vectors": Path("glove.txt")}, "--pieces is for words whose vectors a teacher gives"),
        ({"word_list": Path("w"), "model_name_or_path": "x"}, "--word_list is for words whose vectors a teacher gives"),
        (
            {"word_list": Path("w"), "frequency_weighting": 0.1, "vectors": Path("teacher:org/name")},
            "--frequency_weighting counts the words of the texts: leave it or --word_list out",
        ),
    ],
)
def test_a_vocabulary_that_the_vectors_do_not_leave_open_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_vocabulary(ModelArguments(**options))
