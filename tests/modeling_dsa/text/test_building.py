"""modeling_dsa.text.building: whose case decides, which rows are filled and which drawn, and what stays untouched."""

import logging
import re
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from small_models import small_config
from torch import Tensor

from modeling_dsa import DSAConfig, DSAForNLI, DSAForSequenceClassification, DSAModel
from modeling_dsa.text.building import build_model, vocabulary_from_texts, vocabulary_from_vectors
from modeling_dsa.text.special_tokens import SPECIAL_TOKENS
from modeling_dsa.text.tokenization import build_tokenizer
from modeling_dsa.text.word_vectors import WordVectors

GLOVE = Path(__file__).parents[4] / "shared" / "data" / "glove" / "glove.6B.55k.zip"
LOWER = ["the", "a", "man", "paris", "sleeps", "."]
CASED = ["the", "The", "a", "A", "man", "Paris", "sleeps", "."]


def numbers(words: Sequence[str], dimension: int = 4) -> np.ndarray:
    return np.random.default_rng(len(words)).normal(size=(len(words), dimension)).astype(np.float32)


def vectors_of(words: Sequence[str]) -> WordVectors:
    return WordVectors(list(words), numbers(words))


def write(path: Path, words: Sequence[str]) -> Path:
    rows = ([word, *map(repr, row.tolist())] for word, row in zip(words, numbers(words), strict=True))
    path.write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def table(model: DSAModel | DSAForSequenceClassification) -> Tensor:
    return cast(Tensor, model.get_input_embeddings().weight).detach()


@pytest.fixture(autouse=True)
def _random_state_stays() -> Iterator[None]:
    before = torch.get_rng_state()
    yield
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("file", "texts", "ids_agree", "known"),
    [
        (LOWER, ["The man sleeps .", "A MAN ."], True, {"the", "man", "sleeps", ".", "a"}),
        (CASED, ["The man sleeps .", "the Paris"], False, {"The", "man", "sleeps", ".", "the", "Paris"}),
        (CASED, ["the man sleeps"], True, {"the", "man", "sleeps"}),  # texts without capitals lose nothing
    ],
    ids=["lower-case file", "cased file", "cased file, lower-case texts"],
)
def test_file_decides_whether_texts_are_lower_cased(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    file: list[str],
    texts: list[str],
    ids_agree: bool,
    known: set[str],
) -> None:
    caplog.set_level(logging.INFO)
    tokenizer, vectors = vocabulary_from_texts(write(tmp_path / "v.txt", file), texts, progress=False)
    assert set(tokenizer.get_vocab()) == known | set(SPECIAL_TOKENS)
    assert set(vectors.words) == known
    assert (tokenizer("The")["input_ids"] == tokenizer("the")["input_ids"]) == ids_agree
    assert ("Texts are lower-cased." in caplog.messages) == ids_agree
    assert ("Texts keep their capital letters." in caplog.messages) != ids_agree


def test_one_odd_word_far_down_the_file_does_not_make_it_cased(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", [*LOWER, *(f"w{number}" for number in range(10_000)), "Odd"])
    for tokenizer in (
        vocabulary_from_texts(path, ["The Odd man"], False)[0],
        vocabulary_from_vectors(path, None, False)[0],
    ):
        assert tokenizer.tokenize("THE MAN") == ["the", "man"]


def test_most_frequent_words_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", ["[SEP]", *LOWER])
    tokenizer, vectors = vocabulary_from_vectors(path, 4, progress=False)
    assert vectors.words == ["[SEP]", "the", "a", "man"]
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "[SEP]": 2, "the": 3, "a": 4, "man": 5}


@pytest.mark.parametrize("texts", [[], ["", " \n", "[SEP]"]])
def test_texts_without_a_word_are_refused(tmp_path: Path, texts: list[str]) -> None:
    with pytest.raises(ValueError, match="no word in the texts"):
        vocabulary_from_texts(write(tmp_path / "v.txt", LOWER), texts, progress=False)


def test_real_glove_is_lower_case() -> None:
    if not GLOVE.exists():
        pytest.skip("needs the project's shared GloVe vectors")
    tokenizer, vectors = vocabulary_from_texts(GLOVE, ["Two Dogs zqxv."], progress=False)
    assert sorted(vectors.words) == [".", "dogs", "two"]
    model = build_model(DSAModel, small_config(), tokenizer, vectors, seed=0)
    assert model.config.embedding_size == 100
    row = table(model)[tokenizer("DOGS")["input_ids"][0]]
    np.testing.assert_array_equal(row, vectors.vectors[vectors.words.index("dogs")])


def test_table_holds_vectors_drawn_rows_and_a_zero_for_padding(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    words = [f"word{number}" for number in range(200)]
    tokenizer = build_tokenizer(words, lowercase=True)
    vectors = vectors_of(["absent", "[PAD]", "[UNK]", *words[100:]])
    model = build_model(DSAModel, small_config(unknown_init_range=0.01), tokenizer, vectors, seed=0)
    rows = table(model)
    assert rows.shape == (203, 4)
    np.testing.assert_array_equal(rows[103:], vectors.vectors[3:])
    assert not rows[0].any()
    drawn = rows[1:103]  # [UNK], [SEP] and the words without a vector
    assert drawn.abs().max() <= 0.01
    assert drawn.std() == pytest.approx(0.01 / 3**0.5, rel=0.1)  # of U(-a, a)
    assert len(np.unique(drawn, axis=0)) == len(drawn)
    assert "100 of 200 words have a vector." in caplog.messages
    assert not model.get_input_embeddings().weight.requires_grad


def test_copying_in_parts_fills_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modeling_dsa.text.building._ROWS_AT_ONCE", 3)
    words = [f"word{number}" for number in range(10)]
    vectors = vectors_of(words[::-1])
    model = build_model(DSAModel, small_config(), build_tokenizer(words, lowercase=True), vectors, seed=0)
    np.testing.assert_array_equal(table(model)[3:], vectors.vectors[::-1])


def test_same_seed_same_model_whatever_torch_has_drawn() -> None:
    tokenizer = build_tokenizer(LOWER, lowercase=True)

    def build(seed: int, known: Sequence[str] = LOWER[:3]) -> dict[str, Tensor]:
        with torch.random.fork_rng():
            torch.rand(3)
            return build_model(DSAModel, small_config(), tokenizer, vectors_of(known), seed).state_dict()

    first, again, other = build(7), build(7), build(8)
    assert all(torch.equal(first[name], again[name]) for name in first)
    changed = {name for name in first if not torch.equal(first[name], other[name])}
    assert changed == {name for name in first if not name.endswith("bias")}
    # What is drawn does not depend on which other words have a vector.
    more = build(7, LOWER[:5])
    assert torch.equal(first["embed_tokens.weight"][8:], more["embed_tokens.weight"][8:])
    assert all(torch.equal(first[name], more[name]) for name in first if name != "embed_tokens.weight")


def test_config_is_copied_whole_and_stays_as_it_is() -> None:
    config = small_config(sentences_per_example=2, id2label={0: "yes", 1: "no", 2: "perhaps"}, label2id={"yes": 0})
    config.note = "mine"
    config.problem_type = "single_label_classification"
    before = config.to_dict()
    model = build_model(DSAForNLI, config, build_tokenizer(LOWER, lowercase=True), vectors_of(LOWER), seed=0)
    assert config.to_dict() == before
    assert model.config is not config
    changed = {key: value for key, value in model.config.to_dict().items() if before.get(key) != value}
    changed.pop("dtype", None)  # transformers writes it into the config of every new model
    assert changed == {"vocab_size": 9, "embedding_size": 4}
    assert model.config.id2label == {0: "yes", 1: "no", 2: "perhaps"}


def test_mistakes_are_clear() -> None:
    tokenizer = build_tokenizer(LOWER, lowercase=True)
    message = "None of the tokenizer's 6 words is among the 2 words with a vector: take vectors of the same language"
    with pytest.raises(ValueError, match=re.escape(message)):
        build_model(DSAModel, small_config(), tokenizer, vectors_of(["LE", "[PAD]"]), seed=0)
    with pytest.raises(ValueError, match="DSAForNLI reads pairs"):
        build_model(DSAForNLI, DSAConfig(), tokenizer, vectors_of(LOWER), seed=0)


def test_large_table_is_copied_in_parts() -> None:
    words = [f"word{number}" for number in range(20_000)]
    vectors = WordVectors(words, np.ones((20_000, 300), dtype=np.float32))  # 24 MB
    tokenizer = build_tokenizer(words, lowercase=True)
    tracemalloc.start()
    try:
        build_model(DSAModel, small_config(), tokenizer, vectors, seed=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16e6
