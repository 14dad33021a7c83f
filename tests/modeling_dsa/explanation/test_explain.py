"""modeling_dsa.explain: the model's own attention over the words of a text, shown in every way."""

import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from rich.console import Console
from small_models import randomize, small_config
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from modeling_dsa import DSAForNLI, DSAForSequenceClassification, DSAModel, Explanation
from modeling_dsa.explanation.drawing import drawn_sentences
from modeling_dsa.explanation.explain import SAMPLES, explain
from modeling_dsa.text.tokenization import build_tokenizer

WORDS = ["a", "man", "is", "asleep", ".", "two", "dogs", "run", "``", "''", "..."]
HEADS = {"model": DSAModel, "classifier": DSAForSequenceClassification, "nli": DSAForNLI}


def attentive(kind: str = "nli", **changes: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A small model of random weights with three heads, and its tokenizer."""
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    settings = {
        "vocab_size": len(tokenizer),
        "num_attention_heads": 3,
        "sentences_per_example": 2 if kind == "nli" else 1,
    }
    return randomize(HEADS[kind](small_config(**(settings | changes)))), tokenizer


TINY = attentive("model")


def explained(loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase], *texts: str) -> Explanation:
    return explain(loaded[0], *texts, tokenizer=loaded[1])


@pytest.mark.parametrize("kind", ["model", "classifier"])
def test_a_sentence_has_the_models_own_attention(kind: str) -> None:
    model, tokenizer = attentive(kind)
    text = "  A man\u200b is “asleep”…  zqxv Cafe\u0301 ❤\ufe0f\u1112\u1161\u11ab ."
    explanation = explained((model, tokenizer), text)
    (found,) = explanation.texts.values()
    assert found.words == [
        "A",
        "man",
        "is",
        "“",
        "asleep",
        "”",
        "…",
        "zqxv",
        "Cafe\u0301",
        "❤\ufe0f",
        "\u1112\u1161\u11ab",
        ".",
    ]
    assert found.text == text
    outputs = model.eval()(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    first, last = (attention[0].detach().numpy() for attention in outputs.attentions)  # (heads, words) each
    (alike,) = found.rows(0)
    assert alike.name == "all heads"
    np.testing.assert_array_equal(np.stack([alike.weights] * 3), first)
    together, *heads = found.rows(1)
    assert [row.name for row in (together, *heads)] == ["all heads", "head 1", "head 2", "head 3"]
    np.testing.assert_array_equal([row.weights for row in heads], last)
    np.testing.assert_allclose(together.weights, last.mean(0), rtol=1e-6)
    assert together.spread is None
    if kind == "classifier":
        share, number = outputs.logits[0].softmax(-1).max(-1)
        assert explanation.scores is not None
        assert explanation.scores.decision == f"LABEL_{number} {share:.1%}"
    else:
        assert explanation.scores is None


def test_what_goes_past_the_encoder_is_the_last_row() -> None:
    model, tokenizer = attentive(projection_size=5, word_shortcut=True)
    explanation = explained((model, tokenizer), "A man is asleep.", "Two dogs run")
    batch = tokenizer("A man is asleep.", "Two dogs run", return_tensors="pt")
    expected = model.eval()(**batch, output_attentions=True).shortcut_attention[0].detach()  # (5 + separator + 3,)
    for text, weights in zip(explanation.texts.values(), (expected[:5], expected[6:]), strict=True):
        for iteration in range(2):
            *_, row = text.rows(iteration)
            assert row.name == "shortcut"
            np.testing.assert_array_equal(row.weights, weights)
    assert explanation._repr_html_().count('<span class="name">shortcut</span>') == 4
    assert [sentence.names[-1] for sentence in drawn_sentences(explanation.texts)] == ["shortcut", "shortcut"]


def test_a_pair_has_the_models_own_attention_side_by_side() -> None:
    model, tokenizer = attentive(id2label={0: "yes", 1: "no", 2: "perhaps"})
    explanation = explained((model, tokenizer), "A man is asleep.", "Two dogs run")
    first, second = explanation.texts.values()
    batch = tokenizer("A man is asleep.", "Two dogs run", return_tensors="pt")
    expected = model.eval()(**batch, output_attentions=True).attentions[-1][0].detach()  # (heads, 5 + separator + 3)
    np.testing.assert_array_equal(first.weights[-1], expected[:, :5])
    np.testing.assert_array_equal(second.weights[-1], expected[:, 6:])
    drawn = drawn_sentences(explanation.texts, 0, decision="no 40.0%")
    assert [sentence.label for sentence in drawn] == [
        "First sentence, iteration 1 of 2",
        "Second sentence, iteration 1 of 2: no 40.0%",
    ]
    together = explained((model, tokenizer), "A man is asleep. [SEP] two dogs run")
    np.testing.assert_allclose(
        together.texts["Sentence"].weights, np.concatenate([first.weights, second.weights], -1), rtol=1e-5
    )


def test_dropout_is_off_and_the_model_stays_in_training() -> None:
    model, tokenizer = attentive("classifier", embedding_dropout=0.9, hidden_dropout=0.9)
    expected = explained((model.eval(), tokenizer), "a man is asleep")
    found = explained((model.train(), tokenizer), "a man is asleep")
    assert model.training
    assert str(found) == str(expected)


def test_a_variational_model_has_the_spread_of_whole_words() -> None:
    tokenizer = build_tokenizer([*WORDS, "un"], lowercase=True, pieces=["##ing"])
    model = randomize(
        DSAForSequenceClassification(
            small_config(pooling="variational", num_attention_heads=2, vocab_size=len(tokenizer))
        )
    )
    pooling: Any = model.dsa.pooling
    explanation = explained((model, tokenizer), "a unmaning man")
    (found,) = explanation.texts.values()
    assert found.samples.shape == (SAMPLES, 2, 3)
    np.testing.assert_allclose(found.samples.sum(-1), 1, rtol=1e-5)
    assert pooling.prediction_samples == 0
    pooling.prediction_samples = 4000
    outputs = model.eval()(**tokenizer("a unmaning man", return_tensors="pt"), output_attentions=True)
    mean, spread = outputs.attentions[0][0].detach(), outputs.attentions_std[0].detach()  # (heads, tokens)
    for number, row in enumerate(found.rows(0)[1:]):
        assert row.spread is not None
        # Words of one token: the first and the last.
        np.testing.assert_allclose(row.spread[[0, 2]], spread[number, [0, -1]], rtol=0.4)
        np.testing.assert_allclose(found.samples[:, number].mean(0)[[0, 2]], mean[number, [0, -1]], atol=0.1)
    assert "±" in str(explanation)
    assert "±" in explanation._repr_html_()
    pooling.prediction_samples = 0
    assert str(explained((model, tokenizer), "a unmaning man")) == str(explanation)  # the same samples each time


def test_it_shows_itself_as_text_html_and_files(tmp_path: Path) -> None:
    explanation = explained(attentive(), "A man \x1b[31m<b>", "Two dogs")
    (first, *_) = explanation.texts.values()
    text = str(explanation)
    assert repr(explanation) == text
    assert "\x1b" not in text
    assert f"A:{first.weights[0, 0, 0]:.0%}" in text
    page = explanation.save(tmp_path / "new" / "a.html").read_text(encoding="utf-8")
    shown = re.findall(r'class="weight">([\d.]+)%\*?<', page)
    every = [row.weights for it in range(2) for part in explanation.texts.values() for row in part.rows(it)]
    np.testing.assert_allclose([float(number) for number in shown], 100 * np.concatenate(every), atol=0.051)
    assert page.count("<script") == page.count("http") == page.count("url(") == page.count("<b>") == 0
    assert (
        len(re.findall("<ol ", page)) == len(re.findall(r'<ol dir="ltr" role="list" aria-label="[^"]+">', page)) == 10
    )
    assert re.findall(r"<h(\d)", page) == list("1233233")  # the title, and each iteration with two sentences
    labels = re.findall(r'<th scope="row"><bdi>(\w+)</bdi></th><td>([\d.]+)%</td>', page)
    assert {label for label, _ in labels} == {"LABEL_0", "LABEL_1", "LABEL_2"}
    assert explanation.save(tmp_path / "a.svg").read_text(encoding="utf-8").count("routing") == 0
    with pytest.raises(ValueError, match=r"a\.gif: explanations are written as \.html, \.png, \.svg, \.pdf: "):
        explanation.save(tmp_path / "a.gif")
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["a.html", "a.svg"]


def test_a_terminal_keeps_every_weight_and_marks_unknown_words() -> None:
    def shown(text: str, colours: Any = None) -> str:
        console = Console(file=io.StringIO(), width=30, color_system=colours, force_terminal=True, force_jupyter=False)
        with console.capture() as written:
            console.print(explained(TINY, text))
        return written.get()

    words = re.findall(r"(\S+):(\d+)%(\S*)", shown(f"A {'w' * 80} 日本{'語' * 40} man"))
    assert [mark for _, _, mark in words] == ["", "*", "*", ""] * (len(words) // 4)
    assert re.fullmatch("w+…", words[1][0])
    assert re.fullmatch("日本語+…", words[2][0])
    assert shown("A zqxv").rstrip().endswith("* not in the vocabulary")
    assert "vocabulary" not in shown("A man")
    assert re.search(r"man:0\.\d%", shown("a man is " * 100))  # one of 300 words has less than a percent
    assert "48;5;" in shown("A man", "256")
    assert not re.search(r"\x1b\[(3[0-7]|4[0-7])", shown("A man", "standard"))


def test_tokens_that_are_not_read_are_told_wherever_attention_is_shown(drawn: list[Any], tmp_path: Path) -> None:
    explanation = explained(attentive("model", max_sentence_tokens=2), "A man is asleep.")
    told = "Sentence: 3 more tokens are not read"
    assert told in str(explanation)
    assert told in explanation.save(tmp_path / "a.html").read_text(encoding="utf-8")
    explanation.save(tmp_path / "a.png")
    assert any("3 more tokens are not read" in text.get_text() for text in drawn[0].findobj(Text))
    assert "not read" not in str(explained(TINY, "A man is asleep."))


def test_a_joiner_is_no_blank_in_a_terminal() -> None:
    assert "می\u200cخواهم" in explained(TINY, "می\u200cخواهم").texts["Sentence"].words
    assert "میخواهم:100%*" in str(explained(TINY, "می\u200cخواهم"))


def test_the_decision_of_a_regression_and_of_several_labels() -> None:
    model, tokenizer = attentive("classifier", num_labels=1, problem_type="regression")
    scores = explained((model, tokenizer), "a man").scores
    logits = model.eval()(**tokenizer("a man", return_tensors="pt")).logits[0]
    assert scores is not None
    assert scores.decision == f"{logits.item():.3g}"
    model, tokenizer = attentive("classifier", problem_type="multi_label_classification")
    scores = explained((model.eval(), tokenizer), "a man").scores
    logits = model(**tokenizer("a man", return_tensors="pt")).logits[0]
    assert scores is not None
    assert scores.decision == f"LABEL_{logits.argmax()} {logits.sigmoid().max():.1%}"


def test_a_model_of_broken_weights_explains_nothing() -> None:
    model, tokenizer = attentive("classifier")
    model.get_parameter("dsa.embed_tokens.weight").data.fill_(math.nan)
    with pytest.raises(ValueError, match="The attention to the sentence 'a man' is not finite: give another model"):
        explained((model, tokenizer), "a man")


@pytest.mark.parametrize(
    ("kind", "sentences", "message"),
    [
        ("model", ("",), "no token in the sentence ''"),
        ("classifier", (" \n",), "no token in the sentence"),
        ("nli", ("[SEP]",), r"no token in the sentence '\[SEP\]'"),
        ("nli", ("a man", ""), "no token in the sentence ''"),
        ("nli", ("", "a man"), "no token in the sentence ''"),
        ("nli", ("a man",), "classifies pairs of sentences, but one was given"),
        ("classifier", ("a man", "a dog"), "reads single sentences, but two were given"),
    ],
)
def test_sentences_that_do_not_fit_are_refused_and_nothing_else_is_said(
    kind: str, sentences: tuple[str, ...], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    logging.get_logger().warning_once.cache_clear()  # type: ignore[attr-defined]  # it is said once a process
    with pytest.raises(ValueError, match=message):
        explained(attentive(kind), *sentences)
    assert not caplog.messages or sentences != ("a man",)  # the model has a hint for pairs, too


@settings(max_examples=15)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_every_text_is_explained_or_has_no_words(text: str) -> None:
    model, tokenizer = TINY
    try:
        explanation = explained((model, tokenizer), text)
    except ValueError as error:
        assert "There is no token" in str(error)  # noqa: PT017
        assert tokenizer.tokenize(text) == []
    else:
        assert len(explanation.texts["Sentence"].offsets) == len(tokenizer.tokenize(text))
        assert str(explanation)


def test_a_pooling_without_attention_and_a_model_without_tokenizer_are_named() -> None:
    model, tokenizer = attentive("model", encoder="bilstm", hidden_size=6, pooling="last", num_attention_heads=1)
    with pytest.raises(ValueError, match=r"^Pooling 'last' has no attention over the tokens: give another model\.$"):
        explained((model, tokenizer), "a film")
    with pytest.raises(ValueError, match="give tokenizer too"):
        explain(model, "a film")
    with pytest.raises(ValueError, match=r"as strings: \['a film', 'a man'\] is none"):
        explain(model, ["a film", "a man"], tokenizer=tokenizer)  # type: ignore[arg-type]
