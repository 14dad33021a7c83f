"""The runs that a paper's table needs: a folder and a command line for each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modeling_dsa.shipped.settings import suggestion

from .comparison import without_options
from .published import PublishedTable


@dataclass(frozen=True)
class PlannedRun:
    """A run of the table.

    Attributes:
        folder: Its output_dir; its results are copied beside it.
        arguments: The script's command line without --output_dir.
    """

    folder: Path
    arguments: list[str]

    @property
    def record(self) -> Path:
        """The copy of its all_results.json that the table is made from."""
        return self.folder.with_suffix(".json")


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
    common = [*_data_options(table, data_dir, options), *(_as_arguments(table.quick) if quick else []), *options]
    return [
        PlannedRun(
            output_dir / setting / f"seed-{seed}",
            ["--setting", setting, "--seed", str(seed), *_as_arguments(part), *common],
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


def _data_options(table: PublishedTable, data_dir: Path | None, options: Sequence[str]) -> list[str]:
    names = ", ".join(table.files.values())
    if data_dir is None:
        if not table.data_ship:
            raise ValueError(f"The table '{table.name}' needs data: give --data_dir, a folder with {names}.")
        return []
    if "--vectors" not in options:
        raise ValueError(f"The data in {data_dir} need word vectors: give --vectors, such as glove.840B.300d.zip.")
    paths = {option: data_dir / file for option, file in table.files.items()}
    for path in paths.values():
        if not path.is_file():
            raise FileNotFoundError(f"There is no {path}: --data_dir must have {names}.")
    return _as_arguments({option: str(path) for option, path in paths.items()})


def refuse_other_options(run: PlannedRun) -> None:
    """Refuse a finished run that was made otherwise than planned.

    Raises:
        ValueError: Its command line was another, or is not known.
    """
    for path in (run.record, run.folder / "all_results.json"):
        if path.is_file():
            made_with = without_options(read_results(path).get("command", ["", "unknown"])[1:], {"output_dir"})
            if made_with != run.arguments:
                raise ValueError(
                    f"{path} is a run with other options: it was made with '{' '.join(made_with)}', and asked for is "
                    f"'{' '.join(run.arguments)}'. Give the same options in the same order, another --output_dir, or "
                    f"delete {run.folder} and {run.record}."
                )


def read_results(path: Path) -> dict[str, Any]:
    """An all_results.json."""
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def _as_arguments(options: Mapping[str, str | int]) -> list[str]:
    return [argument for name, value in options.items() for argument in (f"--{name}", str(value))]
