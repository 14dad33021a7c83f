"""The distilled encoders in model_cards: the same to all who read them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from transformers import AutoModel, AutoTokenizer

from modeling_dsa import SentenceEncoder
from modeling_dsa.evaluation.models import open_model

CARDS = Path(__file__).parents[2] / "model_cards"
ENCODERS = {"dsa-base-en": 384, "dsa-mini-en": 128}
TEXTS = ("A man is playing a guitar.", "Somebody makes music.", "Interest rates fell by half a point in May.")


@pytest.mark.parametrize("name", ENCODERS)
def test_its_readers_agree_and_compute_in_float32(name: str) -> None:
    folder = str(CARDS / name)
    vectors = SentenceEncoder.from_pretrained(folder).encode(TEXTS)
    assert vectors.shape == (3, ENCODERS[name])
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    assert model.dtype == torch.float32
    with torch.no_grad():
        pooled = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).pooler_output
    np.testing.assert_allclose(vectors, pooled, atol=2e-5)
    np.testing.assert_allclose(vectors, SentenceTransformer(folder, device="cpu").encode(TEXTS), atol=2e-5)


def test_a_separator_splits_no_text_of_a_model_of_pairs_for_sentence_transformers_either() -> None:
    folder, text = str(CARDS / "dsa-snli"), "A man [SEP] is asleep."
    found = SentenceTransformer(folder, device="cpu", trust_remote_code=True).encode(text)
    np.testing.assert_allclose(found, SentenceEncoder.from_pretrained(folder).encode(text), atol=2e-5)


def test_what_sentence_transformers_does_besides_is_told_and_evaluated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (encoder,) = SentenceTransformer(str(CARDS / "dsa-mini-en"), device="cpu", trust_remote_code=True)
    model = SentenceTransformer(
        modules=[encoder, Normalize()],
        device="cpu",
        prompts={"query": "query: "},
        default_prompt_name="query",
        truncate_dim=32,
    )
    model.max_seq_length = 4
    model.save(str(tmp_path / "model"))
    SentenceEncoder.from_pretrained(tmp_path / "model")
    assert (
        "sentence-transformers puts 'query: ' before each text and reads no more than 4 tokens of a text and computes "
        "Normalize behind the encoder and keeps the first 32 numbers of a vector, and this encoder does not"
    ) in caplog.messages[-1]
    evaluated = open_model(str(tmp_path / "model"))
    assert evaluated.library == "sentence-transformers"
    np.testing.assert_allclose(evaluated.encode([*TEXTS]), model.encode(TEXTS), atol=2e-5)


@pytest.mark.parametrize("name", ENCODERS)
def test_like_meanings_have_like_vectors(name: str) -> None:
    vectors = SentenceEncoder.from_pretrained(str(CARDS / name)).encode(TEXTS, normalize=True)
    guitar, music, rates = vectors
    assert guitar @ music > 0.3 > guitar @ rates


@pytest.mark.parametrize("name", ENCODERS)
def test_no_latin_text_is_unknown_and_every_text_has_a_finite_vector(name: str) -> None:
    encoder = SentenceEncoder.from_pretrained(str(CARDS / name))
    latin = ["Donaudampfschifffahrtsgesellschaft", "x" * 10_000, "if (a_b[3] != '\\n') return &c;", "naïve Łódź Þórr ſ"]
    ids = encoder.tokenizer(latin).input_ids
    assert encoder.tokenizer.unk_token_id not in {index for row in ids for index in row}
    assert np.isfinite(encoder.encode([*latin, "你好，世界", "👩‍👩‍👧 🙂", ""])).all()


@pytest.mark.parametrize("name", ENCODERS)
def test_it_reads_emoji_and_the_letters_that_its_teacher_reads(name: str) -> None:
    encoder = SentenceEncoder.from_pretrained(str(CARDS / name))
    assert encoder.tokenizer.tokenize("Мир 日本 ❤️👍") == ["м", "и", "р", "日", "本", "❤", "👍"]
    dog, car = encoder.encode(["🐶", "🚗"], normalize=True) @ encoder.encode(["a dog", "a car"], normalize=True).T
    assert dog[0] > 0.5 > dog[1]
    assert car[1] > 0.5 > car[0]
