"""modeling_dsa.encoding.teacher_words: the word vectors are the teacher's own, or their principal components."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.decomposition import PCA

from modeling_dsa.encoding import teacher_words
from modeling_dsa.encoding.teacher import load_teacher, teacher_width
from modeling_dsa.encoding.teacher_words import teacher_name, teacher_vectors, vocabulary_from_teacher
from modeling_dsa.text.tokenization import build_tokenizer
from modeling_dsa.text.vocabulary import Size, vocabulary_of_texts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

CARDS = Path(__file__).parents[3] / "model_cards"
OPEN = CARDS / "dsa-mini-en"  # reads all Latin script, and characters of others
SHIPPED = CARDS / "dsa-snli"  # any sentence-transformers model can teach
WORDS = ["a", "man", "dog", "runs", "sleeps", "red", "guitar", "water", "street", "girl"]


pytestmark = pytest.mark.usefixtures("datasets_cache")


@pytest.fixture(scope="module")
def teacher() -> "SentenceTransformer":
    return load_teacher(str(SHIPPED))


def test_tokens_have_the_teachers_own_vectors_where_the_sizes_agree(teacher: "SentenceTransformer") -> None:
    expected = teacher.encode([*WORDS, "ing"])
    found = teacher_vectors(
        teacher, build_tokenizer(WORDS, lowercase=True, pieces=["##ing"]), expected.shape[1], progress=False
    )
    assert found.words[:11] == [*WORDS, "##ing"]  # the padding has none
    np.testing.assert_allclose(found.vectors[:11], expected, atol=1e-5)
    assert "[PAD]" not in found.words


def test_a_teacher_is_asked_once(teacher: "SentenceTransformer", monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, asked = build_tokenizer([*WORDS, "once"], lowercase=True), list[int]()
    encode = teacher.encode

    def counting(texts: "str | list[str]", **options: "object") -> object:
        asked.append(len(texts))
        return encode(texts, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(teacher, "encode", counting)
    first, again = (teacher_vectors(teacher, tokenizer, size, progress=False) for size in (6, 6))
    assert asked.count(len(WORDS) + 1) == 1
    np.testing.assert_array_equal(first.vectors, again.vectors)
    monkeypatch.setattr(teacher, "max_seq_length", 1)  # another teacher
    teacher_vectors(teacher, tokenizer, 6, progress=False)
    assert asked.count(len(WORDS) + 1) == 2


def test_a_broken_cache_costs_only_time(
    teacher: "SentenceTransformer", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setattr(teacher_words, "teacher_caches", lambda: cache)
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    expected = teacher_vectors(teacher, tokenizer, 6, progress=False).vectors
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    for broken in (b"", whole[:-1]):
        kept.write_bytes(broken)
        np.testing.assert_array_equal(teacher_vectors(teacher, tokenizer, 6, progress=False).vectors, expected)
        assert kept.read_bytes() == whole
    cache = tmp_path / "file"
    cache.touch()  # no folder: nothing can be kept in it
    np.testing.assert_array_equal(teacher_vectors(teacher, tokenizer, 6, progress=False).vectors, expected)
    assert "are not kept for later runs" in caplog.text


def test_fewer_numbers_are_the_principal_components(teacher: "SentenceTransformer") -> None:
    found = teacher_vectors(teacher, build_tokenizer(WORDS, lowercase=True), 4, progress=False).vectors
    expected = PCA(4, svd_solver="full").fit_transform(teacher.encode(WORDS))
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-4)


def test_frequent_words_weigh_less_when_asked(teacher: "SentenceTransformer") -> None:
    choose = partial(vocabulary_of_texts, ["a a a dog", "A man sleeps red"], Size(words=3))
    tokenizer, plain = vocabulary_from_teacher(str(SHIPPED), choose, 2, progress=False)
    weighted = vocabulary_from_teacher(str(SHIPPED), choose, 2, frequency_weighting=0.5, progress=False)[1]
    assert plain.words == ["a", "dog", "man"]
    assert tokenizer("A cat")["input_ids"] == [3, 1]
    # Of eight tokens, `a` is four and two are unknown.
    shares = np.array([4, 1, 1]) / 8
    np.testing.assert_allclose(weighted.vectors, plain.vectors * (0.5 / (0.5 + shares))[:, None], rtol=1e-5)


def test_an_open_vocabulary_has_the_teachers_characters_and_emoji() -> None:
    teacher = load_teacher(str(OPEN))
    choose = partial(vocabulary_of_texts, ["A dog 🎃 barks", "A man 日 sleeps"], Size(words=20, pieces=5))
    tokenizer, vectors = vocabulary_from_teacher(str(OPEN), choose, teacher_width(teacher), progress=False)
    assert tokenizer.tokenize("α愛日🎃❤️鬱🏽") == ["α", "愛", "日", "🎃", "❤", "[UNK]", "[UNK]"]
    row = dict(zip(vectors.words, vectors.vectors, strict=True))
    names = {"❤": "heavy black heart", "🎃": "jack-o-lantern", "α": "α", "愛": "愛"}
    np.testing.assert_allclose([row[token] for token in names], teacher.encode(list(names.values())), atol=1e-5)


def test_sizes_that_cannot_be_are_refused(teacher: "SentenceTransformer") -> None:
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    with pytest.raises(ValueError, match="so that those of words cannot have 5000"):
        teacher_vectors(teacher, tokenizer, 5000, progress=False)
    with pytest.raises(ValueError, match="10 words have no 11 principal components"):
        teacher_vectors(teacher, tokenizer, 11, progress=False)


def test_a_teacher_is_told_from_a_file() -> None:
    assert teacher_name(Path("teacher:org/name")) == "org/name"
    assert teacher_name(Path("my teacher:x.txt")) is None
    with pytest.raises(ValueError, match="names no model"):
        teacher_name(Path("teacher:"))
