"""modeling_dsa.explanation.head_profiles_drawing: what is seen of each head."""

from dataclasses import replace

from small_profiles import PROFILES

from modeling_dsa.explanation.head_profiles_drawing import draw_head_profiles
from modeling_dsa.files.pictures import contrast


def test_word_classes_have_a_panel_where_there_are_any() -> None:
    assert len(draw_head_profiles(PROFILES, "title").axes) == 5  # one is the scale of colours
    assert len(draw_head_profiles(replace(PROFILES, word_classes=[]), "title").axes) == 4


def test_heads_that_hardly_differ_have_numbers_that_are_seen_and_not_all_0() -> None:
    pale = draw_head_profiles(PROFILES, "title").axes[2]
    assert [text.get_text() for text in pale.texts] == ["0", "0.0028", "0.0028", "0"]
    assert min(contrast(text.get_color(), "white") for text in pale.texts) > 4.5
