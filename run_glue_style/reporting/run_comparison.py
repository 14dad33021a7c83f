"""Finished runs side by side: table, paired tests, curves, and the examples on which their models differ."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from modeling_dsa.batching_dsa import Text
from modeling_dsa.evaluation.classification import read_classified
from modeling_dsa.evaluation.models import Classifier, open_model
from modeling_dsa.files.hashing import describe_files
from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.model_replacing import EXAMPLE_SCORES, RESULTS
from modeling_dsa.files.pictures import legend_columns, look, wrapped
from run_glue_style.training.objective import PREDICTION
from run_glue_style.training.results import differing, read_example_scores, read_metric, read_run

from .grid.differences import Found, Measured, Numbers, compare, difference_cells, difference_records
from .units import is_percent, mean_and_spread, metric_record

_CURVES = ("train_loss", "validation_loss", "validation_accuracy")
_LINES = ("-", "--", "-.", ":")
_MARKS = 20  # of a line, about
LAST_LINE = "Differences are over the seeds that both rows have."  # of a table; tells that it is one of these


@dataclass(frozen=True)
class ComparedRow:
    """Runs that differ in their seed alone.

    Attributes:
        name: What the row is called.
        folders: The run of each seed.
        results: Its all_results.json.
        scores: By metric, the scores of the examples of each seed's run where they are known; (examples,) each.
    """

    name: str
    folders: dict[int, Path]
    results: dict[int, dict[str, Any]]
    scores: dict[str, dict[int, Numbers]] = field(default_factory=dict)

    @property
    def first(self) -> dict[str, Any]:
        """The results of its first run."""
        return next(iter(self.results.values()))

    def measured(self, metric: str) -> Measured:
        """A metric of its runs, or one of `classify_examples`; without values where it is neither.

        Raises:
            ValueError: The first run has it, and another one does not.
        """
        scores = self.scores.get(metric, {})
        try:
            read_metric(self.first, metric)
        except ValueError:
            return Measured({seed: float(of_seed.mean()) for seed, of_seed in scores.items()}, scores)
        values = {seed: read_metric(run, metric) for seed, run in self.results.items()}
        return Measured(values, scores, self.results.values())

    def values(self, metric: str) -> Mapping[int, float]:
        """The same by seed."""
        return self.measured(metric).values


@dataclass(frozen=True)
class Differing:
    """An example to which the rows' first runs give several labels.

    Attributes:
        text: The text or pair.
        label: The right label.
        predicted: That of each row.
    """

    text: Text
    label: str
    predicted: list[str]


def read_runs(folders: Sequence[Path]) -> list[ComparedRow]:
    """Read the results of finished runs, and put those together that differ in their seed alone.

    Args:
        folders: Of runs.

    Raises:
        FileNotFoundError: One has no results.
        ValueError: Two are the same run, or there is one row alone.
    """
    grouped: list[dict[int, tuple[Path, dict[str, Any]]]] = []
    for folder in folders:
        if not (folder / RESULTS).is_file():
            raise FileNotFoundError(f"{folder} has no {RESULTS}: give folders of finished runs.")
        run = read_run(folder / RESULTS)
        of_row = next((row for row in grouped if differing(run, _first(row)[1]) is None), None)
        if of_row is None:
            grouped.append(of_row := {})
        if run["seed"] in of_row:
            other, _ = of_row[run["seed"]]
            raise ValueError(f"{other} and {folder} are one run twice, with seed {run['seed']}: leave one out.")
        of_row[run["seed"]] = (folder, run)
    if len(grouped) < 2:
        raise ValueError("All these runs differ in their seed alone: give runs of two models or more.")
    settings = [_first(of_row)[1]["setting"] for of_row in grouped]
    rows = []
    for setting, of_row in zip(settings, grouped, strict=True):
        folder, _ = _first(of_row)
        row = ComparedRow(
            setting if setting and settings.count(setting) == 1 else str(folder),
            {seed: run_folder for seed, (run_folder, _) in of_row.items()},
            {seed: run for seed, (_, run) in of_row.items()},
        )
        for seed, run_folder in row.folders.items():
            _read_example_scores(run_folder, seed, row)
        rows.append(row)
    return rows


def _first(of_row: Mapping[int, tuple[Path, dict[str, Any]]]) -> tuple[Path, dict[str, Any]]:
    return next(iter(of_row.values()))


def _read_example_scores(folder: Path, seed: int, row: ComparedRow) -> None:
    if (folder / EXAMPLE_SCORES).is_file():
        for metric, scores in read_example_scores(folder / EXAMPLE_SCORES).items():
            if not metric.endswith(f".{PREDICTION}"):  # which is a class, and has no mean
                row.scores.setdefault(metric, {})[seed] = scores


def classify_examples(rows: Sequence[ComparedRow], path: Path) -> list[Differing]:
    """Let all models classify the examples of a file; whether each is right becomes a metric, `NAME.accuracy`.

    Args:
        rows: Runs of classifiers with the same labels.
        path: Labelled texts or pairs, as `dsa evaluate --labelled` reads them.

    Returns:
        The examples on which the first runs of the rows differ.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It does not fit the models, or a model is no classifier, has other labels or reads other texts.
    """
    opened = {folder: open_model(str(folder)) for row in rows for folder in row.folders.values()}
    classifiers = {folder: _require_classifier(folder, model.classifier) for folder, model in opened.items()}
    first_folder, first = next(iter(classifiers.items()))
    names = first.class_names
    for folder, classifier in classifiers.items():
        if classifier.class_names != names:
            raise ValueError(
                f"{folder} has the labels {', '.join(classifier.class_names)}, and not {', '.join(names)}."
            )
        if classifier.pairs != first.pairs:
            single, of_pairs = (folder, first_folder) if first.pairs else (first_folder, folder)
            raise ValueError(f"{single} reads single texts, and {of_pairs} pairs: compare models that read the same.")
    examples = read_classified(path, names, pairs=first.pairs)
    for folder, model in opened.items():
        model.warn_of_unread(str(folder), examples.texts)
    predicted = []
    for row in rows:
        by_seed = {seed: classifiers[folder].classify(examples.texts) for seed, folder in row.folders.items()}
        gold = np.array(examples.labels)
        row.scores[f"{path.name}.accuracy"] = {seed: (found == gold).astype(float) for seed, found in by_seed.items()}
        predicted.append(next(iter(by_seed.values())).tolist())
    return [
        Differing(text, names[label], [names[one] for one in of_rows])
        for text, label, *of_rows in zip(examples.texts, examples.labels, *predicted, strict=True)
        if len(set(of_rows)) > 1
    ]


def _require_classifier(folder: Path, classifier: Classifier | None) -> Classifier:
    if classifier is None:
        raise ValueError(f"{folder} gives no classes: --labelled compares classifiers.")
    return classifier


Differences = Mapping[tuple[str, str], Mapping[str, Found]]  # of each row and the first, by metric


def compare_rows(rows: Sequence[ComparedRow], metrics: Sequence[str]) -> Differences:
    """The differences of each row to the first.

    Args:
        rows: Two or more.
        metrics: Such as `test.accuracy`.

    Raises:
        ValueError: No run has such a metric, or of a row some have it.
    """
    for metric in metrics:
        if not any(row.values(metric) for row in rows):
            raise ValueError(f"No run has a metric '{metric}': name its split too, such as test.accuracy.")
    first, *others = rows
    return {
        (row.name, first.name): {
            metric: compare(row.measured(metric), first.measured(metric), metric) for metric in metrics
        }
        for row in others
    }


def compare_table(rows: Sequence[ComparedRow], metrics: Sequence[str], differences: Differences) -> str:
    """The rows with mean and spread over their seeds, and the differences, by `compare_rows`, as Markdown."""
    return "\n\n".join([_means_table(rows, metrics), _differences_table(differences), LAST_LINE])


def compare_json(
    rows: Sequence[ComparedRow], metrics: Sequence[str], differences: Differences, labelled: Path | None
) -> dict[str, Any]:
    """The same for table.json, as that of a grid has it; shares of 1, not percent.

    Args:
        rows: As for `compare_rows`.
        metrics: As there.
        differences: By it.
        labelled: The file that all models classified, if there is one.
    """
    return {
        "files": describe_files([] if labelled is None else [labelled]),
        "rows": {
            row.name: {
                "seeds": list(row.folders),
                "metrics": {
                    metric: metric_record(values.values()) for metric in metrics if (values := row.values(metric))
                },
            }
            for row in rows
        },
        "differences": difference_records(differences),
    }


def _means_table(rows: Sequence[ComparedRow], metrics: Sequence[str]) -> str:
    lines = []
    for row in rows:
        runs = list(row.results.values())
        by_seed = [row.values(metric) for metric in metrics]
        speeds = [run["tokens_per_second"] for run in runs if "tokens_per_second" in run]
        lines.append(
            [
                row.name,
                *(
                    mean_and_spread(values.values(), name) if values else "–"
                    for values, name in zip(by_seed, metrics, strict=True)
                ),
                str(len(runs)),
                f"{runs[0]['trained_parameters']:,}",
                f"{statistics.mean(speeds):,.0f}" if speeds else "–",
                f"{statistics.mean(run['train_seconds'] for run in runs) / 60:.1f}",
            ]
        )
    return markdown_table(["row", *metrics, "seeds", "parameters", "tokens a second", "minutes"], lines)


def _differences_table(differences: Differences) -> str:
    lines = [
        [row, metric, *difference_cells(found, metric)]
        for (row, _), of_metrics in differences.items()
        for metric, found in of_metrics.items()
    ]
    first = next(other for _, other in differences)
    return markdown_table(["row", "metric", f"less {first} [95 %]", "p (examples)", "p (seeds)"], lines)


def draw_curves(rows: Sequence[ComparedRow]) -> Figure:
    """Losses and accuracy by update, a line for each run.

    Raises:
        ValueError: No run tells its history.
    """
    shown = [key for key in _CURVES if any(_curve(run, key)[0] for row in rows for run in row.results.values())]
    if not shown:
        raise ValueError("No run tells its history, so there are no curves to draw: train them anew.")
    width = 0.6 + 4.4 * len(shown)
    names = [wrapped(row.name, width - 1, 10) for row in rows]
    lines = sum(name.count("\n") + 1 for name in names)
    columns = min(3, legend_columns(names, width, 10))
    figure = Figure(figsize=(width, 3.8 + 0.24 * lines / columns), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(shown)))
    for panel, key in zip(panels, shown, strict=True):
        for number, row in enumerate(rows):
            for seed, run in enumerate(row.results.values()):
                steps, values = _curve(run, key)
                panel.plot(
                    steps,
                    [100 * value for value in values] if is_percent(key) else values,
                    linestyle=_LINES[number % len(_LINES)],
                    markersize=4,
                    markevery=max(1, len(steps) // _MARKS),
                    alpha=0.9,
                    label=None if seed else names[number],
                    **look(number),
                )
        panel.set_title(key.replace("_", " ") + (", %" if is_percent(key) else ""), fontsize=10)
        panel.set_xlabel("update")
        panel.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _curve(run: Mapping[str, Any], key: str) -> tuple[list[int], list[float]]:
    points = [(one["step"], one[key]) for one in run.get("history", ()) if one.get(key) is not None]
    return [step for step, _ in points], [value for _, value in points]
