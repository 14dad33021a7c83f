"""modeling_dsa.explanation.html: every word with its weight, as text, on one scale."""

import re
from dataclasses import replace

import numpy as np

from modeling_dsa.explanation.attention import TextAttention, Weights
from modeling_dsa.explanation.html import attention_html


def attention(words: tuple[str, ...] = ("a", "b"), weights: Weights | None = None, heads: int = 2) -> TextAttention:
    if weights is None:
        drawn = np.random.default_rng(0).dirichlet(np.ones(len(words)), size=(3, heads))
        weights = drawn.astype(np.float32)  # (iterations, heads, words)
    ends = np.cumsum([len(word) + 1 for word in words])
    offsets = [(int(end) - len(word) - 1, int(end) - 1) for word, end in zip(words, ends, strict=True)]
    return TextAttention(" ".join(words), offsets, [True] * len(words), weights, 0, weights[:0])


def numbers(html: str) -> list[str]:
    return re.findall(r'class="weight">([^<]+)<', html)


def test_every_word_has_its_weight_under_each_head_or_the_chosen_one() -> None:
    texts = {"Premise": attention()}
    heads = texts["Premise"].weights[1]
    expected = [[f"{weight:.1%}" for weight in weights] for weights in (heads.mean(0), *heads)]
    assert numbers(attention_html(texts, 1, None)) == [*expected[0], *expected[1], *expected[2]]
    assert numbers(attention_html(texts, 1, 1)) == expected[2]
    assert 'aria-label="Premise, head 2, iteration 2 of 3"' in attention_html(texts, 1, 1)


def test_shades_share_one_scale_over_sentences_heads_and_iterations() -> None:
    weights = np.array([[[0.5, 0.5]], [[0.2, 0.8]]], np.float32)  # (2 iterations, 1 head, 2 words)
    pair = {"Premise": attention(weights=weights), "Hypothesis": attention(("c",), heads=1)}
    shades = [
        re.findall(r'<li class="shade-(\d)', attention_html(texts, number, None))
        for texts in ({"Premise": pair["Premise"]}, pair)
        for number in (0, 1)
    ]
    assert shades == [["5", "5"], ["2", "8"], ["4", "4", "8"], ["2", "6", "8"]]
    assert "<span>100.0%</span>" in attention_html(pair, 0, None)  # the end of the legend


def test_unknown_words_are_marked_and_the_legend_says_so() -> None:
    known = attention()
    unknown = replace(known, known=[True, False])
    assert "not in the vocabulary" not in attention_html({"Premise": known}, 0, None)
    html = attention_html({"Premise": unknown}, 0, 0)
    assert len(re.findall(r'<li class="shade-\d unknown"', html)) == 1
    assert html.count("not in the vocabulary") == 2  # in the legend and in the word's tooltip
    assert [number.endswith("%*") for number in numbers(html)] == [False, True]  # for who cannot point at it
    assert "* not in the vocabulary" in html


def test_a_text_runs_from_right_to_left_where_its_first_letter_does() -> None:
    html = attention_html({"Premise": attention(("3", "رجل")), "Hypothesis": attention(("a", "رجل"))}, 2, 0)
    assert re.findall(r'<ol dir="(\w+)"', html) == ["rtl", "ltr"]


def test_brackets_turn_round_where_the_text_runs_from_right_to_left() -> None:
    html = attention_html({"Premise": attention(("رجل", "(", "A")), "Hypothesis": attention(("A", "("))}, 2, 0)
    assert re.findall(r'class="word" dir="(\w+)"', html) == ["auto", "rtl", "auto", "auto", "ltr"]


def test_words_and_names_are_text_and_not_html() -> None:
    evil = "\"'><img/src=x/onerror=alert(1)>&amp;"
    html = attention_html({evil: attention((evil, "b"))}, 0, None)
    assert "<img" not in html
    assert "&amp;amp;" in html
    assert not re.search(r"(title|aria-label)=\"[^\"]*'", html)
