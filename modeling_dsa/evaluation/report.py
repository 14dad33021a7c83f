"""An evaluation as JSON, as a Markdown table and as a picture."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

FILE, PICTURE = "evaluation.json", "evaluation.png"
FIGURES = {
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "accuracy": "Accuracy",
    "macro_f1": "Macro F1",
}
_KINDS = {"similarity": "similarity", "probe": "linear probe", "classification": "its own classes"}


@dataclass(frozen=True)
class Result:
    """What one file, or the files of one probe, said of a model.

    Attributes:
        kind: What was evaluated.
        files: The name and SHA-256 of each file.
        examples: How many pairs or examples were scored.
        figures: Those of `FIGURES` that there are, as shares of 1.
        details: What else is known, ready for JSON.
    """

    kind: Literal["similarity", "probe", "classification"]
    files: list[dict[str, str]]
    examples: int
    figures: dict[str, float]
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The names of the files."""
        return ", ".join(file["name"] for file in self.files)


@dataclass(frozen=True)
class Evaluation:
    """All results of a model.

    Attributes:
        model: Folder or Hub id, without what tells of a machine.
        weights: SHA-256 of each file of weights, where the model is a folder.
        library: What computed the vectors.
        command: That gave this, likewise.
        environment: Versions and hardware.
        results: In the order of the command.
    """

    model: str
    weights: dict[str, str]
    library: str
    command: str
    environment: dict[str, Any]
    results: list[Result]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Evaluation":
        """That of an evaluation.json.

        Raises:
            TypeError: It holds other entries.
        """
        return cls(**{**content, "results": [Result(**result) for result in content["results"]]})

    def as_json(self) -> dict[str, Any]:
        """Ready for a JSON file."""
        return asdict(self)

    def as_markdown(self) -> str:
        """A table with a row for each result."""
        header = ["Files", "What", "Examples", *FIGURES.values()]
        lines = [header, ["---", "---", *["---:"] * (len(header) - 2)]]
        for result in self.results:
            figures = [f"{100 * result.figures[key]:.1f}" if key in result.figures else "" for key in FIGURES]
            lines.append([result.name.replace("|", "\\|"), _KINDS[result.kind], f"{result.examples:,}", *figures])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def draw(self, path: Path) -> None:
        """Draw a bar for each figure, as a PNG."""
        bars = [
            (f"{result.name}, {_KINDS[result.kind]}", FIGURES[key], 100 * value)
            for result in self.results
            for key, value in result.figures.items()
        ]
        rows = range(len(bars))
        figure = Figure(figsize=(8, 1.2 + 0.4 * len(bars)), layout="constrained")
        panel = figure.add_subplot()
        drawn = panel.barh(rows, [value for *_, value in bars], color=[_color(name) for _, name, _ in bars])
        panel.bar_label(drawn, fmt="%.1f", padding=3)
        panel.set_yticks(rows, [f"{what}: {name}" for what, name, _ in bars])
        panel.invert_yaxis()
        panel.set_xlim(min(0.0, *(value for *_, value in bars)), 108)
        panel.set_xlabel("percent; correlations times 100")
        panel.set_title(self.model, fontsize=10)
        figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def _color(figure: str) -> str:
    # Of Okabe and Ito, which stay apart for every kind of colour vision.
    return {"Spearman correlation": "#0072B2", "Accuracy": "#0072B2"}.get(figure, "#E69F00")
