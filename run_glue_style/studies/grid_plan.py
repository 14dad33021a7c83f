"""The runs of a grid, all checked before the first one starts."""

import contextlib
import importlib
import io
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from modeling_dsa.shipped.settings import suggestion

from .grid import BASE, Grid, Options, Row
from .runs import PlannedRun, as_arguments

_OWN = ("--save_example_scores", "true")


def plan_grid(
    grid: Grid, rows: Sequence[str], seeds: Sequence[int], output_dir: Path, options: Sequence[str]
) -> list[PlannedRun]:
    """All runs of a grid, one seed of every row before the next, so that an early table has all rows.

    Args:
        grid: The ablation.
        rows: Names of rows; empty for all.
        seeds: Of each row's runs.
        output_dir: Folder of runs and table.
        options: More arguments of the script, such as the data's; they win over what the grid says of all rows.

    Raises:
        ValueError: There is no such row, an option is one that the rows set or that the script refuses, or two rows
            are the same run.
    """
    for name in rows:
        if name not in grid.rows:
            raise ValueError(f"{grid.path} has no row '{name}'. {suggestion(name, grid.rows)}")
    given = {option[2:].split("=")[0] for option in options if option.startswith("--")}
    base = grid.rows[BASE].options
    for row in grid.rows.values():
        for name in sorted(given & row.options.keys()):
            if row.options[name] != base.get(name):
                raise ValueError(f"Leave out --{name}: {grid.path}, line {row.line}: the row '{row.name}' changes it.")
    chosen = [row for row in grid.rows.values() if not rows or row.name in rows]
    runs = [
        PlannedRun(
            grid.script,
            output_dir / row.name / f"seed-{seed}",
            [*as_arguments(_without(grid.options | row.options, given)), *_OWN, "--seed", str(seed), *options],
        )
        for seed in seeds
        for row in chosen
    ]
    _check(grid, chosen, runs[: len(chosen)])
    return runs


def _without(options: Options, names: Set[str]) -> Options:
    return {name: value for name, value in options.items() if name not in names}


def _check(grid: Grid, rows: Sequence[Row], runs: Sequence[PlannedRun]) -> None:
    """Read the command line of each row as its script will, and compare them."""
    identities: dict[str, Any] = {}
    for row, run in zip(rows, runs, strict=True):
        try:
            identity = _identity(run)
        except (ValueError, OSError) as error:
            raise ValueError(f"{grid.path}, line {row.line}: the row '{row.name}': {error}") from error
        for other, other_identity in identities.items():
            if identity == other_identity:
                raise ValueError(
                    f"{grid.path}, line {row.line}: the row '{row.name}' is the same run as '{other}': leave one out."
                )
        identities[row.name] = identity


def _identity(run: PlannedRun) -> Any:
    script = importlib.import_module(f"run_glue_style.{run.script}")
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return script.read([*run.arguments, "--output_dir", str(run.folder)]).identity
    except SystemExit as error:
        raise ValueError(told.getvalue().partition("\n")[0].removeprefix("error: ")) from error
