"""Zero-shot classification by similarity: the pipeline, against transformers' vectors and torch's softmax."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from small_models import randomize, small_config
from small_runs import small_tokenizer
from transformers import pipeline

from modeling_dsa import DSAModel, ZeroShotSimilarityPipeline

TEXTS = ["A man is playing a guitar .", "Two dogs run across a field of grass ."]
LABELS = ["a man", "dogs", "music"]
TEMPLATE = "A text of {} ."


@pytest.fixture(scope="module")
def choose() -> Any:
    model = randomize(DSAModel(small_config(vocab_size=len(small_tokenizer()))))
    return pipeline("zero-shot-similarity", model=model.eval(), tokenizer=small_tokenizer())  # type: ignore[call-overload]


def expected(choose: Any, text: str, template: str, temperature: float) -> dict[str, float]:
    def vectors(*texts: str) -> torch.Tensor:
        with torch.no_grad():
            found: torch.Tensor = choose.model(
                **small_tokenizer()(list(texts), padding=True, return_tensors="pt")
            ).pooler_output
        return found

    cosines = F.cosine_similarity(vectors(text), vectors(*(template.format(label) for label in LABELS)))
    return dict(zip(LABELS, (cosines / temperature).softmax(0).tolist(), strict=True))


@pytest.mark.parametrize(("options", "temperature"), [({}, 0.05), ({"template": TEMPLATE, "temperature": 0.5}, 0.5)])
def test_scores_are_the_softmax_of_cosines(choose: Any, options: dict[str, Any], temperature: float) -> None:
    assert type(choose) is ZeroShotSimilarityPipeline
    several = choose(TEXTS, candidate_labels=LABELS, **options)
    assert [found["sequence"] for found in several] == TEXTS
    for text, found in zip(TEXTS, several, strict=True):
        wanted = expected(choose, text, options.get("template", "{}"), temperature)
        assert dict(zip(found["labels"], found["scores"], strict=True)) == pytest.approx(wanted, abs=1e-5)
        assert found["scores"] == sorted(found["scores"], reverse=True)
    alone = choose(TEXTS[0], candidate_labels="a man, dogs, music", **options)
    assert alone["labels"] == several[0]["labels"]
    streamed = list(choose((text for text in TEXTS), candidate_labels=LABELS, **options))
    assert [found["labels"] for found in streamed] == [found["labels"] for found in several]


def test_workers_take_no_text_of_a_stream_away(choose: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{TEXTS[0]} {number}\n" for number in range(500)))  # more than is read at once
    with path.open() as file:
        found = list(choose((line.strip() for line in file), candidate_labels=LABELS, num_workers=1))
    assert [answer["sequence"] for answer in found] == path.read_text().splitlines()


def test_texts_of_which_the_model_knows_no_word_are_told(choose: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert len(choose(["", TEXTS[0], "运动"], candidate_labels=LABELS)) == 3
    assert caplog.messages == ["The model knows no word of 2 of 3 texts, such as '': its answers to them say nothing."]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidate_labels": ["one"]}, "The labels must be two or more different texts, not 'one'"),
        ({"candidate_labels": ["one", "one"]}, "two or more different texts"),
        ({"candidate_labels": ["one", " "]}, "two or more different texts"),
        ({"candidate_labels": ["one", None]}, "two or more different texts, not 'one', None"),
        (
            {"candidate_labels": ["运动", "dogs"]},
            "The model knows no word of the label '运动': give other words",
        ),
        ({"template": "no place"}, "has no {}, where a label is to stand"),
        ({"temperature": 0}, "temperature must be above 0, got 0"),
        ({"inputs": {"text": TEXTS[0]}}, "Sentences are a string or a list of them, got a dict"),
    ],
)
def test_mistakes_are_told(choose: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose(**{"inputs": TEXTS, "candidate_labels": LABELS} | options)
