"""An evaluation as JSON, as a Markdown table and as a picture."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

from modeling_dsa.command.messages import one_line
from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.pictures import look, save_with_fonts, wrapped
from modeling_dsa.files.shown_paths import last_part

FILE, TABLE, PICTURE = "evaluation.json", "evaluation.md", "evaluation.png"
METRICS = {
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "accuracy": "Accuracy",
    "macro_f1": "Macro F1",
}
_WIDTH = 8.0  # inches
_KINDS = {"similarity": "similarity", "probe": "linear probe", "classification": "its own classes"}


@dataclass(frozen=True)
class Result:
    """What one file, or the files of one probe, said of a model.

    Attributes:
        kind: What was evaluated.
        files: The name and SHA-256 of each file.
        examples: How many pairs or examples were scored.
        metrics: Those of `METRICS` that there are, as shares of 1.
        details: What else is known, ready for JSON.
    """

    kind: Literal["similarity", "probe", "classification"]
    files: list[dict[str, str]]
    examples: int
    metrics: dict[str, float]
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The names of the files."""
        return ", ".join(file["name"] for file in self.files)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Result":
        """One of those of an evaluation.json.

        Raises:
            ValueError: It is something else.
        """
        try:
            result = cls(**content)
            is_known = result.kind in _KINDS and result.metrics.keys() <= METRICS.keys()
            names_files = bool(result.files) and all(file.keys() >= {"name", "sha256"} for file in result.files)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"a result has other entries: {one_line(error)}") from error
        if not is_known or not names_files:
            raise ValueError("a result is of no known kind, has other metrics, or names no file")
        return result


@dataclass(frozen=True)
class Evaluation:
    """All results of a model.

    Attributes:
        model: Folder or Hub id, without what tells of a machine.
        files: SHA-256 of weights, config and tokenizer, where the model is a folder.
        library: What computed the vectors.
        command: That gave this, likewise.
        environment: Versions and hardware.
        results: Of similarity files, then of probes, then of files that are classified.
    """

    model: str
    files: dict[str, str]
    library: str
    command: str
    environment: dict[str, Any]
    results: list[Result]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Evaluation":
        """That of an evaluation.json.

        Raises:
            ValueError: It is something else.
        """
        try:
            return cls(**{**content, "results": [Result.from_json(result) for result in content["results"]]})
        except (TypeError, KeyError) as error:
            raise ValueError(f"an evaluation has other entries: {one_line(error)}") from error

    def as_json(self) -> dict[str, Any]:
        """Ready for a JSON file."""
        return asdict(self)

    def as_markdown(self) -> str:
        """A table with a row for each result."""
        header = ["Files", "What", "Examples", *METRICS.values()]
        rows = []
        for result in self.results:
            metrics = [f"{100 * result.metrics[key]:.1f}" if key in result.metrics else "" for key in METRICS]
            rows.append([result.name, _KINDS[result.kind], f"{result.examples:,}", *metrics])
        return markdown_table(header, rows, ["---", "---", *["---:"] * (len(header) - 2)])

    def draw(self, path: Path) -> None:
        """Draw a bar for each metric, as a PNG."""
        figure = Figure(layout="constrained")
        panel = figure.add_subplot()
        bars: dict[str, list[tuple[float, float]]] = {key: [] for key in METRICS}  # where, and how long
        y = 0.0
        for result in self.results:
            name = wrapped(f"{result.name}, {_KINDS[result.kind]}", _WIDTH - 2.2, 10)
            y += 0.6 * (name.count("\n") + 1)  # the name stands above its bars
            panel.text(0.01, y - 0.5, name, transform=panel.get_yaxis_transform(), va="bottom")
            for key, value in result.metrics.items():
                bars[key].append((y, 100 * value))
                y += 1
        for number, (key, of_key) in enumerate(bars.items()):
            if of_key:
                rows, values = zip(*of_key, strict=True)
                drawn = panel.barh(rows, values, color=look(number)["color"], label=METRICS[key])
                panel.bar_label(drawn, fmt="%.1f", padding=3)
        ticks = [(row, METRICS[key]) for key, of_key in bars.items() for row, _ in of_key]
        panel.set_yticks(*zip(*ticks, strict=True))
        panel.set_ylim(y - 0.4, -0.4)
        lowest = min(value for of_key in bars.values() for _, value in of_key)
        panel.set_xlim(lowest - 12 if lowest < 0 else 0, 108)  # room for the numbers
        panel.set_xlabel("percent; correlations times 100")
        panel.set_title(wrapped(last_part(self.model), _WIDTH - 2.2, 10), fontsize=10)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
        figure.set_size_inches(_WIDTH, 1.8 + 0.4 * y)
        save_with_fonts(figure, path)
