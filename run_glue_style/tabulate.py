"""Write a folder of runs as one table: `python -m run_glue_style.tabulate results/snli`.

Each run is a file FOLDER/ROW/NAME.json, an all_results.json; the files of one ROW are its seeds. The table goes to
FOLDER/table.md.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def read_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Results of each row's runs.

    Raises:
        ValueError: The folder has no runs.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*/*.json")):
        rows.setdefault(path.parent.name, []).append(json.loads(path.read_text(encoding="utf-8")))
    if not rows:
        raise ValueError(f"{folder} has no runs: put each all_results.json at {folder}/ROW/NAME.json.")
    return rows


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean in percent and, for several runs, the standard deviation over them."""
    mean = f"{100 * statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * statistics.stdev(values):.2f}"


def as_markdown(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The table, best validation accuracy first."""
    splits = list(next(iter(rows.values()))[0]["metrics"])
    lines = [f"| row | runs | {' | '.join(f'{name} accuracy' for name in splits)} | parameters | epochs | minutes |"]
    lines.append("|---|---|" + "---|" * (len(splits) + 3))

    def first_accuracy(row: str) -> float:
        return statistics.mean(float(run["metrics"][splits[0]]["accuracy"]) for run in rows[row])

    for row in sorted(rows, key=first_accuracy, reverse=True):
        runs = rows[row]
        accuracies = (mean_and_spread([run["metrics"][name]["accuracy"] for run in runs]) for name in splits)
        minutes = statistics.mean(run["train_seconds"] for run in runs) / 60
        lines.append(
            f"| {row} | {len(runs)} | {' | '.join(accuracies)} | {runs[0]['trained_parameters']:,} "
            f"| {runs[0]['recipe']['num_train_epochs']:g} | {minutes:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder of the runs.")
    folder = parser.parse_args().folder
    try:
        table = as_markdown(read_rows(folder))
    except ValueError as error:
        parser.error(str(error))
    (folder / "table.md").write_text(table, encoding="utf-8")
    print(table)  # noqa: T201  (this is the command's answer)


if __name__ == "__main__":
    main()
