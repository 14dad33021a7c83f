"""The runs of a grid, all checked before the first one starts."""

import re
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from modeling_dsa.command.messages import suggestion
from run_glue_style.reporting.grid.definition import BASE, Grid, Row
from run_glue_style.tasks.validation_split import is_validation
from run_glue_style.training.arguments import given_options

from .runs import PlannedRun, as_arguments, check_run, refuse_other_options

_SCORES = ("--save_example_scores", "true")


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
        ValueError: There is no such row, an option is one that rows change or that the script refuses, two rows are
            the same run, or the table would have finished runs with other options.
    """
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds must be different numbers, got {' '.join(map(str, seeds))}.")
    for name in rows:
        if name not in grid.rows:
            raise ValueError(f"{grid.path} has no row '{name}'. {suggestion(name, grid.rows)}")
    given = given_options(options)
    base, chosen = grid.rows[BASE].options, [row for row in grid.rows.values() if not rows or row.name in rows]
    for row in chosen:
        for name in sorted(given & row.options.keys()):
            if row.options[name] != base.get(name):
                raise ValueError(f"Leave out --{name}: {grid.path}, line {row.line}: the row '{row.name}' changes it.")

    runs = [plan_run(grid, row, seed, output_dir, options) for seed in seeds for row in chosen]
    _check(grid, chosen, runs[: len(chosen)], given)
    for row in grid.rows.values():
        for path in sorted((output_dir / row.name).glob("seed-*.json")):
            seed = path.stem.removeprefix("seed-")
            if not seed.isdecimal():
                raise ValueError(f"{path} is no run of this grid: those are seed-N.json. Take it away.")
            refuse_other_options(plan_run(grid, row, int(seed), output_dir, options))
    return runs


def plan_run(grid: Grid, row: Row, seed: int, output_dir: Path, options: Sequence[str]) -> PlannedRun:
    """A run of a row; grid, output_dir and options as for `plan_grid`."""
    given = given_options(options)
    own = {name: value for name, value in (grid.options | row.options).items() if name not in given}
    arguments = [*as_arguments(own), *_SCORES, "--seed", str(seed), *options]
    return PlannedRun(grid.script, output_dir / row.name / f"seed-{seed}", arguments)


def _check(grid: Grid, rows: Sequence[Row], runs: Sequence[PlannedRun], given: Set[str]) -> None:
    """Read the command line of each row as its script will, and compare them."""
    identities: dict[str, Any] = {}
    for row, run in zip(rows, runs, strict=True):
        location = f"{grid.path}, line {row.line}: the row '{row.name}'"
        try:
            checked = check_run(run)
        except (ValueError, OSError) as error:
            if any(re.search(rf"\b{name}\b", str(error)) for name in given):
                raise ValueError(f"{error} The grid's row is '{row.name}'.") from error
            raise ValueError(f"{location}: {error}") from error
        for metric, line in grid.metrics.items():
            split, _, name = metric.partition(".")
            is_there = checked.splits is None or split in checked.splits
            is_train = checked.evaluates_train and split == "train"
            if not (is_there and (is_validation(split) or split.startswith("test") or is_train)):
                named = checked.splits or ("train", "validation", "test")
                evaluated = [name for name in named if name != "train" or checked.evaluates_train]
                raise ValueError(
                    f"{grid.path}, line {line}: '{split}' is no split that is evaluated: there is "
                    f"{' and '.join(evaluated)}."
                )
            if name not in checked.metrics:
                raise ValueError(
                    f"{grid.path}, line {line}: there is no metric '{name}'. {suggestion(name, checked.metrics)}"
                )
        for other, identity in identities.items():
            if identity == checked.identity:
                raise ValueError(f"{location} is the same run as '{other}': leave one out.")
        identities[row.name] = checked.identity
