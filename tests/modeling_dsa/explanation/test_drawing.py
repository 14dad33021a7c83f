import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot
import numpy as np
import pytest

from modeling_dsa.explanation.drawing import DrawnSentence, draw_attention
from modeling_dsa.files.pictures import contrast

TEXT = r"A sign says: $5_a costs \alpha $x^2$"


def row(text: str = TEXT, heads: int = 2, label: str = "premise") -> DrawnSentence:
    offsets = [match.span() for match in re.finditer(r"\S+", text)]
    weights = np.random.default_rng(0).dirichlet(np.ones(len(offsets)), size=heads)  # (heads, tokens)
    return DrawnSentence(text, offsets, weights, label, [f"head {head + 1}" for head in range(heads)])


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
        "draw_attention([DrawnSentence('a b', [(0, 1), (2, 3)], np.array([[0.25, 0.75]]), 'x', [''])], sys.argv[1])"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.svg")], env=environment, check=True, timeout=120)
    draw_attention([DrawnSentence("a b", [(0, 1), (2, 3)], np.array([[0.25, 0.75]]), "x", [""])], tmp_path / "b.svg")
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


def test_brackets_turn_round_where_the_text_runs_from_right_to_left(tmp_path: Path) -> None:
    found = texts(draw_attention([row("رجل ( a"), row("a (")], tmp_path / "a.svg"))
    assert [text for text in found if "(" in text] == ["\u200f(\u200f"] * 2 + ["("] * 2


def test_characters_that_no_font_has_are_boxes_in_a_picture_and_themselves_where_they_stay_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    linear_b = "\U00010000"
    assert linear_b in texts(draw_attention([row(f"a {linear_b}")], tmp_path / "a.svg"))
    assert not caplog.messages
    pictures = []
    for number, text in enumerate((f"a {linear_b}", "a □")):
        pictures.append(matplotlib.image.imread(draw_attention([row(text)], tmp_path / f"{number}.png")))
    assert "No font here has 1 of the characters, such as '𐀀'" in caplog.text
    np.testing.assert_array_equal(pictures[0], pictures[1])


def test_small_weights_have_a_digit_more(tmp_path: Path) -> None:
    many = row(" ".join("abcdefghijklmnopqrstuvwxyz"), heads=1)
    even = DrawnSentence(many.text, many.offsets, np.full((1, 26), 1 / 26), "x", [""])
    assert texts(draw_attention([even], tmp_path / "a.svg")).count("0.038") >= 26


def test_token_wider_than_the_picture_is_cut(tmp_path: Path) -> None:
    found = texts(draw_attention([row("a " + "w" * 500)], tmp_path / "a.svg"))
    cut = [text for text in found if text.startswith("www")]
    assert len(cut) == 2
    assert all(re.fullmatch("w{20,150}…", text) for text in cut)


def test_shade_grows_with_the_weight_and_the_text_flips(tmp_path: Path) -> None:
    weights = np.linspace(0, 1, 21)[None]
    words = [2 * letter for letter in "abcdefghijklmnopqrstu"]
    offsets = [(3 * number, 3 * number + 2) for number in range(len(words))]
    path = draw_attention([DrawnSentence(" ".join(words), offsets, weights, "x", [""])], tmp_path / "a.svg")
    colours = {
        element.text: match[1] if (match := re.search(r"fill: (#\w+)", element.attrib["style"])) else "#000000"
        for element in ElementTree.parse(path).iter()
        if element.tag.endswith("}text")
    }
    boxes = re.findall(r'style="fill: (#\w{6}); stroke: #c4ccd6', path.read_text())[:21]
    assert colours["aa"] == colours["ee"] == "#000000"
    assert colours["uu"] == "#ffffff"
    assert min(contrast(colours[word], box) for word, box in zip(words, boxes, strict=True)) > 4.5
    greys = [sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in boxes]
    assert greys == sorted(greys, reverse=True)
    assert greys[0] > 700  # white
    assert greys[-1] < 200  # dark


def test_all_weights_zero_and_odd_characters_are_drawn(tmp_path: Path) -> None:
    path = draw_attention([DrawnSentence("a\x00<&\n", [(0, 5)], np.zeros((1, 1)), "x", [""])], tmp_path / "a.svg")
    assert "a <& " in texts(path)
    image = matplotlib.image.imread(draw_attention([row()], tmp_path / "a.png"))
    assert image.shape[1] == 1500


def test_mistakes_in_a_picture_are_clear_and_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.gif: pictures are written as \.png, \.svg, \.pdf, not \.gif"):
        draw_attention([row()], tmp_path / "a.gif")
    with pytest.raises(ValueError, match="sentences is empty"):
        draw_attention([], tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []
