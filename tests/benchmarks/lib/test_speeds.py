from collections.abc import Sequence

import numpy as np
from lib.options import make_parser
from lib.peers import Encode
from lib.speeds import read_lists, sentences_per_second


def test_lists_are_encoded_whole_or_one_by_one_after_a_warm_up() -> None:
    parser = make_parser("Encode.", 7, "timed lists", "2 rounds")
    arguments, lists = read_lists(parser, ["--rounds", "2", "--bulk", "3", "--single", "2"])
    calls: list[list[str]] = []

    def encode(sentences: Sequence[str]) -> np.ndarray:
        calls.append(list(sentences))
        return np.zeros((len(sentences), 1))

    encoders: dict[str, Encode] = {"only": encode}
    assert arguments.rounds == 2
    for way, expected in (("bulk", lists["bulk"]), ("single", [[one] for part in lists["single"] for one in part])):
        calls.clear()
        assert sentences_per_second(encoders, way, lists[way])["only"] > 0
        assert calls == expected
    assert [[len(part) for part in lists[way]] for way in ("bulk", "single")] == [[3] * 3, [2] * 3]
