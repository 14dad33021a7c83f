"""Profiles of heads as JSON and as a table."""

from typing import Any

import numpy as np

from modeling_dsa.files.markdown import markdown_table

from .head_profiles import HeadProfiles

_SHOWN_WORDS = 8


def as_json(profiles: HeadProfiles) -> dict[str, Any]:
    """Ready for a JSON file."""
    return {
        "sentences": profiles.sentences,
        "entropy": profiles.entropy.tolist(),
        "positions": [[None if np.isnan(value) else value for value in row] for row in profiles.positions.tolist()],
        "divergence": profiles.divergence.tolist(),
        "words": _ranked(profiles.words, "word"),
        "word_classes": _ranked(profiles.word_classes, "class"),
    }


def as_markdown(profiles: HeadProfiles) -> str:
    """A table with a row for each head."""
    iterations = [f"Entropy, iteration {number + 1}" for number in range(len(profiles.entropy))]
    columns = {"Words that it emphasises most": profiles.words}
    if profiles.word_classes:
        columns["Word classes that it emphasises most"] = profiles.word_classes
    rows = []
    for head, entropies in enumerate(profiles.entropy.T):
        most = [", ".join(f"{name} {mean:.1f}" for name, mean, _ in of[head][:_SHOWN_WORDS]) for of in columns.values()]
        rows.append([str(head + 1), *(f"{value:.2f}" for value in entropies), *most])
    rules = ["---", *["---:"] * len(iterations), *["---"] * len(columns)]
    return markdown_table(["Head", *iterations, *columns], rows, rules)


def _ranked(ranked: list[list[tuple[str, float, int]]], kind: str) -> list[list[dict[str, Any]]]:
    return [[{kind: name, "emphasis": mean, "count": count} for name, mean, count in of] for of in ranked]
