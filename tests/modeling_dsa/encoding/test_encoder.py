"""modeling_dsa.encoding.encoder: vectors are those of the model, whatever the batch, in each form."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_encoders import SENTENCES, save_encoder, small_encoder, vectors_one_by_one
from small_models import small_config
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, pipeline

from modeling_dsa import DSAForNLI
from modeling_dsa.encoding.encoder import SentenceEncoder

CASES: list[dict[str, Any]] = [
    {"num_attention_heads": 2},
    {"sentences_per_example": 2},
    {"encoder": "bilstm", "hidden_size": 6, "pooling": "max"},
    {"pooling": "variational", "max_sentence_tokens": 8},
]


@pytest.mark.parametrize(("changes", "batch_size"), list(zip(CASES, (1, 3, 256, 3), strict=True)))
def test_vectors_are_pooler_output_whatever_the_batch(changes: dict[str, Any], batch_size: int) -> None:
    encoder = small_encoder(**changes)
    expected = vectors_one_by_one(encoder, SENTENCES)
    found = encoder.encode(SENTENCES, batch_size=batch_size)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= 1e-6
    assert np.abs(encoder.encode(SENTENCES[::-1], batch_size=batch_size)[::-1] - expected).max() <= 1e-6
    assert len(np.unique(found.round(4), axis=0)) >= 7  # copies, unknown and empty sentences apart


@pytest.mark.parametrize("sentences_per_example", [1, 2])
def test_a_separator_splits_no_sentence_in_two(sentences_per_example: int) -> None:
    encoder = small_encoder(sentences_per_example=sentences_per_example)
    found = encoder.encode(["A dog [SEP] runs fast .", "[SEP] A dog runs fast .", "A dog runs fast ."])
    assert (found == found[-1]).all()


def test_one_sentence_is_one_vector_and_none_are_none() -> None:
    encoder = small_encoder()
    assert encoder.encode("A dog").shape == (encoder.width,) == (4,)
    assert (encoder.encode("A dog") == encoder.encode(["A dog"])[0]).all()
    assert encoder.encode([]).shape == (0, 4)
    assert encoder.encode(()).dtype == np.float32
    assert encoder.encode([""]).shape == (1, 4)
    assert np.isfinite(encoder.encode(["", "", "zqxv"])).all()


def test_each_distinct_sentence_is_encoded_once_and_no_place_is_padding_for_long() -> None:
    encoder = small_encoder()
    shapes = []
    encoder.model.register_forward_pre_hook(
        lambda _module, args, kwargs: shapes.append(tuple(args[0].shape)), with_kwargs=True
    )
    encoder.encode(["a", "dog", "a", "a"] * 10 + ["a man is"])
    assert shapes == [(3, 3)]
    shapes.clear()
    encoder.encode([*("a " * 200 + str(number) for number in range(4)), "dog"], batch_size=32)
    assert shapes == [(2, 201), (2, 201), (1, 1)]
    shapes.clear()
    encoder.encode(["a " * 2000, "dog"], batch_size=4)
    assert shapes == [(1, 2000), (1, 1)]


def test_normalized_vectors_have_length_one_but_for_zeros() -> None:
    encoder = small_encoder(pooling="max")  # an empty sentence has a vector of zeros
    plain, normal = encoder.encode(SENTENCES), encoder.encode(SENTENCES, normalize=True)
    lengths = np.linalg.norm(plain, axis=1)
    assert lengths[1] == 0
    assert (normal[1] == 0).all()
    full = lengths > 0
    assert np.allclose(normal[full], plain[full] / lengths[full, None], atol=1e-6)


def test_float16_is_float32_rounded() -> None:
    encoder = small_encoder()
    found = encoder.encode(SENTENCES, dtype="float16")
    assert found.dtype == np.float16
    assert (found == encoder.encode(SENTENCES).astype(np.float16)).all()


def test_int8_uses_its_whole_range_and_gives_the_normalized_vector_back() -> None:
    encoder = small_encoder(num_attention_heads=10)
    exact = encoder.encode(SENTENCES, normalize=True)
    found = encoder.encode(SENTENCES, dtype="int8")
    assert found.dtype == np.int8
    full = np.abs(exact).max(1) > 0
    assert (np.abs(found[full].astype(int)).max(1) == 127).all()
    assert (found == encoder.encode(SENTENCES, dtype="int8", normalize=True)).all()
    wide = found[full].astype(np.float64)
    back = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    assert (np.abs(back - exact[full]).max(1) <= 1.5 / 254 * np.abs(exact[full]).max(1)).all()
    assert np.abs(back @ back.T - exact[full] @ exact[full].T).max() < 0.01
    zeros = small_encoder(pooling="max").encode(["", "dog"], dtype="int8")
    assert (zeros[0] == 0).all()
    assert zeros[1].any()


def test_padding_and_truncation_of_an_earlier_call_do_not_stay() -> None:
    encoder = small_encoder()
    expected = encoder.encode(SENTENCES)
    encoder.tokenizer(["a", "a dog"], padding="max_length", truncation=True, max_length=3)
    assert (encoder.encode(SENTENCES) == expected).all()


def test_model_in_training_mode_is_put_out_of_it_and_keeps_no_graph() -> None:
    encoder = small_encoder(embedding_dropout=0.5)
    expected = encoder.encode(SENTENCES)
    encoder.model.train()
    assert (encoder.encode(SENTENCES) == expected).all()
    assert not encoder.model.training
    assert torch.is_grad_enabled()


def test_classifier_folder_and_object_give_their_encoders_vectors(tmp_path: Path) -> None:
    small = small_encoder(sentences_per_example=2)
    classifier = DSAForNLI(small_config(vocab_size=small.model.config.vocab_size, sentences_per_example=2)).eval()
    classifier.dsa.load_state_dict(small.model.state_dict())
    expected = small.encode(SENTENCES)
    assert (SentenceEncoder(classifier, small.tokenizer).encode(SENTENCES) == expected).all()
    classifier.save_pretrained(tmp_path)
    small.tokenizer.save_pretrained(tmp_path)
    assert (SentenceEncoder.from_pretrained(tmp_path, device="cpu").encode(SENTENCES) == expected).all()
    assert (SentenceEncoder.from_pretrained(str(tmp_path)).encode(SENTENCES) == expected).all()
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert (SentenceEncoder(loaded, AutoTokenizer.from_pretrained(tmp_path)).encode(SENTENCES) == expected).all()


def test_vectors_of_a_model_that_predicts_from_samples_are_those_of_the_mean() -> None:
    random, expected = (small_encoder(pooling="variational", num_prediction_samples=count) for count in (4, 0))
    assert (random.encode(SENTENCES) == expected.encode(SENTENCES)).all()
    embed = pipeline("sentence-embedding", model=random.model, tokenizer=random.tokenizer)  # type: ignore[call-overload]
    for texts in (SENTENCES, (text for text in SENTENCES)):
        assert np.abs(np.array(list(embed(texts))) - expected.encode(SENTENCES)).max() <= 1e-6
    batch = random.tokenizer("A man is sleeping.", return_tensors="pt")
    assert (random.model(**batch).pooler_output != random.model(**batch).pooler_output).any()


def test_half_precision_model_gives_the_vectors_that_are_asked_for() -> None:
    encoder = small_encoder()
    expected = encoder.encode(SENTENCES)
    encoder.model.bfloat16()
    found = encoder.encode(SENTENCES)
    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=0.1)


def test_progress_counts_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    encoder = small_encoder()
    encoder.encode(SENTENCES)
    assert capsys.readouterr().err == ""
    encoder.encode(SENTENCES, progress=True)
    assert f"{len(SENTENCES)}/{len(SENTENCES)}" in capsys.readouterr().err


def test_mistakes_are_clear(tmp_path: Path) -> None:
    encoder = small_encoder()
    with pytest.raises(ValueError, match="The sentence at index 1 is None, which is no string"):
        encoder.encode(["a", None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="Sentences are a string or a list of them, got a dict"):
        encoder.encode({"text": "a"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Sentences are a string or several of them, got None"):
        encoder.encode(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no vectors of dtype 'int4': give one of float32, float16, int8"):
        encoder.encode("a", dtype="int4")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        encoder.encode("a", batch_size=0)
    with pytest.raises(ValueError, match="A object is no fast tokenizer"):
        SentenceEncoder(encoder.model, object())  # type: ignore[arg-type]
    BertConfig().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a model of type 'bert': give one of type 'dsa'"):
        SentenceEncoder.from_pretrained(tmp_path)
    with pytest.raises(OSError, match="nowhere"):
        SentenceEncoder.from_pretrained(tmp_path / "nowhere")


def test_saved_folder_loads_from_its_own_code(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    found = SentenceEncoder.from_pretrained(folder, trust_remote_code=True).encode(SENTENCES)
    assert (found == small_encoder().encode(SENTENCES)).all()
