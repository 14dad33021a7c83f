"""modeling_dsa.files.shown_paths: names for titles."""

import pytest

from modeling_dsa.files.shown_paths import last_part


@pytest.mark.parametrize("model", ["dsa-base-en", "model_cards/dsa-base-en/", "/a/dsa-base-en", "someone/dsa-base-en"])
def test_a_title_has_the_last_part_alone(model: str) -> None:
    assert last_part(model) == "dsa-base-en"
