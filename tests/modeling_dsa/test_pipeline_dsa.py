"""The pipeline of sentence vectors, with the package and a model that is at hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from datasets import Dataset
from small_models import randomize, small_config
from small_repositories import save_system
from small_runs import small_tokenizer
from torch import Tensor
from transformers import Pipeline, pipeline

from modeling_dsa import DSAModel, SentenceEmbeddingPipeline

TEXTS = ["A man is playing a guitar .", "Nobody", "Two dogs run across a field of qqxyz grass .", "Nobody sings ."]


def make_model(**changes: Any) -> DSAModel:
    model = randomize(DSAModel(small_config(vocab_size=len(small_tokenizer()), **changes)))
    model.eval()
    return model


def embedder(model: DSAModel) -> Pipeline:
    made: Pipeline = pipeline("sentence-embedding", model=model, tokenizer=small_tokenizer())  # type: ignore[call-overload]
    return made


def vectors_of(model: DSAModel, *texts: str) -> Tensor:
    with torch.no_grad():
        outputs = model(**small_tokenizer()(list(texts), padding=True, return_tensors="pt"))
    vectors: Tensor = outputs.pooler_output
    return vectors


@pytest.mark.parametrize("pooling", ["dynamic", "variational"])
def test_vectors_are_the_models(pooling: str) -> None:
    model = make_model(pooling=pooling)
    found = embedder(model)(TEXTS)
    assert [len(vector) for vector in found] == [model.config.sentence_embedding_size] * len(TEXTS)
    torch.testing.assert_close(torch.tensor(found), vectors_of(model, *TEXTS))


def test_the_task_is_known_where_the_package_is_imported() -> None:
    assert type(embedder(make_model())) is SentenceEmbeddingPipeline


def test_a_folder_needs_no_remote_code_where_the_class_is_given(tmp_path: Path) -> None:
    """Without it, transformers takes the class from the folder alone, and asks for trust_remote_code."""
    saved = save_system(tmp_path, "nli")
    embed: Any = pipeline(
        "sentence-embedding",  # type: ignore[call-overload]
        model=str(saved.folder),
        pipeline_class=SentenceEmbeddingPipeline,
    )
    assert type(embed.model) is DSAModel
    torch.testing.assert_close(torch.tensor(embed(TEXTS)), vectors_of(saved.base, *TEXTS))
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        pipeline("sentence-embedding", model=str(saved.folder))  # type: ignore[call-overload]


def test_one_text_gives_one_vector() -> None:
    model = make_model(num_attention_heads=2)
    found = embedder(model)(TEXTS[0])
    assert all(type(number) is float for number in found)
    assert found == vectors_of(model, TEXTS[0])[0].tolist()
    assert embedder(model)(TEXTS[:1]) == [found]


@pytest.mark.parametrize("batch_size", [2, 3, 64])
def test_texts_of_different_lengths_share_batches(batch_size: int) -> None:
    embed = embedder(make_model(num_attention_heads=2))
    alone = [embed(text) for text in TEXTS]
    torch.testing.assert_close(torch.tensor(embed(TEXTS, batch_size=batch_size)), torch.tensor(alone))


@pytest.mark.parametrize(
    "given",
    [
        lambda: (text for text in TEXTS),
        lambda: iter(TEXTS),
        lambda: Dataset.from_dict({"text": TEXTS})["text"],
        lambda: np.array(TEXTS),
        lambda: pandas.DataFrame({"text": TEXTS})["text"],
    ],
    ids=["generator", "iterator", "column", "array", "pandas"],
)
def test_what_gives_texts_one_by_one(given: Callable[[], Any]) -> None:
    embed = embedder(make_model())
    found, is_sized = embed(given()), hasattr(given(), "__len__")
    assert isinstance(found, list) is is_sized
    torch.testing.assert_close(torch.tensor(list(found)), torch.tensor(embed(TEXTS)))


@pytest.mark.parametrize("given", [TEXTS[0], TEXTS, iter(TEXTS)], ids=["text", "list", "iterator"])
def test_a_model_that_was_just_trained_gives_the_same(given: Any) -> None:
    embed = embedder(make_model(embedding_dropout=0.5))
    expected = embed(TEXTS)
    embed.model.train()
    found = [embed(given)] if isinstance(given, str) else list(embed(given))
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected[: len(found)]))


@pytest.mark.parametrize("given", [pandas.DataFrame({"text": TEXTS}), set(TEXTS)], ids=["table", "set"])
def test_what_gives_no_texts_in_their_order_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"Sentences are a string or a list of them, got a (DataFrame|set)\."):
        embedder(make_model())(given)


def test_an_option_of_another_pipeline_is_refused() -> None:
    with pytest.raises(ValueError, match="This pipeline has no option 'truncation': leave it out"):
        embedder(make_model())("a", truncation=True)


def test_normalized_vectors_have_length_1() -> None:
    model = make_model()
    found = torch.tensor(embedder(model)(TEXTS, normalize=True))
    torch.testing.assert_close(found.norm(dim=-1), torch.ones(len(TEXTS)))
    torch.testing.assert_close(found, torch.nn.functional.normalize(vectors_of(model, *TEXTS)))


def test_a_vector_of_zeros_cannot_be_normalized() -> None:
    model = make_model(pooling="mean", encoder="none", normalize_tokens=False)
    with torch.no_grad():
        model.get_parameter("embed_tokens.weight").zero_()
    assert embedder(model)(TEXTS[0], normalize=True) == [0.0] * 6


def test_tensors() -> None:
    embed = embedder(make_model(num_attention_heads=2))
    found = embed(TEXTS, return_tensors=True)
    assert [(vector.dtype, tuple(vector.shape)) for vector in found] == [(torch.float32, (8,))] * len(TEXTS)
    assert [vector.tolist() for vector in found] == embed(TEXTS)
    unit = embed(TEXTS[0], return_tensors=True, normalize=True)
    torch.testing.assert_close(unit, torch.nn.functional.normalize(found[0], dim=0))


def test_options_of_the_pipeline_hold_for_every_call() -> None:
    model: Any = make_model()
    always: Any = pipeline(
        "sentence-embedding",  # type: ignore[call-overload]
        model=model,
        tokenizer=small_tokenizer(),
        normalize=True,
        return_tensors=True,
    )
    assert torch.equal(always(TEXTS[0]), embedder(model)(TEXTS[0], normalize=True, return_tensors=True))
    assert type(always(TEXTS[0], return_tensors=False)) is list


def test_half_precision_gives_ordinary_numbers() -> None:
    model = make_model()
    expected = vectors_of(model, *TEXTS)
    embed = embedder(model.to(torch.bfloat16))  # type: ignore[arg-type]  # a wrapper of transformers hides the signature
    found = embed(TEXTS)
    assert all(type(number) is float for vector in found for number in vector)
    torch.testing.assert_close(torch.tensor(found), expected, rtol=0.05, atol=0.05)
    unit = embed(TEXTS[0], normalize=True, return_tensors=True)
    assert unit.dtype == torch.float32
    assert unit.norm().item() == pytest.approx(1)
