"""Faithfulness as JSON, as a table, as curves, and in a model's card."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import ModelCard
from matplotlib.figure import Figure

from modeling_dsa.command.messages import one_line
from modeling_dsa.files.card_sections import put_section
from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.pictures import look, save_with_fonts, wrapped
from modeling_dsa.files.shown_paths import last_part

FILE, PICTURE = "faithfulness.json", "faithfulness.png"
_HEADINGS = {
    "comprehensiveness": "Comprehensiveness ↑",
    "sufficiency": "Sufficiency ↓",
    "deletion_area": "Area under deletion ↓",
    "insertion_area": "Area under insertion ↑",
}


@dataclass(frozen=True)
class FaithfulnessReport:
    """What the deletion of words said of a model; what faithfulness.json holds.

    Attributes:
        model: Folder or Hub id.
        files: SHA-256 of weights, config and tokenizer, where the model is a folder.
        data: The name and SHA-256 of the file of the examples.
        command: That gave this.
        environment: Versions and hardware.
        examples: How many examples there were.
        verdict: Whether the attention explains the decision, in plain words.
        metrics: Of each method, each metric's mean over the examples with its interval: `mean`, `low` and `high`.
        attention_less_random: Each metric of attention less that of random words, on the same examples; likewise.
        curves: Of each method the mean probability under `deletion` and under `insertion`, from no word to all words.
    """

    model: str
    files: dict[str, str]
    data: dict[str, str]
    command: str
    environment: dict[str, Any]
    examples: int
    verdict: str
    metrics: dict[str, dict[str, dict[str, float]]]
    attention_less_random: dict[str, dict[str, float]]
    curves: dict[str, dict[str, list[float]]]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "FaithfulnessReport":
        """That of a faithfulness.json.

        Raises:
            ValueError: It is something else.
        """
        try:
            report = cls(**content)
            is_known = all(scores.keys() == _HEADINGS.keys() for scores in report.metrics.values())
        except (TypeError, AttributeError) as error:
            raise ValueError(f"it has other entries: {one_line(error)}") from error
        if not is_known:
            raise ValueError("it has other metrics")
        return report

    def as_json(self) -> dict[str, Any]:
        """The same, ready for a JSON file."""
        return asdict(self)

    def as_markdown(self) -> str:
        """A table with a row for each method."""
        rows = []
        for method, metrics in self.metrics.items():
            cells = [
                "{mean:.1f} [{low:.1f}, {high:.1f}]".format(**{name: 100 * value for name, value in one.items()})
                for one in metrics.values()
            ]
            rows.append([method, *cells])
        header = ["Words in the order of", *_HEADINGS.values()]
        return markdown_table(header, rows, ["---", *["---:"] * len(_HEADINGS)])

    def draw(self, path: Path) -> None:
        """Draw the curves, as a PNG."""
        figure = Figure(figsize=(9, 4), layout="constrained")
        for panel, name, heading in zip(
            figure.subplots(1, 2, sharey=True),
            ("deletion", "insertion"),
            ("Deletion: lower is better", "Insertion: higher is better"),
            strict=True,
        ):
            for number, (method, curves) in enumerate(self.curves.items()):
                values = 100 * np.asarray(curves[name])
                panel.plot(np.linspace(0, 100, len(values)), values, markersize=5, label=method, **look(number))
            panel.set_title(heading, fontsize=11)
            panel.set_xlabel(f"words {'deleted' if name == 'deletion' else 'put in'}, %")
            panel.grid(alpha=0.3)
        panel.legend(fontsize=9)
        figure.axes[0].set_ylabel("probability of the predicted class, %")
        title = f"{last_part(self.model)}, {self.examples:,} examples of {self.data['name']}"
        figure.suptitle(wrapped(title, figure.get_figwidth(), 10), fontsize=10)
        save_with_fonts(figure, path)

    def update_card(self, card: ModelCard) -> None:
        """Put the metrics into a model's card in place of those before."""
        put_section(
            card,
            "dsa explain, faithfulness",
            f"## Does its attention explain its decisions?\n\n{self.verdict}\n\n{self.as_markdown()}\n\n"
            f"Percentage points, with 95 % bootstrap intervals, of {self.examples:,} examples of "
            f"`{self.data['name']}`. Comprehensiveness and sufficiency as in ERASER, the mean over the first 1, 5, 10, "
            "20 and 50 % of the words of each text; the areas are those under the curves. Gradients are of what words "
            "bring to the texts' vectors alone.\n\n"
            f"![Probability of the class while words are deleted and put in]({PICTURE})",
        )
