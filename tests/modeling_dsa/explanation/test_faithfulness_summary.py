"""modeling_dsa.explanation.faithfulness_summary: the plain words say what the figures say."""

import numpy as np
import pytest

from modeling_dsa.explanation.faithfulness import RANDOM, STEPS, MethodScores
from modeling_dsa.explanation.faithfulness_summary import ATTENTION, INTEGRATED, summarize


def scores(without: float, alone: float) -> MethodScores:
    """Forty examples, in which the probability falls so far on average without the words and with them alone."""
    spread = np.linspace(-0.01, 0.01, 40)
    curves = np.zeros((40, STEPS + 1))
    return MethodScores(without + spread, alone + spread, curves, curves)


@pytest.mark.parametrize(
    ("attention", "answer"),
    [
        ((0.3, 0.1), "The attention explains the decision better than chance."),
        ((0.3, 0.3), "The attention explains the decision only in part."),
        ((0.1, 0.3), "The attention does not explain the decision."),
    ],
)
@pytest.mark.parametrize(("rival", "distance"), [(0.5, "further"), (0.05, "less far")])
def test_the_verdict(attention: tuple[float, float], answer: str, rival: float, distance: str) -> None:
    verdict = summarize({ATTENTION: scores(*attention), RANDOM: scores(0.2, 0.2), INTEGRATED: scores(rival, 0.4)})
    words = verdict["verdict"]
    assert words.startswith(answer)
    assert f"falls by {100 * attention[0]:.1f} points on average, and by 20.0 without words chosen at random" in words
    assert words.endswith(f"choose it falls {distance}, by {100 * rival:.1f}, and with those alone by 40.0.")


def test_a_verdict_calls_equal_distances_equal() -> None:
    verdict = summarize({ATTENTION: scores(0.3, 0.1), RANDOM: scores(0.2, 0.2), INTEGRATED: scores(0.3, 0.1)})
    assert "choose it falls about as far, by 30.0" in verdict["verdict"]
