"""modeling_dsa.explanation.weight_vectors and projection_files: Algorithm 1's vectors, and where PCA puts them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser import chromium, needs_chromium
from matplotlib.image import imread
from playwright.sync_api import expect
from small_models import randomize, small_config

from modeling_dsa import DSAForNLI, DSAModel
from modeling_dsa.explanation.labelled_sentences import LabelledSentences, read_sentences
from modeling_dsa.explanation.projection_files import groupings, write_projection
from modeling_dsa.explanation.weight_vectors import Projection, project, weight_vectors
from modeling_dsa.files.pictures import contrast
from modeling_dsa.text.tokenization import build_tokenizer

WORDS = ["a", "man", "is", "asleep", ".", "two", "dogs", "run"]
TEXTS = ["a man is asleep .", "two dogs run", "two men", "a dog", "is a man", "run run run ."]


def test_vectors_are_those_of_the_model_in_every_iteration() -> None:
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    model = randomize(
        DSAForNLI(small_config(vocab_size=len(tokenizer), num_attention_heads=3, sentences_per_example=2))
    )
    pooling: Any = model.dsa.pooling
    found = weight_vectors(model, tokenizer, TEXTS)
    assert found.shape == (len(TEXTS), 2, 3, 4)
    for text, vectors in zip(TEXTS, found, strict=True):
        batch = {name: tensor.long() for name, tensor in tokenizer(text, return_tensors="pt").items()}
        with torch.no_grad():
            last = model.dsa(**batch).pooler_output[0]
            pooling.iterations = 1
            first = model.dsa(**batch).pooler_output[0]
            pooling.iterations = 2
        np.testing.assert_allclose(vectors.reshape(2, -1), np.stack([first, last]), atol=1e-6)
    pair = tokenizer("a man is asleep .", "two dogs", return_tensors="pt")
    with torch.no_grad():
        outputs = model.dsa(**pair, output_weight_vectors=True)
    assert [of_iteration.shape for of_iteration in outputs.weight_vectors] == [(1, 2, 3, 4)] * 2
    torch.testing.assert_close(outputs.weight_vectors[-1][:, 0].flatten(1), outputs.pooler_output)
    torch.testing.assert_close(outputs.weight_vectors[-1][:, 1].flatten(1), outputs.second_pooler_output)
    static = randomize(DSAModel(small_config(vocab_size=len(tokenizer), pooling="static", num_attention_heads=3)))
    found = weight_vectors(static, tokenizer, TEXTS)
    assert found.shape == (len(TEXTS), 1, 1, 12)
    with torch.no_grad():
        expected = static(**tokenizer(TEXTS, padding=True, return_tensors="pt")).pooler_output
    np.testing.assert_allclose(found[:, 0, 0], expected, atol=1e-6)
    with pytest.raises(ValueError, match="Pooling 'static' has no dynamic weight vectors"):
        static(torch.tensor([[3]]), output_weight_vectors=True)


def projection(labels: list[str]) -> Projection:
    vectors = np.random.default_rng(0).normal(size=(len(TEXTS), 2, 3, 5))
    return project(LabelledSentences(TEXTS, labels), vectors, "pca")


def test_pca_is_that_of_the_singular_values() -> None:
    vectors = np.random.default_rng(0).normal(size=(len(TEXTS), 2, 3, 5))
    found = projection([])
    rows = vectors.reshape(-1, 5) - vectors.reshape(-1, 5).mean(0)
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    np.testing.assert_allclose(found.variance, (values**2 / (values**2).sum())[:2])
    np.testing.assert_allclose(np.abs(found.points.reshape(-1, 2)), np.abs((left * values)[:, :2]), atol=1e-9)
    with pytest.raises(ValueError, match="There are 2 distinct sentences"):
        project(LabelledSentences(TEXTS[:2], []), vectors[:2], "pca")
    with pytest.raises(ValueError, match="All vectors are equal"):
        project(LabelledSentences(TEXTS, []), np.ones_like(vectors), "t-sne")
    assert project(LabelledSentences(TEXTS, []), vectors, "t-sne").axes == ["t-SNE 1", "t-SNE 2"]


def test_rare_labels_are_one_group() -> None:
    labels = [f"label {number % 10}" for number in range(60)]
    names, groups = groupings(
        Projection(LabelledSentences(labels, labels), np.zeros((60, 1, 1, 2)), "pca", [0.5, 0.2])
    )["label"]
    assert names == [*(f"label {number}" for number in range(7)), "3 other labels"]
    assert groups[:, 0, 0].tolist() == [min(number % 10, 7) for number in range(60)]


def test_sentences_are_read_with_their_labels_or_without(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("premise\thypothesis\tlabel\nA\tb\tyes\nA\tc\tno\n", encoding="utf-8")
    assert read_sentences(pairs, [], None, 9) == LabelledSentences(["A", "b", "c"], ["yes", "yes", "no"])
    assert read_sentences(pairs, ["hypothesis"], None, 1) == LabelledSentences(["b"], ["yes"])
    halves = tmp_path / "halves.jsonl"
    halves.write_text('{"text": "half \\ud83d", "label": "yes"}\n', encoding="utf-8")
    assert read_sentences(halves, [], None, 9) == LabelledSentences(["half \ufffd"], ["yes"])
    pairs.write_text("premise\thypothesis\tgold-label\nA\tb\tyes\n", encoding="utf-8")
    assert read_sentences(pairs, [], None, 9) == LabelledSentences(["A", "b"], ["yes", "yes"])
    pairs.write_text("premise\thypothesis\tother\nA\tb\tc\nd\tA\te\n", encoding="utf-8")
    assert read_sentences(pairs, [], None, 9) == LabelledSentences(["A", "b", "d"], [])
    assert read_sentences(pairs, ["other", "premise"], None, 3) == LabelledSentences(["c", "A", "e"], [])
    lines = tmp_path / "a.txt"
    lines.write_text("A\nb\nA\n", encoding="utf-8")
    assert read_sentences(lines, [], None, 9) == LabelledSentences(["A", "b"], [])
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_sentences(tmp_path / "no.txt", [], None, 9)


def test_a_picture_and_a_page_hold_every_point(tmp_path: Path) -> None:
    found = projection(["$x", "no", "</script>", "no", "$x", "no"])
    write_projection(found, "my <model>", tmp_path / "a.svg")
    assert re.findall(r"by \w+", (tmp_path / "a.svg").read_text(encoding="utf-8"))
    write_projection(found, "my <model> of DATA, TITLE", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 1
    assert "<title>Vectors of 6 sentences, my &lt;model&gt; of DATA, TITLE</title>" in page
    assert "http" not in page
    data = json.loads(re.findall(r"^const data = (.*);$", page, flags=re.M)[0])
    np.testing.assert_allclose([point[:2] for point in data["points"]], found.points.reshape(-1, 2), atol=1e-4)
    assert data["sentences"] == TEXTS
    assert data["groupings"]["label"] == ["no", "$x", "</script>"]
    assert data["label_of"] == [1, 0, 2, 0, 1, 0]
    assert min(contrast(colour, page) for colour in data["colours"] for page in ("#ffffff", "#0f172a")) >= 3


def test_long_and_foreign_labels_leave_a_picture_its_shape(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    linear_b = "\U00010000"  # which no font here has
    labels = [f"{linear_b} is a label of sixty characters, which are many for label {number}" for number in range(6)]
    write_projection(projection(labels), "my model", tmp_path / "long.png")
    assert caplog.text.count("No font here has 1 of the characters") == 1
    write_projection(projection(["yes", "no"] * 3), "my model", tmp_path / "short.png")
    long, short = (imread(tmp_path / f"{name}.png") for name in ("long", "short"))
    assert long.shape[1] == short.shape[1]
    assert not (long[[0, -1]] < 1).any()  # nothing is cut above or below


@pytest.mark.slow
@needs_chromium
def test_the_page_says_whose_each_vector_is(tmp_path: Path) -> None:
    found = projection(["yes", "no", "yes", "no", "yes", "no"])
    write_projection(found, "my model", tmp_path / "a.html")
    faults: list[str] = []
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 375, "height": 740}, color_scheme="dark")
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto((tmp_path / "a.html").as_uri())
        spot = page.evaluate("place(data.points[0])")
        page.locator("#plot").hover(position={"x": spot[0], "y": spot[1]})
        expect(page.get_by_role("status")).to_have_text("a man is asleep . · yes · iteration 1 · head 1")
        page.mouse.move(0, 0)
        expect(page.get_by_role("status")).to_be_empty()
        page.locator("#plot").focus()
        leftmost = int(np.argmin(found.points[..., 0]))
        page.keyboard.press("ArrowRight")
        sentence = TEXTS[np.unravel_index(leftmost, found.points.shape[:3])[0]]
        expect(page.get_by_role("status")).to_contain_text(sentence)
        page.keyboard.press("Escape")
        expect(page.get_by_role("status")).to_be_empty()
        page.get_by_label("Colour by").select_option("head")
        expect(page.get_by_role("list")).to_have_text("head 1head 2head 3")
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert faults == []
