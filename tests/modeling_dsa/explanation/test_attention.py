"""modeling_dsa.explanation.attention: the tokens that a model reads, no others, and the model's own weights of them."""

from typing import Any

import numpy as np
import pytest
from small_models import randomize, small_config
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAForNLI, DSAModel
from modeling_dsa.explanation.attention import TextAttention, read_attention
from modeling_dsa.text.tokenization import build_tokenizer


def small_model(kind: type[Any] = DSAForNLI, **changes: Any) -> tuple[Any, PreTrainedTokenizerBase]:
    tokenizer = build_tokenizer(["a", "man", "is", "asleep", "."], lowercase=True)
    pairs = {"sentences_per_example": 2} if kind is DSAForNLI else {}
    return randomize(kind(small_config(vocab_size=len(tokenizer), **pairs, **changes))), tokenizer


def tokens_of(attention: TextAttention) -> list[str]:
    return [attention.text[start:end] for start, end in attention.offsets]


@pytest.mark.parametrize(
    ("texts", "tokens", "known", "left_out"),
    [
        (("A man [SEP] zqxv", "[PAD] man"), [["A", "man", "zqxv"], ["[PAD]", "man"]], [[1, 1, 0], [0, 1]], [0, 0]),
        (("a man is asleep .", "a"), [["a", "man", "is"], ["a"]], [[1, 1, 1], [1]], [2, 0]),
        (("a man is asleep [SEP] a . . . a",), [["a", "man", "is", "a", ".", "."]], [[1] * 6], [3]),
        (("\ud800 man", ""), [["\ufffd", "man"], []], [[0, 1], []], [0, 0]),
    ],
)
def test_what_is_read_and_no_more(
    texts: tuple[str, ...], tokens: list[list[str]], known: list[list[int]], left_out: list[int]
) -> None:
    model, tokenizer = small_model(max_sentence_tokens=3)
    found, scores = read_attention(model, tokenizer, *texts)
    assert [tokens_of(attention) for attention in found] == tokens
    assert [attention.known for attention in found] == [list(map(bool, each)) for each in known]
    assert [attention.left_out for attention in found] == left_out
    sentences = 2 if len(texts) == 1 else 1  # that one text holds
    for attention in found:
        assert attention.weights.shape == (2, 1, len(attention.offsets))
        if attention.offsets:
            np.testing.assert_allclose(attention.weights.sum(-1), sentences, rtol=1e-5)
    assert scores is not None
    assert (scores.function, scores.class_names) == ("softmax", ["LABEL_0", "LABEL_1", "LABEL_2"])
    assert scores.values.sum() == pytest.approx(1)


def test_attention_is_that_of_whole_words() -> None:
    words = ["man", "un", "愛"]
    tokenizer = build_tokenizer(words, lowercase=True, pieces=["##ing"])
    model = randomize(DSAModel(small_config(vocab_size=len(tokenizer))))
    long = "Donau" * 20
    text = f"A man's unmaning {long}, 愛日! Привет"
    (found,), _ = read_attention(model, tokenizer, text)
    assert tokens_of(found) == ["A", "man", "'s", "unmaning", long, ",", "愛", "日", "!", "Привет"]
    assert found.known == [True] * 7 + [False, True, False]
    batch = tokenizer(text, return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    weights = model.eval()(**batch, output_attentions=True).attentions[-1].detach()[0]  # (heads, tokens)
    first, last = tokens.index("un"), tokens.index(",")
    assert tokens[first : first + 4] == ["un", "##m", "##a", "##n"]
    np.testing.assert_allclose(found.weights[-1, :, 3:5].sum(-1), weights[:, first:last].sum(-1), rtol=1e-5)
    np.testing.assert_allclose(found.weights.sum(-1), 1, rtol=1e-5)


def test_an_encoder_has_no_scores_and_a_pooling_without_attention_no_weights() -> None:
    found, scores = read_attention(*small_model(DSAModel, pooling="mean", encoder="none"), "a man")
    assert scores is None
    assert tokens_of(found[0]) == ["a", "man"]
    model, tokenizer = small_model(DSAModel, pooling="last", encoder="bilstm", hidden_size=6)
    assert read_attention(model, tokenizer, "a man")[0][0].weights.shape == (0, 0, 2)
