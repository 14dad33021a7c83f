"""The scores of single examples as means with intervals, and in plain words."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .faithfulness import RANDOM, Estimate, MethodScores, estimate

ATTENTION, INTEGRATED = "attention", "integrated gradients"


def summarize(scores: Mapping[str, MethodScores]) -> dict[str, Any]:
    """What a `FaithfulnessReport` says of the scores of each method: all its attributes that are numbers or words.

    Args:
        scores: What `faithfulness` gives.
    """
    estimates = {
        method: {name: estimate(values) for name, values in of_method.metrics().items()}
        for method, of_method in scores.items()
    }
    return {
        "examples": len(scores[ATTENTION].comprehensiveness),
        "verdict": _verdict(scores, estimates),
        "metrics": {
            method: {name: asdict(value) for name, value in metrics.items()} for method, metrics in estimates.items()
        },
        "attention_less_random": {
            name: asdict(_difference(scores, name, RANDOM)) for name in scores[ATTENTION].metrics()
        },
        "curves": {
            method: {"deletion": of_method.deletion.mean(0).tolist(), "insertion": of_method.insertion.mean(0).tolist()}
            for method, of_method in scores.items()
        },
    }


def _difference(scores: Mapping[str, MethodScores], metric: str, other: str) -> Estimate:
    """A metric of attention less that of another method, on the same examples."""
    return estimate(scores[ATTENTION].metrics()[metric] - scores[other].metrics()[metric])


def _verdict(scores: Mapping[str, MethodScores], estimates: Mapping[str, Mapping[str, Estimate]]) -> str:
    removed, kept = _difference(scores, "comprehensiveness", RANDOM), _difference(scores, "sufficiency", RANDOM)
    matter, suffice = removed.low > 0, kept.high < 0
    if matter and suffice:
        answer = "The attention explains the decision better than chance"
    elif matter or suffice:
        answer = "The attention explains the decision only in part"
    else:
        answer = "The attention does not explain the decision"

    def points(metric: str) -> dict[str, str]:
        return {name: f"{100 * estimates[name][metric].mean:.1f}" for name in (ATTENTION, RANDOM, INTEGRATED)}

    without, alone = points("comprehensiveness"), points("sufficiency")
    rival = _difference(scores, "comprehensiveness", INTEGRATED)
    has_rise = any(points.startswith("-") for points in (*without.values(), *alone.values()))
    distance = "further" if rival.high < 0 else "less far" if rival.low > 0 else "about as far"
    return (
        f"{answer}. Without the words that it looks at most, the probability of the predicted class falls by "
        f"{without[ATTENTION]} points on average, and by {without[RANDOM]} without words chosen at random; with "
        f"these words alone it falls by {alone[ATTENTION]}, and by {alone[RANDOM]} with random ones. Without the words "
        f"that integrated gradients choose it falls {distance}, by {without[INTEGRATED]}, and with those alone by "
        f"{alone[INTEGRATED]}.{' A number below 0 is a rise.' if has_rise else ''}"
    )
