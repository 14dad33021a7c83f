"""The runs of a folder, files FOLDER/ROW/NAME.json: each is an all_results.json, those of one ROW are its seeds."""

from pathlib import Path
from typing import Any

from modeling_dsa.files.model_replacing import RESULTS
from run_glue_style.training.results import check_seeds, read_run

# What `attention_entropy` and `hop_overlap` write into a folder of theirs, which may stand among the rows.
ENTROPY, OVERLAP = "entropy.json", "overlap.json"


def read_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Results of each row's runs.

    Raises:
        OSError: A file cannot be read.
        ValueError: The folder has no runs, a file holds none, or those of a row differ in more than their seed.
    """
    names = dict.fromkeys(path.parent.name for path in sorted(folder.glob("*/*.json")))
    rows = {name: runs for name in names if (runs := read_row(folder, name))}
    if not rows:
        raise ValueError(f"{folder} has no runs: put each all_results.json at {folder}/ROW/NAME.json.")
    return rows


def read_row(folder: Path, row: str) -> list[dict[str, Any]]:
    """Results of one row's runs; none where none is finished.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file holds no run, or the runs differ in more than their seed.
    """
    if (folder / row / RESULTS).is_file():
        raise ValueError(
            f"{folder / row} is the folder of a run, and not of a row's: `dsa compare` sets such runs side by side, "
            f"or copy each {RESULTS} to FOLDER/ROW/NAME.json."
        )
    runs = [read_run(path) for path in sorted((folder / row).glob("*.json")) if path.name not in (ENTROPY, OVERLAP)]
    check_seeds(f"the row '{row}'", runs)
    return runs
