from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import matplotlib.image
import matplotlib.pyplot
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import randomize, small_config
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa import DSAForNLI, DSAForSequenceClassification, DSAModel
from modeling_dsa.explanation.drawing import DrawnSentence, draw_attention, drawn_sentences
from modeling_dsa.text.tokenization import build_tokenizer

TEXT = r"A sign says: $5_a costs \alpha $x^2$"


def row(text: str = TEXT, heads: int = 2, label: str = "premise") -> DrawnSentence:
    offsets = [match.span() for match in re.finditer(r"\S+", text)]
    weights = np.random.default_rng(0).dirichlet(np.ones(len(offsets)), size=heads)  # (heads, tokens)
    return DrawnSentence(text, offsets, weights, label)


def texts(path: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_file_is_made_in_a_new_folder_with_the_same_bytes_each_time(tmp_path: Path, ending: str, start: bytes) -> None:
    paths = [tmp_path / "new" / "folder" / f"{i}.{ending}" for i in range(2)]
    for path in paths:
        assert draw_attention([row(), row("It is .", label="hypothesis")], path, title="neutral") == path
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert first.startswith(start)
    assert sorted(tmp_path.rglob("*.*")) == paths  # nothing half-written stays
    assert matplotlib.pyplot.get_fignums() == []


@pytest.mark.slow
def test_same_bytes_in_another_process(tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np\nfrom modeling_dsa.explanation.drawing import DrawnSentence, draw_attention\n"
        "draw_attention([DrawnSentence('a b', [(0, 1), (2, 3)], np.array([[0.25, 0.75]]), 'x')], sys.argv[1])"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.svg")], env=environment, check=True, timeout=120)
    draw_attention([DrawnSentence("a b", [(0, 1), (2, 3)], np.array([[0.25, 0.75]]), "x")], tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_svg_holds_tokens_weights_labels_and_heads_as_they_are(tmp_path: Path) -> None:
    premise, hypothesis = row(), row("It is _ $ .", heads=1, label="hypothesis $y$")
    found = texts(draw_attention([premise, hypothesis], tmp_path / "a.svg", title="entailment_0 $z$"))
    for word in TEXT.split():
        assert found.count(word) == 2  # once for each head
    for weight in [*premise.weights.flat, *hypothesis.weights.flat]:
        assert f"{weight:.2f}" in found
    for word in ["entailment_0 $z$", "premise", "hypothesis $y$", "head 1", "head 2", "_", "$", "attention weight"]:
        assert word in found


def test_long_sentence_wraps_inside_the_picture_without_numbers(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(120)]
    path = draw_attention([row(" ".join(words), heads=1)], tmp_path / "a.svg")
    positions = {
        element.text: (float(element.attrib["x"]), float(element.attrib["y"]))
        for element in ElementTree.parse(path).iter()
        if element.tag.endswith("}text")
    }
    assert set(words) <= set(positions)
    in_order = [positions[word] for word in words]
    assert all(0 < x < 720 for x, _ in in_order)
    assert len({y for _, y in in_order}) > 3
    assert in_order == sorted(in_order, key=lambda position: (position[1], position[0]))
    assert not [text for text in positions if text and re.fullmatch(r"\d\.\d\d", text) and positions[text][1] > 60]


def test_token_wider_than_the_picture_is_cut(tmp_path: Path) -> None:
    found = texts(draw_attention([row("a " + "w" * 500)], tmp_path / "a.svg"))
    cut = [text for text in found if text.startswith("www")]
    assert len(cut) == 2
    assert all(re.fullmatch("w{20,150}…", text) for text in cut)


def test_shade_grows_with_the_weight_and_the_text_flips(tmp_path: Path) -> None:
    weights = np.array([[0.0, 0.1, 0.3, 0.6]])
    path = draw_attention(
        [DrawnSentence("aa bb cc dd", [(0, 2), (3, 5), (6, 8), (9, 11)], weights, "x")], tmp_path / "a.svg"
    )
    colours = {
        element.text: match[1]
        for element in ElementTree.parse(path).iter()
        if element.text and (match := re.search(r"fill: (#\w+)", element.attrib.get("style", "")))
    }
    assert colours["aa"] == colours["bb"] == "#1a1a1a"
    assert colours["dd"] == "#ffffff"
    boxes = re.findall(r'style="fill: (#\w{6}); stroke: #c4ccd6', path.read_text())[:4]
    greys = [sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in boxes]
    assert len(greys) == 4
    assert greys == sorted(greys, reverse=True)
    assert greys[0] > 700  # white
    assert greys[3] < 200  # dark


def test_all_weights_zero_and_odd_characters_are_drawn(tmp_path: Path) -> None:
    path = draw_attention([DrawnSentence("a\x00<&\n", [(0, 5)], np.zeros((1, 1)), "x")], tmp_path / "a.svg")
    assert "a <& " in texts(path)
    image = matplotlib.image.imread(draw_attention([row()], tmp_path / "a.png"))
    assert image.shape[1] == 1500


@pytest.mark.parametrize(
    ("offsets", "weights", "message"),
    [
        ([(0, 1), (2, 3)], np.ones(2), r"'x': weights must have the shape \(heads, tokens\), not \(2,\)"),
        ([], np.ones((1, 0)), r"not \(1, 0\)"),
        ([(0, 1)], np.ones((1, 2)), r"weights for 2 tokens, but 1 offsets"),
        ([(0, 1), (2, 3)], np.array([[0.5, 0.5], [0.5, np.nan]]), r"the weight of head 2, token 2 is nan"),
        ([(0, 1)], np.array([[-0.5]]), r"head 1, token 1 is -0\.5; it must be finite and not negative"),
        ([(0, 4)], np.ones((1, 1)), r"\(0, 4\) is no token in a text of 3 characters"),
        ([(1, 1)], np.ones((1, 1)), r"\(1, 1\) is no token"),
    ],
)
def test_mistakes_in_a_row_are_clear(offsets: list[tuple[int, int]], weights: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DrawnSentence("a b", offsets, weights, "x")


def test_mistakes_in_a_picture_are_clear_and_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.gif: pictures are written as \.png, \.svg, \.pdf, not \.gif"):
        draw_attention([row()], tmp_path / "a.gif")
    with pytest.raises(ValueError, match="sentences is empty"):
        draw_attention([], tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


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


def tokens_of(row: DrawnSentence) -> list[str]:
    return [row.text[start:end] for start, end in row.offsets]


@pytest.mark.parametrize("kind", ["model", "classifier"])
def test_what_is_drawn_of_a_sentence_are_the_models_own_attention(kind: str) -> None:
    model, tokenizer = attentive(kind)
    text = "  A man\u200b is “asleep”…  zqxv."
    (found,) = drawn_sentences(model, tokenizer, text)
    assert tokens_of(found) == ["A", "man", "is", "“", "asleep", "”", "…", "zqxv", "."]
    assert found.text == text
    outputs = model.eval()(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    assert found.weights.shape == (3, 9)
    np.testing.assert_array_equal(found.weights, outputs.attentions[-1][0].detach())
    np.testing.assert_allclose(found.weights.sum(1), 1.0, rtol=1e-5)
    if kind == "classifier":
        share, number = outputs.logits[0].softmax(-1).max(-1)
        assert found.label == f"sentence: LABEL_{number} {share:.0%}"
    else:
        assert found.label == "sentence"


def test_rows_of_a_pair_are_the_models_own_attention() -> None:
    model, tokenizer = attentive(id2label={0: "yes", 1: "no", 2: "perhaps"})
    first, second = drawn_sentences(model, tokenizer, "A man is asleep.", "Two dogs run")
    assert tokens_of(first) == ["A", "man", "is", "asleep", "."]
    assert tokens_of(second) == ["Two", "dogs", "run"]
    batch = tokenizer("A man is asleep.", "Two dogs run", return_tensors="pt")
    outputs = model.eval()(**batch, output_attentions=True)
    expected = outputs.attentions[-1][0].detach()  # (heads, 5 + separator + 3)
    np.testing.assert_array_equal(first.weights, expected[:, :5])
    np.testing.assert_array_equal(second.weights, expected[:, 6:])
    share, number = outputs.logits[0].softmax(-1).max(-1)
    assert first.label == "first sentence"
    assert second.label == f"second sentence: {['yes', 'no', 'perhaps'][number]} {share:.0%}"


def test_rows_come_without_dropout_and_leave_the_model_in_training() -> None:
    model, tokenizer = attentive("classifier", embedding_dropout=0.9, hidden_dropout=0.9)
    expected = drawn_sentences(model.eval(), tokenizer, "a man is asleep")
    (found,) = drawn_sentences(model.train(), tokenizer, "a man is asleep")
    assert model.training
    np.testing.assert_array_equal(found.weights, expected[0].weights)
    assert found.label == expected[0].label


def test_pair_in_one_text_is_one_row_without_the_separator() -> None:
    model, tokenizer = attentive()
    (found,) = drawn_sentences(model, tokenizer, "A man [SEP] two dogs run")
    assert tokens_of(found) == ["A", "man", "two", "dogs", "run"]
    pair = drawn_sentences(model, tokenizer, "A man", "two dogs run")
    np.testing.assert_allclose(found.weights, np.hstack([row.weights for row in pair]), rtol=1e-5)


def test_label_of_a_regression_and_of_several_labels() -> None:
    model, tokenizer = attentive("classifier", num_labels=1, problem_type="regression")
    (found,) = drawn_sentences(model, tokenizer, "a man")
    logits = model.eval()(**tokenizer("a man", return_tensors="pt")).logits[0]
    assert found.label == f"sentence: {logits.item():.3g}"
    model, tokenizer = attentive("classifier", problem_type="multi_label_classification")
    (found,) = drawn_sentences(model.eval(), tokenizer, "a man")
    assert not model.training
    logits = model(**tokenizer("a man", return_tensors="pt")).logits[0]
    assert found.label == f"sentence: LABEL_{logits.argmax()} {logits.sigmoid().max():.0%}"


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
def test_sentences_that_do_not_fit_are_refused(kind: str, sentences: tuple[str, ...], message: str) -> None:
    model, tokenizer = attentive(kind)
    with pytest.raises(ValueError, match=message):
        drawn_sentences(model, tokenizer, *sentences)


@settings(max_examples=30)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_every_text_gives_a_row_that_can_be_drawn_or_a_clear_error(text: str) -> None:
    model, tokenizer = attentive("model")
    try:
        (found,) = drawn_sentences(model, tokenizer, text)
    except ValueError as error:
        assert "There is no token" in str(error)  # noqa: PT017
        assert tokenizer.tokenize(text) == []
    else:
        assert len(found.offsets) == len(tokenizer.tokenize(text))


def test_a_pooling_without_attention_is_named() -> None:
    tokenizer = build_tokenizer(["a", "film"], lowercase=True)
    model = DSAModel(small_config(encoder="bilstm", hidden_size=6, pooling="last", vocab_size=len(tokenizer)))
    with pytest.raises(ValueError, match=r"^Pooling 'last' has no attention over the tokens to draw\.$"):
        drawn_sentences(model, tokenizer, "a film")
