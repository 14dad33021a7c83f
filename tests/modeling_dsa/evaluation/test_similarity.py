"""modeling_dsa.evaluation.similarity: files of scored pairs, and correlations as scipy has them."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import rankdata

from modeling_dsa.evaluation.similarity import (
    correlate,
    cosines,
    evaluate_similarity,
    read_named_similarity,
    read_similarity,
)

ROWS = [("a cat", "a kitten", 4.5), ("a cat", "a car", 1), ("two dogs", "three dogs", 3.8)]


def test_any_format_gives_the_same_pairs(tmp_path: Path) -> None:
    tab = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n" + "".join(
        f"{number}\t{first}\t{second}\t{score}\tNEUTRAL\n" for number, (first, second, score) in enumerate(ROWS)
    )
    lines = "".join(
        json.dumps({"sentence1": first, "sentence2": second, "score": score, "id": 0}) + "\n"
        for first, second, score in ROWS
    )
    comma = "left,right,how\n" + "".join(f'"{first}",{second},{score}\n' for first, second, score in ROWS)
    for name, content, columns, score in (
        ("SICK.txt", tab, None, None),
        ("stsb.jsonl", lines, None, None),
        ("own.csv", comma, ["left", "right"], "how"),
    ):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        pairs = read_similarity(path, columns, score)
        assert list(zip(pairs.first, pairs.second, pairs.scores.tolist(), strict=True)) == ROWS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1,sentence2,score\na,b,1\na,,2\n", "line 3, column 'sentence2': '' is no text: fix or remove"),
        ("sentence1,sentence2,score\na,b,1\na,b,high\n", "line 3, column 'score': the score 'high' is no number"),
        ("sentence1,sentence2,score\na,b,1\nc,d,1\n", "all scores are the same"),
        ("sentence1,sentence2,how\na,b,1\n", "none of the columns .*'how' is called 'score'; say .*--score_column"),
        ("sentence1,sentence2,score,rating\na,b,1,2\n", "'score', 'rating' may each hold the scores"),
        ("text,score\na,1\nb,2\n", "similarity needs two texts in a row, but the texts are in text alone"),
    ],
)
def test_mistake_is_told_where_it_is(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read_similarity(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "left,right,how\na,b,1\nc,d,2\n", "columns 'left', 'right', 'how' it is not clear .*first line"),
        ("a.csv", "sentence1,sentence2,score,rating\na,b,1,2\nc,d,2,3\n", "and leave the others out"),
        ("a.csv", "text,score\na,1\nb,2\n", "call these sentence1, sentence2 and score in its first line"),
        ("a.jsonl", '{"text": "a", "how": 1}\n', "call these sentence1, sentence2 and score, and"),
        ("a.csv", "sentence1,sentence2,score\na,b,1\na,,2\n", "line 3, column 'sentence2': '' is no text: fix or"),
        ("a.csv", "sentence1,sentence2,score\na,b\n", "line 2"),
        ("a.csv", "sentence1,sentence2,score\n", "has no rows"),
    ],
)
def test_mistake_names_no_option_where_there_is_none(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read_named_similarity(path)
    assert str(path) in str(caught.value)
    assert "--" not in str(caught.value)


def test_columns_that_are_called_as_the_message_says_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sentence1,sentence2,score\n" + "".join(f"{a},{b},{score}\n" for a, b, score in ROWS), "utf-8")
    pairs = read_named_similarity(path)
    assert list(zip(pairs.first, pairs.second, pairs.scores.tolist(), strict=True)) == ROWS


def test_correlations_are_those_of_other_code(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    drawn = np.random.default_rng(0)
    scores = drawn.integers(0, 6, 40)  # with ties
    path.write_text(
        "text1,text2,score\n" + "".join(f"a{number},b{number},{score}\n" for number, score in enumerate(scores)),
        encoding="utf-8",
    )
    vector_of = {f"{side}{number}": drawn.normal(size=7).astype(np.float32) for side in "ab" for number in range(40)}
    found = evaluate_similarity(lambda texts: np.stack([vector_of[text] for text in texts]), read_similarity(path))
    expected = [1 - cosine(vector_of[f"a{number}"], vector_of[f"b{number}"]) for number in range(40)]
    assert found.pearson == pytest.approx(np.corrcoef(expected, scores)[0, 1], abs=1e-6)
    assert found.spearman == pytest.approx(np.corrcoef(rankdata(expected), rankdata(scores))[0, 1], abs=1e-6)
    assert correlate(np.zeros(40), scores).spearman == 0  # where scipy has nan, which is no JSON
    assert correlate(1 + 1e-16 * drawn.normal(size=40).round(), scores).spearman == 0
    vectors = drawn.normal(size=(40, 7)).astype(np.float32)
    assert set(cosines(vectors, 2 * vectors)) == {1}  # ties, as those of equal sentences are
