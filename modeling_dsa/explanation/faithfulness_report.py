"""Faithfulness as JSON, as a table, as curves, in plain words, and in a model's card."""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import ModelCard
from matplotlib.figure import Figure

from modeling_dsa.files.card_sections import put_section

from .faithfulness import RANDOM, STEPS, Estimate, MethodScores, estimate

FILE, PICTURE = "faithfulness.json", "faithfulness.png"
ATTENTION, INTEGRATED = "attention", "integrated gradients"
_HEADINGS = {
    "comprehensiveness": "Comprehensiveness ↑",
    "sufficiency": "Sufficiency ↓",
    "deletion_area": "Area under deletion ↓",
    "insertion_area": "Area under insertion ↑",
}
# Of Okabe and Ito, which stay apart for every kind of colour vision; the marks tell them apart without colour.
_LOOKS = {
    "attention": ("#0072B2", "o"),
    "gradient x input": ("#E69F00", "s"),
    "integrated gradients": ("#009E73", "^"),
    RANDOM: ("#666666", "x"),
}


@dataclass(frozen=True)
class FaithfulnessReport:
    """What the deletion of words said of a model.

    Attributes:
        model: Folder or Hub id.
        weights: SHA-256 of each file of weights, where the model is a folder.
        data: The name and SHA-256 of the file of the examples.
        command: That gave this.
        environment: Versions and hardware.
        scores: Of each method.
    """

    model: str
    weights: dict[str, str]
    data: dict[str, str]
    command: str
    environment: dict[str, Any]
    scores: dict[str, MethodScores]

    @property
    def examples(self) -> int:
        """How many examples there were."""
        return len(self.scores[ATTENTION].comprehensiveness)

    @cached_property
    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """The figures of each method."""
        return {
            method: {name: estimate(values) for name, values in scores.figures().items()}
            for method, scores in self.scores.items()
        }

    def difference(self, figure: str, other: str) -> Estimate:
        """A figure of attention less that of another method, on the same examples."""
        return estimate(self.scores[ATTENTION].figures()[figure] - self.scores[other].figures()[figure])

    @cached_property
    def verdict(self) -> str:
        """Whether the attention explains the decision, in plain words."""
        removed, kept = self.difference("comprehensiveness", RANDOM), self.difference("sufficiency", RANDOM)
        matter, suffice = removed.low > 0, kept.high < 0
        if matter and suffice:
            answer = "The attention explains the decision better than chance"
        elif matter or suffice:
            answer = "The attention explains the decision only in part"
        else:
            answer = "The attention does not explain the decision"
        without = {name: self._points(name, "comprehensiveness") for name in (ATTENTION, RANDOM, INTEGRATED)}
        alone = {name: self._points(name, "sufficiency") for name in (ATTENTION, RANDOM, INTEGRATED)}
        rival = self.difference("comprehensiveness", INTEGRATED)
        relation = "fewer" if rival.high < 0 else "more" if rival.low > 0 else "as many"
        ending = f"{relation} points than" if relation != "as many" else "about as many points as"
        return (
            f"{answer}. Without the words that it looks at most, the probability of the predicted class falls by "
            f"{without[ATTENTION]} points on average, and by {without[RANDOM]} without words chosen at random; with "
            f"these words alone it falls by {alone[ATTENTION]}, and by {alone[RANDOM]} with random ones. That is "
            f"{ending} the words that integrated gradients choose: {without[INTEGRATED]} without them, "
            f"{alone[INTEGRATED]} with them alone."
        )

    def _points(self, method: str, figure: str) -> str:
        return f"{100 * self.estimates[method][figure].mean:.1f}"

    def as_json(self) -> dict[str, Any]:
        """Ready for a JSON file."""
        curves = {
            method: {
                "deletion": scores.deletion.mean(0).tolist(),
                "insertion": scores.insertion.mean(0).tolist(),
            }
            for method, scores in self.scores.items()
        }
        names = ("model", "weights", "data", "command", "environment")
        return {name: getattr(self, name) for name in names} | {
            "examples": self.examples,
            "verdict": self.verdict,
            "figures": {
                method: {name: asdict(value) for name, value in figures.items()}
                for method, figures in self.estimates.items()
            },
            "attention_less_random": {name: asdict(self.difference(name, RANDOM)) for name in _HEADINGS},
            "curves": curves,
        }

    def as_markdown(self) -> str:
        """A table with a row for each method."""
        lines = [["Words in the order of", *_HEADINGS.values()], ["---", *["---:"] * len(_HEADINGS)]]
        for method, figures in self.estimates.items():
            cells = [f"{100 * one.mean:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]" for one in figures.values()]
            lines.append([method, *cells])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def draw(self, path: Path) -> None:
        """Draw the curves, as a PNG."""
        figure = Figure(figsize=(9, 4), layout="constrained")
        shares = np.linspace(0, 100, STEPS + 1)
        for panel, name, heading in zip(
            figure.subplots(1, 2, sharey=True),
            ("deletion", "insertion"),
            ("Deletion: lower is better", "Insertion: higher is better"),
            strict=True,
        ):
            for method, scores in self.scores.items():
                colour, mark = _LOOKS[method]
                values = 100 * getattr(scores, name).mean(0)
                panel.plot(shares, values, color=colour, marker=mark, markersize=5, label=method)
            panel.set_title(heading, fontsize=11)
            panel.set_xlabel(f"words {'deleted' if name == 'deletion' else 'put in'}, %")
            panel.grid(alpha=0.3)
        panel.legend(fontsize=9)
        figure.axes[0].set_ylabel("probability of the predicted class, %")
        figure.suptitle(f"{self.model}, {self.examples:,} examples of {self.data['name']}", fontsize=10)
        figure.savefig(path, format="png", dpi=120, metadata={"Software": None})

    def update_card(self, card: ModelCard) -> None:
        """Put the figures into a model's card in place of those before."""
        put_section(
            card,
            "dsa explain, faithfulness",
            f"## Does its attention explain its decisions?\n\n{self.verdict}\n\n{self.as_markdown()}\n\n"
            f"Percentage points, with 95 % bootstrap intervals, of {self.examples:,} examples of "
            f"`{self.data['name']}`. Comprehensiveness and sufficiency as in ERASER, the mean over the first 1, 5, 10, "
            "20 and 50 % of the words of each text; the areas are those under the curves.\n\n"
            f"![Probability of the class while words are deleted and put in]({PICTURE})",
        )
