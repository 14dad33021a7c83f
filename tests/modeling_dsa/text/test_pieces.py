"""modeling_dsa.text.pieces: pieces learnt from counts."""

from modeling_dsa.text.pieces import learn_pieces

COUNTS = {"walking": 90, "walked": 8, "talking": 7, "talked": 7, "asking": 3, "asked": 2, "ing": 1, "日": 4}


def test_frequent_parts_of_words_are_pieces_and_words_are_not_among_them() -> None:
    pieces = learn_pieces(COUNTS, 6, words=["ing", "walk"])
    assert len(pieces) == 6
    assert {"##alk", "##ing", "##ed"} <= set(pieces)
    assert not {"ing", "walk"} & set(pieces)
    assert all(len(piece.removeprefix("##")) > 1 for piece in pieces)


def test_words_give_no_more_pieces_than_they_have() -> None:
    assert learn_pieces({"ab": 2, "c": 1}, 50) == ["ab"]


def test_pieces_do_not_depend_on_the_run_or_the_order_of_the_words() -> None:
    first = learn_pieces(COUNTS, 12)
    assert all(learn_pieces(dict(reversed(COUNTS.items())), 12) == first for _ in range(4))
