import pytest
from lib.shipped import draw_pairs, draw_sentences


def test_sentences_are_distinct_and_the_same_each_time() -> None:
    sentences = draw_sentences(500)
    assert len(set(sentences)) == 500
    assert draw_sentences(100) == sentences[:100]
    assert sentences != sorted(sentences)


def test_more_than_there_is_is_refused() -> None:
    with pytest.raises(ValueError, match="sample has 101,436 sentences, and 200,000 are needed"):
        draw_sentences(200_000)
    with pytest.raises(ValueError, match="sample has 57,840 pairs, and 60,000 are needed"):
        draw_pairs(60_000)
