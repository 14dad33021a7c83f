"""The table of a grid: each row's metrics over its seeds, and its difference to the base, as Markdown and as JSON."""

import shutil
import statistics
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from modeling_dsa import DSAConfig
from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.replacing import filled_folder, write_json
from modeling_dsa.options_dsa import option_help
from run_glue_style.reporting.rows import read_row
from run_glue_style.reporting.units import mean_and_spread, metric_record
from run_glue_style.training.recipe import RunArguments, TrainingRecipe
from run_glue_style.training.results import have_same_examples, read_example_scores, read_metric

from .definition import BASE, Grid, read_grid
from .differences import Found, Measured, Numbers, compare, difference_cells, difference_records
from .plot import draw_grid

GRID = "grid.yaml"
_STARTS = {"vectors_sha256": "word vectors", "start_weights": "weights"}  # by the key of a record that has their hash


class GridTable:
    """A grid with the runs that are finished."""

    def __init__(self, grid: Grid, folder: Path) -> None:
        """Read the records of the grid's rows.

        Args:
            grid: The ablation.
            folder: Its runs.

        Raises:
            ValueError: A run has no such metric, runs of a row differ in more than their seed, or those of a row and
                of the base in more than the grid says.
        """
        self.grid, self.folder = grid, folder
        self.runs: dict[str, dict[int, dict[str, Any]]] = {}
        for row in grid.rows:
            for run in read_row(folder, row):
                self.runs.setdefault(row, {})[run["seed"]] = run
                self._check(row, run)
        for row, runs in self.runs.items():
            self._check_training(row, next(iter(runs.values())))

    def values(self, row: str, metric: str) -> dict[int, float]:
        """A metric of a row's runs, by seed."""
        return {seed: read_metric(run, metric) for seed, run in sorted(self.runs.get(row, {}).items())}

    @cached_property
    def differences(self) -> dict[tuple[str, str], dict[str, Found]]:
        """For each row and the base, and for the grid's comparisons, the difference in each metric."""
        pairs = [(row, BASE) for row in self.runs if row != BASE] + list(self.grid.comparisons)
        return {
            (row, other): {
                metric: compare(self._measured(row, metric), self._measured(other, metric), metric)
                for metric in self.grid.metrics
            }
            for row, other in pairs
        }

    def as_markdown(self) -> str:
        """Title, table and what a reader must know, for table.md."""
        tested = next(iter(self.grid.metrics))
        headers = ["row", *self.grid.metrics, f"{tested}: difference to base [95 %]", "p (examples)", "p (seeds)"]
        rows = []
        for row, runs in self.runs.items():
            figures = [mean_and_spread(self.values(row, metric).values(), metric) for metric in self.grid.metrics]
            found = None if row == BASE else self.differences[row, BASE][tested]
            minutes = statistics.mean(run["train_seconds"] for run in runs.values()) / 60
            parameters = next(iter(runs.values()))["trained_parameters"]
            rows.append(
                [row, *figures, *difference_cells(found, tested), str(len(runs)), f"{parameters:,}", f"{minutes:.1f}"]
            )
        parts = [f"**{self.grid.title}**", markdown_table([*headers, "seeds", "parameters", "minutes"], rows)]
        if self.grid.comparisons:
            headers = ["row", "against", f"{tested}: difference [95 %]", "p (examples)", "p (seeds)"]
            rows = [
                [*pair, *difference_cells(self.differences[pair][tested], tested)] for pair in self.grid.comparisons
            ]
            parts.append(markdown_table(headers, rows))
        return "\n\n".join([*parts, _NOTES]) + "\n"

    def as_json(self) -> dict[str, Any]:
        """The same for table.json, with the differences in all metrics; shares of 1, not percent."""
        rows = {
            row: {
                "options": self.grid.rows[row].options,
                "seeds": sorted(runs),
                "metrics": {metric: metric_record(self.values(row, metric).values()) for metric in self.grid.metrics},
            }
            for row, runs in self.runs.items()
        }
        return {
            "title": self.grid.title,
            "script": self.grid.script,
            "rows": rows,
            "differences": difference_records(self.differences),
        }

    def write(self) -> None:
        """Write table.md, table.json, plot.png, plot.svg and the grid itself, so that the table can be made again."""
        with filled_folder(self.folder) as beside:
            shutil.copyfile(self.grid.path, beside / GRID)
            (beside / "table.md").write_text(self.as_markdown(), encoding="utf-8")
            write_json(self.as_json(), beside / "table.json")
            rows = {row: [list(self.values(row, metric).values()) for metric in self.grid.metrics] for row in self.runs}
            draw_grid(self.grid.title, list(self.grid.metrics), rows, beside / "plot")

    def _check_training(self, row: str, run: Mapping[str, Any]) -> None:
        """Refuse a row whose data or recipe differ from the base's where none of its options can be the reason."""
        base = next(iter(self.runs.get(BASE, {}).values()), run)
        options, of_base = self.grid.rows[row].options, self.grid.rows[BASE].options
        changed = {name for name in options.keys() | of_base.keys() if options.get(name) != of_base.get(name)}
        of_recipe, of_run = ({field.name for field in fields(part)} for part in (TrainingRecipe, RunArguments))
        of_no_data = (of_recipe | of_run | option_help(DSAConfig).keys()) - {"max_train_samples"}
        if changed <= of_no_data and not have_same_examples(run, base, "train"):
            raise ValueError(
                f"{self.folder}: the rows {row} and {BASE} were trained on other data, which no option of theirs says: "
                "make one of them again."
            )
        began = next((fact for fact in _STARTS if fact in run.keys() & base.keys() and run[fact] != base[fact]), None)
        if began is not None and changed <= of_no_data - {"embedding_size"}:
            raise ValueError(
                f"{self.folder}: the rows {row} and {BASE} began with other {_STARTS[began]}, which no option of "
                "theirs says: make one of them again."
            )
        recipes = [asdict(TrainingRecipe()) | one["recipe"] for one in (run, base)]
        differing = {name for name in of_recipe if recipes[0].get(name) != recipes[1].get(name)}
        # That of the words has no meaning where they are frozen, and is left out there.
        unexplained = sorted(differing - changed - {"embedding_learning_rate"})
        if unexplained and not changed & {"recipe", "setting"}:
            raise ValueError(
                f"{self.folder}: the recipes of the rows {row} and {BASE} differ in {unexplained[0]}, which no option "
                "of theirs says: make one of them again."
            )

    def _check(self, row: str, run: Mapping[str, Any]) -> None:
        for metric, line in self.grid.metrics.items():
            try:
                read_metric(run, metric)
            except ValueError as error:
                path = self.folder / row / f"seed-{run['seed']}.json"
                raise ValueError(f"{self.grid.path}, line {line}: {path} has no metric '{metric}'.") from error

    def _measured(self, row: str, metric: str) -> Measured:
        return Measured(self.values(row, metric), self._scores(row, metric), self.runs.get(row, {}).values())

    def _scores(self, row: str, metric: str) -> dict[int, Numbers]:
        """The scores of a row's examples by seed, where the metric is their mean."""
        scores = {}
        for seed in self.runs.get(row, {}):
            path = self.folder / row / f"seed-{seed}.npz"
            if path.is_file():
                arrays = read_example_scores(path)
                if metric in arrays:
                    scores[seed] = arrays[metric]
        return scores


_NOTES = (
    "Metrics in percent, but errors, losses and points in their own unit; ±: standard deviation over the seeds; –: "
    "none. The interval of a difference is over examples and seeds at once, or Student's t over the seeds where the "
    "runs keep no value of the metric for each example. p (examples): approximate randomisation over the examples, "
    "each with its mean over the seeds; p (seeds): a paired t-test over the seeds. Neither is corrected for the "
    "number of rows."
)


def read_grid_table(folder: Path) -> GridTable | None:
    """The table that `run_grid` fills in this folder, with the runs that are there now; None in others.

    Raises:
        ValueError: The grid has a mistake, or a run lacks one of its metrics.
    """
    path = folder / GRID
    return GridTable(read_grid(path), folder) if path.is_file() else None
