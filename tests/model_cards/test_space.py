import csv
import io
import json
import re
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import app
import gradio as gr
import httpx
import numpy as np
import pytest
import torch
from browser import ROOT, chromium, needs_chromium
from huggingface_hub import RepoCard, SpaceCardData
from lib.space import running_space
from page import MOST_WAITING
from PIL import Image
from playwright.sync_api import Browser, Dialog, Page, expect
from reading import (
    LONGEST_TEXT,
    MOST_ROWS,
    CannotRead,
    classify_table,
    find_models,
    load_model,
    read,
)
from searching import corpus
from sentence_transformers import SentenceTransformer
from small_models import randomize
from small_repositories import NLI_LABELS
from small_runs import SMALL_SIZES, small_tokenizer
from table import LARGEST_FILE
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from modeling_dsa import DSAConfig, DSAForSequenceClassification, DSAModel

SPACE = ROOT / "model_cards" / "space"
FEELINGS = {0: "negative", 1: "positive"}
PREMISE, HYPOTHESIS = "A man is playing a guitar.", "A man sleeps"
WORDS = {"Premise": ["A", "man", "is", "playing", "a", "guitar", "."], "Hypothesis": ["A", "man", "sleeps"]}
SEVERAL: dict[str, Any] = {"num_attention_heads": 3, "routing_iterations": 3, "id2label": FEELINGS}
ROUNDED = 5.1e-4  # the page shows tenths of a percent


def make_model(folder: Path, **config: Any) -> Path:
    """Save a tiny classifier whose attention is not flat, with its tokenizer."""
    sizes = {**SMALL_SIZES, "vocab_size": len(small_tokenizer())}
    model = DSAForSequenceClassification(DSAConfig(**{**sizes, **config}))
    randomize(model).save_pretrained(folder)
    small_tokenizer().save_pretrained(folder)
    return folder


def make_pair_model(folder: Path, **config: Any) -> Path:
    return make_model(folder, sentences_per_example=2, id2label=NLI_LABELS, **config)


def forward(folder: Path | str, *texts: str) -> tuple[dict[str, float], list[np.ndarray]]:
    """The model's own probabilities, and for each text its attention (iterations, heads, words)."""
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(*texts, return_tensors="pt")
    with torch.no_grad():
        outputs = model.eval()(**batch, output_attentions=True)
    shares = outputs.logits[0].softmax(-1).tolist()
    # (iterations, heads, words of both texts)
    weights = torch.cat(outputs.attentions or (torch.zeros(0, 0, batch["input_ids"].shape[1]),)).numpy()
    ids = batch["input_ids"][0].tolist()
    first = ids.index(tokenizer.sep_token_id) if len(texts) == 2 else len(ids)
    return (
        {model.config.id2label[number]: share for number, share in enumerate(shares)},
        [weights[..., :first], weights[..., first + 1 :]][: len(texts)],
    )


# What a model makes of a text


def test_only_dsa_classifiers_of_a_folder_are_found(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    kinds = {"b": ("dsa", "DSAForNLI"), "a": ("dsa", "DSAForSequenceClassification"), "c": ("bert", "BertModel")}
    for name, (kind, architecture) in (kinds | {"encoder": ("dsa", "DSAModel")}).items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"model_type": kind, "architectures": [architecture]}))
    assert find_models(tmp_path) == [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize(
    "config",
    [{}, {"pooling": "static"}, {"pooling": "mean"}, {"pooling": "structured"}, {"pooling": "variational"}],
    ids=lambda config: str(config.get("pooling", "dynamic")),
)
def test_a_pair_is_read_as_the_model_reads_it(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = make_pair_model(tmp_path, **config)
    found = read(*load_model(str(folder)), PREMISE, HYPOTHESIS)
    classes, weights = forward(folder, PREMISE, HYPOTHESIS)
    assert found.classes == pytest.approx(classes)
    assert {name: part.words for name, part in found.sentences.items()} == WORDS
    for part, expected in zip(found.sentences.values(), weights, strict=True):
        np.testing.assert_allclose(part.weights, expected)
        np.testing.assert_allclose(part.weights.sum(-1), 1, rtol=1e-5)
    assert found.notes == []


def test_a_separator_in_a_text_is_no_word_and_padding_is_one_that_is_not_known(tmp_path: Path) -> None:
    folder = make_pair_model(tmp_path)
    found = read(*load_model(str(folder)), "A man [SEP] zzyzx", "[PAD] man")
    first, second = found.sentences.values()
    assert (first.words, first.known) == (["A", "man", "zzyzx"], [True, True, False])
    assert (second.words, second.known) == (["[PAD]", "man"], [False, True])
    np.testing.assert_allclose(first.weights.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(second.weights.sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "premise,hypothesis\n" + "a man,two\n" * (MOST_ROWS + 1),
            "The file has more than 1,000 rows: send a part of it.",
        ),
        ("premise,hypothesis\n" + "a" * (LONGEST_TEXT + 1) + ",b\n", "Row 1 has a text of more than 2,000 characters"),
        ("premise\na man\n", "mine.csv has no column 'hypothesis': it has premise."),
        ("premise,hypothesis\na man,\n", "mine.csv, line 2, column 'hypothesis': '' is no text"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, content: str, message: str) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(content, encoding="utf-8")
    with pytest.raises(CannotRead, match=re.escape(message)):
        classify_table(*load_model(str(make_pair_model(tmp_path / "model"))), table, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_rows_of_which_the_model_knows_no_word_are_told(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("premise,hypothesis\nA man sleeps,The man\n一二,A cat\n", encoding="utf-8")
    told = classify_table(*load_model(str(make_pair_model(tmp_path / "model"))), table, tmp_path / "out.csv")
    assert told == "2 rows are classified. It knows no word of 1 of them, such as row 2."


def test_a_model_of_sentences_reads_the_first_text_only(tmp_path: Path) -> None:
    folder = make_model(tmp_path, **SEVERAL)
    found = read(*load_model(str(folder)), PREMISE, "is not read")
    assert found.classes == pytest.approx(forward(folder, PREMISE)[0])
    assert [part.words for part in found.sentences.values()] == [WORDS["Premise"]]
    assert (found.iterations, found.heads) == (3, 3)


def test_several_labels_and_a_regression(tmp_path: Path) -> None:
    several = make_model(tmp_path / "several", id2label=FEELINGS, problem_type="multi_label_classification")
    one = make_model(tmp_path / "one", num_labels=1, problem_type="regression")
    model, tokenizer = load_model(str(several))
    with torch.no_grad():
        logits = model(**tokenizer(PREMISE, return_tensors="pt")).logits[0]
    assert read(model, tokenizer, PREMISE, "").classes == pytest.approx(
        dict(zip(FEELINGS.values(), logits.sigmoid().tolist(), strict=True))
    )
    model, tokenizer = load_model(str(one))
    with torch.no_grad():
        logits = model(**tokenizer(PREMISE, return_tensors="pt")).logits[0]
    assert read(model, tokenizer, PREMISE, "").classes == pytest.approx(float(logits))


def test_a_pooling_without_attention_says_so(tmp_path: Path) -> None:
    folder = make_model(tmp_path, pooling="last", encoder="bilstm", id2label=FEELINGS)
    found = read(*load_model(str(folder)), PREMISE, "")
    assert isinstance(found.classes, dict)
    assert sum(found.classes.values()) == pytest.approx(1)
    assert (found.iterations, found.heads) == (0, 0)
    assert found.notes == ["This model has no attention to show: pooling 'last' does not weigh the words."]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (PREMISE, None, "The hypothesis is no text: type one."),
        ("", " \n", "Type a premise and a hypothesis, or choose an example."),
        (PREMISE, "[SEP]", "Type a hypothesis, or choose an example."),
        (PREMISE, " " * (LONGEST_TEXT + 1), "Type a hypothesis, or choose an example."),
        (PREMISE, "zzyzx" * LONGEST_TEXT, "This model knows none of the words of the hypothesis: try other words."),
        (PREMISE, "zzyzx qwrtp", "This model knows none of the words of the hypothesis: try other words."),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, first: str, second: Any, message: str) -> None:
    folder = make_pair_model(tmp_path)
    with pytest.raises(CannotRead, match=re.escape(message)):
        read(*load_model(str(folder)), first, second)


@pytest.mark.parametrize("text", ["man " * LONGEST_TEXT, "man " * (LONGEST_TEXT // 4 - 1) + "guitar"])
def test_a_very_long_text_is_cut_between_words(tmp_path: Path, text: str) -> None:
    found = read(*load_model(str(make_pair_model(tmp_path))), PREMISE, text)
    assert found.sentences["Hypothesis"].words == ["man"] * (LONGEST_TEXT // 4 - 1)
    assert found.notes == [f"Only the first {LONGEST_TEXT:,} characters of the hypothesis are read."]


def test_words_behind_the_models_longest_length_are_left_out(tmp_path: Path) -> None:
    folder = make_pair_model(tmp_path, max_sentence_tokens=4)
    found = read(*load_model(str(folder)), PREMISE, HYPOTHESIS)
    assert [part.words for part in found.sentences.values()] == [WORDS["Premise"][:4], WORDS["Hypothesis"]]
    np.testing.assert_allclose(found.sentences["Premise"].weights.sum(-1), 1, rtol=1e-5)
    assert found.notes == ["This model reads only the first 4 words of the premise."]


def test_what_is_no_trained_classifier_is_refused(tmp_path: Path) -> None:
    DSAModel(DSAConfig(**SMALL_SIZES, vocab_size=len(small_tokenizer()))).save_pretrained(tmp_path / "encoder")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="an encoder without a trained classifier"):
        load_model(str(tmp_path / "encoder"))
    with pytest.raises(ValueError, match="is a model of type 'bert': give one of type 'dsa'"):
        load_model(str(tmp_path / "other"))


# The folder as the Hub gets it


def test_the_header_is_the_hubs_and_names_what_is_there() -> None:
    card = RepoCard.load(SPACE / "README.md", ignore_metadata_errors=False).data
    assert SpaceCardData(**card.to_dict()).sdk == "gradio"
    assert (SPACE / card.app_file).is_file()
    assert card.sdk_version == gr.__version__  # the version that these tests have seen working
    assert len(card.short_description) <= 60


def test_without_a_model_it_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "__file__", str(tmp_path / "cards" / "space" / "app.py"))
    monkeypatch.setattr(sys, "argv", ["app.py"])
    monkeypatch.setenv("DSA_MODELS", " ,")
    with pytest.raises(SystemExit, match="2"):
        app.main()
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"app.py: error: there is no model in {tmp_path / 'cards'}: "
        "name folders or ids of the Hub, here or in DSA_MODELS"
    )


# The page as a server


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    broken = make_pair_model(folder / "broken")
    (broken / "model.safetensors").unlink()
    return {
        "pairs": make_pair_model(folder / "pairs"),
        "sentences": make_model(folder / "sentences", **SEVERAL),
        "last": make_model(folder / "last", pooling="last", encoder="bilstm", id2label=FEELINGS),
        "broken": broken,
    }


@pytest.fixture(scope="module")
def space(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_space(tmp_path_factory.mktemp("log") / "log", *map(str, models.values())) as url:
        yield url


@pytest.mark.slow
def test_what_would_go_round_the_bounds_is_refused(space: str) -> None:
    large = {"files": ("large.csv", b"a" * (LARGEST_FILE + 1))}
    assert httpx.post(f"{space}gradio_api/upload", files=large, timeout=60).status_code == 413
    direct = httpx.post(f"{space}gradio_api/run/answer", json={"data": ["", "", "", None, None]}, timeout=60)
    assert direct.status_code == 404


@pytest.mark.slow
def test_many_clients_at_once_get_their_own_answers_or_hear_that_the_page_is_busy(
    space: str, models: dict[str, Path]
) -> None:
    name = str(models["pairs"])
    pairs = [("man " * (1 + index), "a dog " * (50 - index)) for index in range(50)]
    expected = [read(*load_model(name), *pair).classes for pair in pairs]
    endpoints = httpx.get(f"{space}config", timeout=60).json()["dependencies"]
    answer = next(endpoint["id"] for endpoint in endpoints if endpoint["api_name"] == "answer")
    seconds: list[float] = []

    def ask(number: int) -> dict[str, float] | str:
        started = time.perf_counter()
        found = ask_space(space, answer, [name, *pairs[number % 50], None, None])
        seconds.append(time.perf_counter() - started)
        return found

    def check(found: Sequence[dict[str, float] | str]) -> list[int]:
        """Each answer is right; those who have none."""
        answered = [number for number, shares in enumerate(found) if isinstance(shares, dict)]
        for number in answered:
            assert found[number] == pytest.approx(expected[number % 50], abs=1e-5)
        refused = sorted({*range(len(found))} - {*answered})
        for number in refused:
            assert found[number] == f"Queue is full. Max size is {MOST_WAITING} and size is {MOST_WAITING}."
        return refused

    with ThreadPoolExecutor(200) as clients:
        assert check(list(clients.map(ask, range(50)))) == []
        refused = check(list(clients.map(ask, range(200))))
        assert 0 < len(refused) <= 200 - MOST_WAITING
    assert check([ask(0)]) == []
    assert len(seconds) == 251
    assert max(seconds) < 60
    assert seconds[-1] < 5


def ask_space(space: str, endpoint: int, values: Sequence[Any]) -> dict[str, float] | str:
    """The classes that the page shows, or what it says instead."""
    session = uuid.uuid4().hex
    body = {"data": values, "fn_index": endpoint, "session_hash": session}
    joined = httpx.post(f"{space}gradio_api/queue/join", json=body, timeout=60)
    if joined.status_code == 503:
        return str(joined.json()["detail"])
    address = f"{space}gradio_api/queue/data?session_hash={session}"
    with httpx.stream("GET", address, timeout=60) as events:
        for line in events.iter_lines():
            event = json.loads(line.removeprefix("data: ") or "{}")
            if event.get("msg") == "process_completed":
                values = [shown.get("value") for shown in event["output"]["data"] if isinstance(shown, dict)]
                (bars,) = [value for value in values if isinstance(value, dict) and "confidences" in value]
                return {bar["label"]: bar["confidence"] for bar in bars["confidences"]}
    raise AssertionError("the page closed the line without an answer")


# The page in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, space: str) -> Iterator[Page]:
    with open_page(browser, space) as page:
        yield page


@pytest.fixture
def phone(browser: Browser, space: str) -> Iterator[Page]:
    with open_page(browser, space, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True) as page:
        yield page


@contextmanager
def open_page(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """The page, ready; at the end nothing went wrong in it and it has asked nobody else for anything."""
    expect.set_options(timeout=60_000)
    asked: list[str] = []
    faults: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        faults.append(dialog.message)
        dialog.dismiss()

    with browser.new_context(**options) as context:
        context.set_default_timeout(60_000)
        context.on("request", lambda request: asked.append(request.url))
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", dismiss)
        page.goto(url)
        expect(page.get_by_text("Type a premise and a hypothesis, or choose an example.")).to_be_visible()
        yield page
    hosts = {urlsplit(address).hostname for address in asked if not address.startswith(("data:", "blob:"))}
    assert hosts == {"127.0.0.1"}
    assert faults == []


def choose(page: Page, label: str, option: str | Path) -> None:
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=str(option), exact=True).click()


def classify(page: Page, first: str, second: str | None = None) -> None:
    page.get_by_label("Premise" if second is not None else "Sentence", exact=True).fill(first)
    if second is not None:
        page.get_by_label("Hypothesis", exact=True).fill(second)
    page.get_by_role("button", name="Classify").click()


def expect_classes(page: Page, classes: dict[str, float], *, among_others: bool = False) -> None:
    """Wait until the bars have these names and lengths: a new answer replaces words and bars one after the other."""
    page.wait_for_function(
        """([classes, among_others, rounded]) => {
            const bars = [...document.querySelectorAll("meter")];
            const shown = Object.fromEntries(bars.map(bar => [bar.getAttribute("aria-label"), bar.value]));
            return Object.entries(classes).every(([label, share]) => Math.abs(shown[label] - share) <= rounded)
                && (among_others || Object.keys(shown).length === Object.keys(classes).length);
        }""",
        arg=[classes, among_others, 1e-6],
    )


def shown_weights(page: Page, name: str, words: Sequence[str]) -> list[float]:
    """The numbers under the words in the list of that name, once these words stand there."""
    row = page.get_by_role("list", name=name, exact=True)
    expect(row.locator(".word")).to_have_text(words)
    return [float(text.rstrip("%*")) / 100 for text in row.locator(".weight").all_inner_texts()]


@needs_chromium
@pytest.mark.slow
def test_a_pair_shows_the_models_own_classes_and_weights(page: Page, models: dict[str, Path]) -> None:
    classify(page, PREMISE, HYPOTHESIS)
    classes, attention = forward(models["pairs"], PREMISE, HYPOTHESIS)
    for number in (2, 1):
        if number == 1:
            page.get_by_label("1", exact=True).click()
        for (name, words), weights in zip(WORDS.items(), attention, strict=True):
            shown = shown_weights(page, f"{name}, head 1, iteration {number} of 2", words)
            assert shown == pytest.approx(weights[number - 1, 0], abs=ROUNDED)
    expect_classes(page, classes)
    assert sum(classes.values()) == pytest.approx(1, abs=1e-6)
    assert page.locator("h2").inner_text() == max(classes, key=lambda label: classes[label])
    expect(page.get_by_label("Head", exact=True)).to_be_hidden()  # there is only one


@needs_chromium
@pytest.mark.slow
def test_models_heads_and_iterations_switch(page: Page, models: dict[str, Path]) -> None:
    page.get_by_label("Premise", exact=True).fill(PREMISE)
    choose(page, "Model", models["sentences"])
    classes, (weights,) = forward(models["sentences"], PREMISE)
    for head in range(3):  # all of them, after the last iteration
        shown = shown_weights(page, f"Sentence, head {head + 1}, iteration 3 of 3", WORDS["Premise"])
        assert shown == pytest.approx(weights[2, head], abs=ROUNDED)
    expect_classes(page, classes)
    expect(page.get_by_label("Hypothesis", exact=True)).to_be_hidden()
    choose(page, "Head", "head 2")
    expect(page.get_by_role("list", name="Sentence, head")).to_have_count(1)
    page.get_by_label("2", exact=True).click()
    shown = shown_weights(page, "Sentence, head 2, iteration 2 of 3", WORDS["Premise"])
    assert shown == pytest.approx(weights[1, 1], abs=ROUNDED)
    classify(page, HYPOTHESIS)  # what was chosen stays chosen
    _, (weights,) = forward(models["sentences"], HYPOTHESIS)
    shown = shown_weights(page, "Sentence, head 2, iteration 2 of 3", WORDS["Hypothesis"])
    assert shown == pytest.approx(weights[1, 1], abs=ROUNDED)
    page.get_by_label("Sentence", exact=True).fill(PREMISE)
    choose(page, "Model", models["pairs"])
    expect(page.get_by_text("Type a hypothesis, or choose an example.")).to_be_visible()
    expect(page.locator(".attention")).to_be_hidden()
    expect_classes(page, {})


@needs_chromium
@pytest.mark.slow
def test_examples_are_typed_and_read(page: Page, models: dict[str, Path]) -> None:
    page.get_by_text("Two animals are outside.").click()
    shown_weights(page, "Hypothesis, head 1, iteration 2 of 2", ["Two", "animals", "are", "outside", "."])
    typed = [page.get_by_label(label, exact=True).input_value() for label in ("Premise", "Hypothesis")]
    assert typed == ["Two dogs are running through the snow.", "Two animals are outside."]
    expect_classes(page, forward(models["pairs"], *typed)[0])
    choose(page, "Model", models["sentences"])
    page.get_by_text("The plot is dull and the jokes are worse.").click()
    words = ["The", "plot", "is", "dull", "and", "the", "jokes", "are", "worse", "."]
    shown_weights(page, "Sentence, head 1, iteration 3 of 3", words)


@needs_chromium
@pytest.mark.slow
def test_the_address_leads_back_to_what_was_read(page: Page, models: dict[str, Path]) -> None:
    classify(page, PREMISE, HYPOTHESIS)
    shown_weights(page, "Hypothesis, head 1, iteration 2 of 2", WORDS["Hypothesis"])
    page.wait_for_function("location.search.includes('text_pair')")
    page.reload()
    shown_weights(page, "Hypothesis, head 1, iteration 2 of 2", WORDS["Hypothesis"])
    assert page.get_by_label("Premise", exact=True).input_value() == PREMISE
    page.get_by_label("Premise", exact=True).fill(PREMISE)
    choose(page, "Model", models["sentences"])
    named = f"new URLSearchParams(location.search).get('model') === {json.dumps(str(models['sentences']))}"
    page.wait_for_function(named)
    page.reload()
    shown_weights(page, "Sentence, head 3, iteration 3 of 3", WORDS["Premise"])


@needs_chromium
@pytest.mark.slow
def test_two_models_are_compared_and_the_address_keeps_both(page: Page, models: dict[str, Path]) -> None:
    classify(page, PREMISE, HYPOTHESIS)
    choose(page, "Compare with", models["sentences"])
    expect(page.get_by_text("This model reads single sentences: it has read the first text alone.")).to_be_visible()
    choose(page, "Head", "head 2")  # the first model has one head alone
    page.wait_for_function("location.search.includes('compare_head=2')")
    page.reload()
    _, (premise, _) = forward(models["pairs"], PREMISE, HYPOTHESIS)
    classes, (sentence,) = forward(models["sentences"], PREMISE)
    shown = shown_weights(page, "Premise, head 1, iteration 2 of 2", WORDS["Premise"])
    assert shown == pytest.approx(premise[1, 0], abs=ROUNDED)
    shown = shown_weights(page, "Sentence, head 2, iteration 3 of 3", WORDS["Premise"])
    assert shown == pytest.approx(sentence[2, 1], abs=ROUNDED)
    expect_classes(page, classes, among_others=True)
    expect(page.get_by_text(f"Classes by {models['sentences']}")).to_be_visible()
    # Equal shades are equal weights.
    largest = max(weights.max() for weights in (*forward(models["pairs"], PREMISE, HYPOTHESIS)[1], sentence))
    expect(page.locator(".legend", has_text=f"{largest:.1%}")).to_have_count(2)
    choose(page, "Head", "head 3")
    shown_weights(page, "Sentence, head 3, iteration 3 of 3", WORDS["Premise"])
    expect(page.locator(".legend", has_text=f"{largest:.1%}")).to_have_count(2)
    choose(page, "Compare with", "no other model")
    expect(page.locator(".attention")).to_have_count(1)


@needs_chromium
@pytest.mark.slow
def test_the_nearest_sentences_of_the_corpus_are_those_of_its_vectors(page: Page) -> None:
    classify(page, PREMISE, HYPOTHESIS)
    rows = page.get_by_role("list", name="Nearest in meaning to the premise").get_by_role("listitem")
    expect(rows).to_have_count(5)
    vectors = SentenceTransformer(str(ROOT / "model_cards" / "dsa-mini-en"), device="cpu").encode(
        [PREMISE, *corpus()], normalize_embeddings=True
    )
    cosines = vectors[1:] @ vectors[0]
    for index, row in zip((-cosines).argsort(), rows.all(), strict=False):
        assert row.inner_text().split("\n") == [corpus()[index], f"{cosines[index]:.2f}"]
    classify(page, PREMISE, "zzyzx")  # nothing is read, so nothing is near
    expect(rows).to_have_count(0)


@needs_chromium
@pytest.mark.slow
def test_a_table_comes_back_with_classes(page: Page, models: dict[str, Path], tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("premise,hypothesis\nA man sleeps,The man\nA dog,A cat\n", encoding="utf-8")
    page.get_by_text("Many texts: a CSV file in").click()
    page.locator("input[type=file]").set_input_files(table)
    expect(page.get_by_role("cell", name="mine.csv")).to_be_visible()
    page.get_by_role("button", name="Classify the file").click()
    expect(page.locator("#table-message")).to_have_text("2 rows are classified.")
    with page.expect_download() as download:
        page.locator("a[download='classified.csv']").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["premise"], second["hypothesis"]) == ("A man sleeps", "A cat")
    expected, _ = forward(models["pairs"], "A man sleeps", "The man")
    assert {label: float(first[f"probabilities.{label}"]) for label in expected} == pytest.approx(expected, abs=1e-5)


@needs_chromium
@pytest.mark.slow
def test_what_is_typed_is_shown_as_text(page: Page) -> None:
    evil = "A man <img src=x onerror=alert(1)> <script>alert(2)</script> ${alert(3)} {{value}} &lt; `"
    classify(page, evil, evil)
    page.locator(".attention").wait_for()
    words = page.get_by_role("list", name="Premise", exact=False).locator(".word").all_inner_texts()
    assert "".join(words) == evil.replace(" ", "")
    assert page.locator(".attention img, .attention script").count() == 0


@needs_chromium
@pytest.mark.slow
def test_mistakes_get_a_sentence(page: Page, models: dict[str, Path]) -> None:
    classify(page, PREMISE, "zzyzx")
    expect(page.locator("p[role=status]")).to_have_text(
        "This model knows none of the words of the hypothesis: try other words."
    )
    classify(page, "man " * LONGEST_TEXT, HYPOTHESIS)
    expect(page.locator(".message")).to_have_text(
        f"Only the first {LONGEST_TEXT:,} characters of the premise are read."
    )
    expect(page.locator(".attention")).to_be_visible()
    choose(page, "Model", models["broken"])
    expect(page.locator(".message")).to_contain_text(f"The model {models['broken']} cannot be loaded.")
    expect(page.locator(".message")).to_contain_text("model.safetensors")
    expect(page.locator(".attention")).to_be_hidden()
    page.get_by_label("Premise", exact=True).fill(PREMISE)
    choose(page, "Model", models["last"])
    expect(page.locator(".message")).to_contain_text("This model has no attention to show")
    expect(page.locator("meter")).to_have_count(2)
    expect_classes(page, forward(models["last"], PREMISE)[0])


@needs_chromium
@pytest.mark.slow
def test_a_phone_scrolls_down_only(phone: Page, models: dict[str, Path]) -> None:
    def overflow() -> int:
        return int(phone.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    assert overflow() <= 0
    classify(phone, f"A man {'w' * 300} is playing", HYPOTHESIS)
    shown_weights(phone, "Premise, head 1, iteration 2 of 2", ["A", "man", "w" * 300, "is", "playing"])
    assert overflow() <= 0
    choose(phone, "Model", models["sentences"])
    phone.get_by_role("list", name="Sentence, head 3").wait_for()
    assert overflow() <= 0
    choose(phone, "Model", models["broken"])
    expect(phone.locator(".message")).to_contain_text("cannot be loaded")
    assert overflow() <= 0


# Pairs of pieces of text that lie on each other, and pieces outside the window; `margin` pixels are forgiven.
MISPLACED = """margin => {
  const seen = [...document.querySelectorAll("h1, h2, h3, label > span, .word, .weight, .name, .nearest li > span")]
    .filter(e => e.offsetParent && e.innerText.trim()).map(e => [e.innerText, e.getBoundingClientRect()]);
  const found = seen.filter(([_, r]) => r.left < 0 || r.right > innerWidth + margin).map(([text, _]) => text);
  seen.forEach(([text, a], i) => seen.slice(i + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    wide > margin && high > margin && found.push(text + " / " + other);
  }));
  return found;
}"""


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_of_the_page_is_whole(
    browser: Browser, space: str, models: dict[str, Path], scheme: Literal["light", "dark"], width: int
) -> None:
    asked = {
        "model": models["pairs"],
        "compare": models["sentences"],
        "text": "نص قصير 你好 👩‍👩‍👧 " + "guitar " * 40,
        "text_pair": HYPOTHESIS,
    }
    with browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(f"{space}?{urlencode(asked)}", timeout=60_000)
        page.locator(".nearest").wait_for(timeout=60_000)
        expect(page.locator(".attention")).to_have_count(2)
        assert page.evaluate(MISPLACED, 1) == []
        picture = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("L")
    assert picture.width == width
    shades = np.asarray(picture)
    assert (np.median(shades) > 128) == (scheme == "light")
    assert shades.std() > 10  # there is something on it


# The contrast of two colours by WCAG 2.2, of every piece of text on the shades; AA asks for 4.5.
CONTRASTS = """pieces => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(v => v / 255).map(
      v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  return pieces.map(piece => {
    const pair = [getComputedStyle(piece).color, getComputedStyle(piece.closest('li')).backgroundColor].map(light);
    return Math.max(...pair) / Math.min(...pair);
  });
}"""


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_on_every_shade(browser: Browser, space: str, models: dict[str, Path], scheme: str) -> None:
    with open_page(browser, space, color_scheme=scheme) as page:
        choose(page, "Model", models["sentences"])
        classify(page, " ".join(WORDS["Premise"] * 4))
        page.get_by_role("list", name="Sentence, head 3").wait_for()
        assert page.locator("body.dark").count() == (scheme == "dark")
        # Every shade, whether a word here happens to have it or not.
        page.locator(".attention li").evaluate_all("items => items.forEach((li, i) => li.className = `shade-${i % 9}`)")
        contrasts = page.locator(".attention li *").evaluate_all(CONTRASTS)
        assert len(contrasts) >= 18
        assert min(contrasts) >= 4.5
