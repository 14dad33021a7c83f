"""modeling_dsa.explanation.head_profiles_report: what the table and the file say of each head."""

import json
from dataclasses import replace

from small_profiles import PROFILES

from modeling_dsa.explanation.head_profiles_report import as_json, as_markdown


def test_a_head_is_a_row_with_its_words_and_their_classes() -> None:
    *_, first, second = as_markdown(PROFILES).splitlines()
    assert first == "| 1 | 1.00 | 0.75 | man 2.0, a 0.5 | NN 1.2, DET 0.8 |"
    assert second == "| 2 | 1.00 | 0.50 | a 1.5, man 1.0 | DET 1.5, NN 0.9 |"
    assert as_markdown(replace(PROFILES, word_classes=[])).splitlines()[-1] == "| 2 | 1.00 | 0.50 | a 1.5, man 1.0 |"


def test_json_has_null_where_no_word_is() -> None:
    written = json.loads(json.dumps(as_json(PROFILES), allow_nan=False))
    assert written["positions"][0][-1] is None
    assert written["word_classes"][1][0] == {"class": "DET", "emphasis": 1.5, "count": 4}
