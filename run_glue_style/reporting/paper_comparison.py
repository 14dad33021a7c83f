"""Our runs beside a paper's figures, as Markdown and as JSON."""

import json
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modeling_dsa.files.markdown import markdown_table
from run_glue_style.training.arguments import without_options
from run_glue_style.training.results import epochs_trained, read_metric

from .published import PublishedTable
from .units import mean_and_spread, standard_deviation

Run = Mapping[str, Any]

_SECONDS_OF_RUNS = "Seconds are those of the runs, without evaluations."
_MEASURED_SECONDS = "Seconds were measured side by side, at the size of the paper's training data."


@dataclass(frozen=True)
class Cell:
    """A figure of one system.

    Attributes:
        ours: A share for each run; empty where there is none.
        published: The paper's figure in percent, if it has one.
    """

    ours: Sequence[float]
    published: float | None


class Comparison:
    """A paper's table with our runs in it."""

    def __init__(
        self,
        table: PublishedTable,
        runs: Mapping[str, Sequence[Run]],
        quick: bool,
        epochs: Mapping[str, float] | None = None,
    ) -> None:
        """Put runs into a table.

        Args:
            table: The paper's table.
            runs: The all_results.json of each setting's runs.
            quick: Whether the runs are a trial that only shows that everything works.
            epochs: Measured seconds of an epoch by setting, in the place of the runs' own.

        Raises:
            ValueError: A setting is not the table's, or settings of one part have different data.
        """
        parts = table.parts_of_settings()
        first: dict[str, str] = {}
        for setting, of_setting in runs.items():
            if setting not in parts:
                raise ValueError(f"There are runs of '{setting}', which is no setting of the table '{table.name}'.")
            other = first.setdefault(parts[setting], setting)
            if of_setting[0]["data"] != runs[other][0]["data"]:
                raise ValueError(
                    f"The runs of {other} and {setting} have different data, so they make no table: "
                    "run both on the same files."
                )
        self.table, self.runs, self.quick, self.epochs = table, runs, quick, epochs

    def title(self) -> str:
        """What the table shows."""
        trial = " Only a quick trial: a few updates on few examples show that everything works." if self.quick else ""
        return f"{self.table.title}: our runs beside the published figures.{trial}"

    def cell(self, system: str, column: str) -> Cell:
        """The figure of a system in a column."""
        source = self.table.columns[column]
        split = source.metric.partition(".")[0]
        runs = [run for run in self.runs.get(f"{system}-{source.part}", ()) if split in run["metrics"]]
        ours = [read_metric(run, source.metric) for run in runs]
        return Cell(ours, self.table.systems[system].published.get(column))

    def epoch_seconds(self, setting: str) -> float | None:
        """The time of an epoch: what was measured, or else that of the runs; None where there is neither."""
        if self.epochs is not None:
            return self.epochs.get(setting)
        return epoch_seconds(self.runs[setting]) if setting in self.runs else None

    def published_columns(self) -> set[str]:
        """Columns for which the paper has a figure."""
        return {column for system in self.table.systems.values() for column in system.published}

    def as_markdown(self) -> str:
        """Title, table and what a reader must know, for table.md."""
        published = self.published_columns()
        header = ["system"]
        for column in self.table.columns:
            header += [column, "published"] if column in published else [column]
        rows = []
        for system in self.table.systems:
            cells = [system]
            for column in self.table.columns:
                cell = self.cell(system, column)
                cells.append(mean_and_spread(cell.ours, self.table.columns[column].metric) if cell.ours else "–")
                if column in published:
                    cells.append("–" if cell.published is None else f"{cell.published:.{self.table.decimals}f}")
            settings = [f"{system}-{part}" for part in self.table.parts]
            runs = [self.runs.get(setting, ()) for setting in settings]
            cells.append(_joined(str(len(of_part)) for of_part in runs))
            cells.append(_joined(f"{of_part[0]['trained_parameters']:,}" if of_part else "–" for of_part in runs))
            if self.table.costs:
                cost = self.table.costs.get(self.table.systems[system].called or "")
                found = map(self.epoch_seconds, settings)
                seconds = _joined("–" if took is None else f"{took:,.0f}" for took in found)
                cells += [
                    "–" if cost is None else f"{cost.parameters:g} M",
                    seconds,
                    "–" if cost is None or cost.epoch_seconds is None else f"{cost.epoch_seconds:,g}",
                ]
            rows.append(cells)
        header += ["seeds", "parameters"]
        if self.table.costs:
            header += ["published", "s an epoch", "published"]
        table = markdown_table(header, rows)
        return f"**{self.title()}**\n\n{table}\n\n{self.notes()}\n"

    def as_json(self) -> dict[str, Any]:
        """The same for table.json; all figures in percent."""
        rows = {}
        for system, row in self.table.systems.items():
            figures = {}
            for column in self.table.columns:
                cell = self.cell(system, column)
                ours = [100 * share for share in cell.ours]
                figures[column] = {
                    "ours": ours,
                    "mean": statistics.mean(ours) if ours else None,
                    "standard_deviation": standard_deviation(ours),
                    "published": cell.published,
                }
            settings = [f"{system}-{part}" for part in self.table.parts]
            seconds = {name: took for name in settings if (took := self.epoch_seconds(name)) is not None}
            rows[system] = {
                "called_in_the_paper": row.called,
                "figures": figures,
                "epoch_seconds": seconds,
                "seeds": {name: [run["seed"] for run in self.runs[name]] for name in settings if name in self.runs},
            }
        return {
            "table": self.table.name,
            "quick": self.quick,
            "title": self.title(),
            **({} if self.epochs is None else {"measured_epochs": dict(self.epochs)}),
            "rows": rows,
            "notes": self.notes(),
        }

    def _published(self, what: str, attribute: str) -> str:
        """What is so of the published figures, and of rows that have an `attribute` of their own in its place."""
        others = [
            f"{name}: {own}" for name, row in self.table.systems.items() if (own := getattr(row, attribute)) is not None
        ]
        return what + (f" ({', '.join(others)})" if others else "")

    def notes(self) -> str:
        """Data, vectors, recipe and options of our runs, and how the published figures were made otherwise."""
        table, used = self.table, self.table.published_with
        sentences = [
            "In percent; ±: standard deviation over the seeds; –: none.",
            *([_SECONDS_OF_RUNS if self.epochs is None else _MEASURED_SECONDS] if table.costs else []),
            f"Data: {self._grouped(_data)}.",
            f"Word vectors: {self._grouped(_vectors)}.",
            f"Recipe: {self._grouped(_recipe)}.",
            f"Options: {self._grouped(self._options)}.",
            f"Published: {self._published(table.source, 'source')}, with {self._published(used.vectors, 'vectors')}"
            + (f" and {used.train_examples:,} training examples." if used.train_examples else "."),
        ]
        runs = [of_setting[0] for of_setting in self.runs.values()]
        others = []
        if not all(re.search(used.vectors_file, run["vectors"] or "", flags=re.IGNORECASE) for run in runs):
            others.append("word vectors")
        if used.train_examples and any(run["data"]["train"]["examples"] != used.train_examples for run in runs):
            others.append("training examples")
        if others:
            sentences.append(f"Ours have other {' and '.join(others)}, so the two are not directly comparable.")
        return " ".join([*sentences, table.note]).strip()

    def _grouped(self, describe: Callable[[Run], str]) -> str:
        """What `describe` says of the settings, each answer once, with its settings where there are several."""
        groups: dict[str, list[str]] = {}
        for setting, runs in self.runs.items():
            groups.setdefault(describe(runs[0]), []).append(setting)
        if len(groups) == 1:
            return next(iter(groups))
        return "; ".join(f"{text} ({', '.join(settings)})" for text, settings in groups.items())

    def _options(self, run: Run) -> str:
        of_parts = {name for options in self.table.parts.values() for name in options}
        said_elsewhere = {"setting", "seed", "output_dir", "recipe", "vectors", *self.table.files, *of_parts}
        options = without_options(run["command"][1:], said_elsewhere)
        return f"`{' '.join(options)}`" if options else "none"


def epoch_seconds(runs: Sequence[Run]) -> float:
    """The time of as many updates as there are in an epoch, without evaluations: the runs' mean."""
    return statistics.mean(float(run["train_seconds"]) / epochs_trained(run) for run in runs)


def read_epochs(path: Path) -> dict[str, float]:
    """Measured seconds of an epoch by setting, from the record of `benchmarks/table_epoch.py`.

    Raises:
        OSError: There is no such file.
        ValueError: It is another one.
    """
    try:
        results = json.loads(path.read_text(encoding="utf-8"))["results"]
        return {result["setting"]: float(result["seconds"]) for result in results}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no record of benchmarks/table_epoch.py.") from error


def _data(run: Run) -> str:
    counts = ", ".join(f"{split['examples']:,} {name}" for name, split in run["data"].items())
    return f"{run['source']}, {counts} examples"


def _vectors(run: Run) -> str:
    return f"{run['vectors']}, {run['model']['embedding_size']} numbers a word"


def _recipe(run: Run) -> str:
    recipe, name = run["recipe"], run["recipe_name"]
    steps = recipe["max_train_steps"]
    length = f"{recipe['num_train_epochs']:g} epochs" if steps is None else f"{steps:,} updates"
    return f"{'each setting has its own' if name == run['setting'] else name}, {length}"


def _joined(cells: Iterable[str]) -> str:
    """The cells of all parts, once where they are equal."""
    return " / ".join(dict.fromkeys(cells))
