"""The runs that a paper's table needs: a folder and a command line for each."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from modeling_dsa.command.messages import suggestion
from run_glue_style.reporting.published import PublishedTable
from run_glue_style.training.arguments import given_options

from .runs import PlannedRun, as_arguments


def plan_runs(
    table: PublishedTable,
    rows: Sequence[str],
    seeds: int,
    quick: bool,
    output_dir: Path,
    data_dir: Path | None,
    options: Sequence[str],
) -> list[PlannedRun]:
    """All runs of a table, one seed of every system before the next, so that an early table has all rows.

    Args:
        table: The paper's table.
        rows: Systems or settings; empty for all.
        seeds: Each setting runs with the seeds 0 to seeds - 1.
        quick: Train for a few updates only.
        output_dir: Folder of runs and table.
        data_dir: Folder of the data; None for those of the package.
        options: More arguments of the script.

    Raises:
        ValueError: There is no such row, or data or vectors are missing.
        FileNotFoundError: A file of the data is missing.
    """
    settings = _settings(table, rows)
    given = given_options(options)
    common = {**_data_options(table, data_dir, options), **(table.quick if quick else {})}
    return [
        PlannedRun(
            table.script,
            output_dir / setting / f"seed-{seed}",
            [*as_arguments({"setting": setting, "seed": seed, **_without({**part, **common}, given)}), *options],
        )
        for seed in range(seeds)
        for setting, part in settings.items()
    ]


def _settings(table: PublishedTable, rows: Sequence[str]) -> dict[str, Mapping[str, str | int]]:
    """Settings to run and their part's options."""
    parts = table.parts_of_settings()
    known = {system: [f"{system}-{part}" for part in table.parts] for system in table.systems}
    known |= {setting: [setting] for setting in parts}
    for row in rows:
        if row not in known:
            raise ValueError(f"The table '{table.name}' has no row '{row}'. {suggestion(row, known)}")
    chosen = {setting for row in rows or table.systems for setting in known[row]}
    return {setting: table.parts[part] for setting, part in parts.items() if setting in chosen}


def _without(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _data_options(table: PublishedTable, data_dir: Path | None, options: Sequence[str]) -> dict[str, Any]:
    names = ", ".join(table.files.values())
    if data_dir is None:
        if not table.data_ship:
            raise ValueError(f"The table '{table.name}' needs data: give --data_dir, a folder with {names}.")
        return {}
    if "vectors" not in given_options(options):
        raise ValueError(f"The data in {data_dir} need word vectors: give --vectors, such as glove.840B.300d.zip.")
    paths = {option: data_dir / file for option, file in table.files.items()}
    for path in paths.values():
        if not path.is_file():
            raise FileNotFoundError(f"There is no {path}: --data_dir must have {names}.")
    return {option: str(path) for option, path in paths.items()}
