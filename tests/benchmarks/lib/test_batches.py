from lib.batches import sort_pairs
from lib.shipped import Pairs

PAIRS: Pairs = {"premise": ["a b c", "a", "a b"], "hypothesis": ["a", "b", "c d e f"], "label": [0, 1, 2]}


def test_pairs_are_sorted_as_whole_pairs() -> None:
    assert sort_pairs(PAIRS) == {
        "premise": ["a", "a b c", "a b"],
        "hypothesis": ["b", "a", "c d e f"],
        "label": [1, 0, 2],
    }
