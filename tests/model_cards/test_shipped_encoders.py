"""The distilled encoders in model_cards: the same to all who read them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from modeling_dsa import SentenceEncoder

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


def test_a_prompt_that_sentence_transformers_keeps_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, prompts = str(CARDS / "dsa-mini-en"), {"query": "query: "}
    model = SentenceTransformer(
        folder, device="cpu", trust_remote_code=True, prompts=prompts, default_prompt_name="query"
    )
    model.save(str(tmp_path / "model"))
    encoder = SentenceEncoder.from_pretrained(tmp_path / "model")
    assert "sentence-transformers puts 'query: ' before each text, and this encoder does not" in caplog.messages[-1]
    np.testing.assert_allclose(model.encode("a man"), encoder.encode("query: a man"), atol=2e-5)


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
