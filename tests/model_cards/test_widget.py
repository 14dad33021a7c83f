"""model_cards/widget: the page reads texts as Python does, and answers what onnxruntime answers, without a server."""

import json
import os
import random
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
from browser import ROOT, chromium, needs_chromium
from playwright.sync_api import Browser, Page, expect
from small_encoders import save_encoder
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoTokenizer
from widget_page import SOURCES, NotBuiltError, build_widget, served

from modeling_dsa.explanation.attention import sum_pieces
from modeling_dsa.explanation.words import find_words
from modeling_dsa.hub.static_space import write_static_space
from modeling_dsa.onnx.export import export_onnx
from modeling_dsa.onnx.session import OnnxModel
from modeling_dsa.prediction.logits import logits_to_scores
from modeling_dsa.text.word_rules import whole_word_pattern
from run_glue_style.sample import SAMPLE_FILES

pytestmark = pytest.mark.slow
SAME = 2e-3  # where another processor rounds a number to the next of 256
PATIENCE = 120_000  # milliseconds; a page alone on the machine needs a hundredth
PAIRS = [
    ("A man is playing a guitar.", "A man is asleep."),
    ("Two dogs run through the snow.", "Animals are outdoors."),
    ("A woman doesn't wait — she's “late”…", "Nobody [SEP] waits, zzyzx!"),
    ("👩‍👩‍👧 ΣΑΣ 日本語 é", "won't" * 40),
]
# What the rules of word_rules.py, the steps before them, and other languages' idea of a character turn on.
HARD = (  # noqa: SIM905, as a list it would take a line for each
    r"""don't can't cannot GONNA U.S. Mr. 1,000 3.5 10:30 -- ... … — – “ ” ‘ ’ " ' ` `` '' -LRB- -rrb- \/ R&B """
    "o'clock t-shirt "
    "f-16 https://a.b/c?d=e me@x.org www.x.com [SEP] [PAD] [UNK] no. # ## <b> 'ſ 'S ß ﬆ st. İ ΣΑΣ Σ é e\u0301 "
    "\u1112\u1161\u11ab \u1100\u1161\u11a8 각 👩\u200d👩\u200d👧 🇩🇪 日本語 ไทย \u0301 \u212a \u212b ǆ x\u0327\u0323"
).split()
# Words of several tokens, and letters of several characters.
TYPED = [
    "The word שלום, Café, Cafe\u0301 and Donaudampfschifffahrtsgesellschaft mean",
    "I \u2764\ufe0f x\u0327\u0323 \u1112\u1161\u11ab日本語 пx-ray .\u0301 👩\u200d👩\u200d👧",
    "[PAD] 1\ufe0f\u20e3 naïve\u200b",
]
HARD += ["\u200b", "\u00ad", "\ufe0f", "\u0007", "\t", "\n", "\u00a0", "\u3000", "\ufeff", "\x85", "\u2028", "ab" * 600]


@pytest.fixture(scope="module")
def widget() -> Path:
    """The sources with what npm made of them."""
    try:
        return build_widget()
    except NotBuiltError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def hard_texts(sentences: list[str], count: int) -> list[str]:
    """Random characters of all scripts, hard words, and sentences with either of them in between."""
    draw = random.Random(0)
    characters = [chr(code) for code in range(1, 0x20000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]

    def text() -> str:
        pieces = [draw.choice(draw.choice((characters, HARD))) for _ in range(draw.randint(1, 12))]
        if draw.random() < 0.6:
            return draw.choice(("", " ")).join(pieces)
        sentence = list(draw.choice(sentences))
        for piece in pieces[:4]:
            sentence.insert(draw.randint(0, len(sentence)), piece)
        return "".join(sentence)

    return [text() for _ in range(count)]


@pytest.mark.parametrize("name", ["dsa-snli", "dsa-mini-en"])  # whole words alone, and pieces
def test_ten_thousand_texts_have_pythons_ids(widget: Path, name: str) -> None:
    sentences = pq.read_table(SAMPLE_FILES["validation"])["hypothesis"].unique().to_pylist()[:6000]
    texts = [*TYPED, *sentences, *hard_texts(sentences, 6000), "", " "]
    pairs = list(zip(sentences[:200], sentences[200:400], strict=True))
    file = ROOT / "model_cards" / name / "tokenizer.json"
    done = subprocess.run(
        ["node", "scripts/tokenize.js", str(file), whole_word_pattern()],
        cwd=widget,
        input="\n".join(map(json.dumps, [*texts, *pairs])),
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [encoding.ids for encoding in Tokenizer.from_file(str(file)).encode_batch([*texts, *pairs])]
    assert len(expected) > 10_000
    differ = [text for text, mine, its in zip([*texts, *pairs], found, expected, strict=True) if mine["ids"] != its]
    assert differ == []

    # And the words are those that Python's explanation shows, as they were typed, of the same tokens.
    config, tokenizer = AutoConfig.from_pretrained(file.parent), AutoTokenizer.from_pretrained(file.parent)
    for text, mine in zip(texts[:300], found, strict=False):
        (words,) = find_words(config, tokenizer, text)[1]
        shown = [text[start:end] for start, end in words.offsets]
        assert mine["words"][0] == list(map(list, zip(shown, words.tokens, words.known, strict=True)))


def numbers(page: Page, selector: str, attribute: str) -> npt.NDArray[np.float64]:
    return np.array(page.locator(selector).evaluate_all(f"found => found.map(one => Number(one.dataset.{attribute}))"))


def type_texts(page: Page, texts: tuple[str, ...]) -> None:
    """Type into the fields, and wait until that is answered."""
    for index, text in enumerate(texts):
        before = page.locator("html").get_attribute("data-answers") or ""
        field = page.locator("textarea").nth(index)
        if field.input_value() != text:
            field.fill(text)
            expect(page.locator("html")).not_to_have_attribute("data-answers", before, timeout=PATIENCE)


def run(model: OnnxModel, text: str, pair: str | None = None) -> dict[str, npt.NDArray[Any]]:
    """The outputs for one text or pair."""
    part = model.tokenizer.encode(text, pair)
    inputs = {"input_ids": part.ids, "attention_mask": part.attention_mask, "token_type_ids": part.type_ids}
    names = [output.name for output in model.session.get_outputs()]
    return dict(
        zip(names, model.session.run(names, {name: np.array([row]) for name, row in inputs.items()}), strict=True)
    )


# The contrast of two colours by WCAG 2.2, of every piece of text on what lies behind it; AA asks for 4.5.
CONTRASTS = """() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = channels(colour).slice(0, 3).map(c => c / 255).map(
      c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if ((channels(colour)[3] ?? 1) === 1) return colour;
    }
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  for (let text; (text = texts.nextNode()); ) {
    const owner = text.parentElement;
    if (!text.data.trim() || !owner.checkVisibility() || owner.closest('noscript, option')) continue;
    const [one, other] = [getComputedStyle(owner).color, behind(owner)].map(light).sort((a, b) => b - a);
    found.push((one + 0.05) / (other + 0.05));
  }
  return found;
}"""


@needs_chromium
def test_a_classifiers_page_answers_as_onnxruntime_does_and_without_a_connection(
    widget: Path, browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(ROOT / "model_cards" / "dsa-snli", tmp_path / "dsa-snli"))
    export_onnx(folder, folder / "onnx", quantize=True)
    content = write_static_space(folder, tmp_path / "page", model_id="org/dsa-snli", bundle=widget / "dist")
    size = sum(path.stat().st_size for path in (tmp_path / "page").iterdir())
    assert size < 20e6
    model = OnnxModel.from_pretrained(folder, quantized=True, threads=1)

    faults, asked = [], []
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("request", lambda request: asked.append(request.url))
    with served(tmp_path / "page") as url:
        page.goto(url)
        page.locator("#answer").wait_for()
        first = int(page.evaluate("Number(document.documentElement.dataset.firstAnswer ?? performance.now())"))
        with capsys.disabled():
            print(f"\nwidget: first answer after {first / 1000:.2f} s, {size / 1e6:.1f} MB")  # noqa: T201
        expect(page.get_by_role("heading", level=1)).to_have_text("dsa-snli")
        assert page.get_by_role("textbox", name="Premise").input_value() == content["examples"][0][0]
        shipped = pq.read_table(SAMPLE_FILES["validation"]).slice(0, 8)
        for texts in (*zip(*(shipped[name].to_pylist() for name in ("premise", "hypothesis")), strict=True), *PAIRS):
            type_texts(page, texts)
            wanted = run(model, *texts)
            scores = dict(zip(model.labels, logits_to_scores(wanted["logits"], "softmax")[0], strict=True))
            labels = page.locator("[data-label]").evaluate_all("found => found.map(one => one.dataset.label)")
            assert labels == sorted(scores, key=lambda label: -scores[label])
            np.testing.assert_allclose(
                numbers(page, "[data-label]", "score"), [scores[label] for label in labels], atol=SAME
            )
            for index, weights in enumerate(wanted["attention"].mean(1)):
                shown = numbers(page, f"#sentences > :nth-child({index + 1}) li", "weight")
                np.testing.assert_allclose(shown, weights[: len(shown)], atol=SAME)
                np.testing.assert_allclose(shown.sum(), 1, atol=1e-5)
        page.get_by_label("Attention of").select_option("head 2")
        shown = numbers(page, "#sentences > :nth-child(1) li", "weight")
        np.testing.assert_allclose(shown, wanted["attention"][0, 1, : len(shown)], atol=SAME)
        page.get_by_role("textbox", name="Hypothesis").fill("  ")
        expect(page.get_by_text("Type a hypothesis.")).to_be_visible()
        expect(page.locator("#answer")).to_be_hidden()
        page.get_by_role("button", name="Two dogs run").click()
        expect(page.locator("[data-label]").first).to_contain_text("entailment")
        expect(page.locator("#facts")).to_contain_text("works without a connection", timeout=PATIENCE)
    assert {address.split("/")[2] for address in asked if not address.startswith("data:")} == {url.split("/")[2]}

    page.reload()  # there is no server any more
    page.locator("#answer").wait_for()
    type_texts(page, PAIRS[0])
    expect(page.locator("[data-label]").first).to_contain_text("contradiction")
    for width, scheme in product((1280, 375), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 40
        assert min(contrasts) >= 4.5
    type_texts(page, PAIRS[3])
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert [fault for fault in faults if "ERR_CONNECTION_REFUSED" not in fault] == []
    page.context.close()


@needs_chromium
def test_an_encoders_page_shows_how_near_two_texts_are(widget: Path, browser: Browser, tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "mine", pieces=["##man", "##ing", "##s"])
    export_onnx(folder, folder / "onnx", quantize=True)
    write_static_space(folder, tmp_path / "page", bundle=widget / "dist")
    model = OnnxModel.from_pretrained(folder, quantized=True, threads=1)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    with served(tmp_path / "page") as url:
        for texts in (("A man is sleeping.", "The dog is running in the rain"), ("rain [SEP] man", "שלום")):
            page.goto("about:blank")
            page.goto(f"{url}#text0={texts[0]}&text1={texts[1]}")
            page.locator("#answer").wait_for()
            one, other = model.encode(list(texts), normalize=True)
            np.testing.assert_allclose(numbers(page, "output", "cosine"), [one @ other], atol=SAME)
        expect(page.locator("#sentences li.unknown")).to_have_count(1)
        expect(page.locator("#said")).to_have_text(f"Similarity {one @ other:.2f}")

        # Words of several tokens are those of Python's explanation, and so are their weights.
        config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        texts = ("The rainmans, a dogman in שלום", "not Cafe\u0301 ❤\ufe0f [PAD]")
        type_texts(page, texts)
        for number, text in enumerate(texts, start=1):
            (words,) = find_words(config, tokenizer, text)[1]
            one = page.locator(f"#sentences > :nth-child({number})")
            assert one.locator("bdi").all_text_contents() == [text[start:end] for start, end in words.offsets]
            assert one.locator("li.unknown").count() == words.known.count(False)
            expected = sum_pieces(run(model, text)["attention"][0], words.tokens).mean(0)
            np.testing.assert_allclose(
                numbers(page, f"#sentences > :nth-child({number}) li", "weight"), expected, atol=SAME
            )

        type_texts(page, ("\u200b", "man"))  # which is nothing to see
        expect(page.locator("#state")).to_have_text("Type a first text.")
        expect(page.locator("#answer")).to_be_hidden()
    page.context.close()


def test_the_lock_file_names_no_host_and_what_is_installed_has_one_version() -> None:
    lock = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
    package = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
    versions = (package["dependencies"] | package["devDependencies"]).values()
    assert all(version[0].isdigit() for version in versions)
