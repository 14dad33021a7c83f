"""The table of a folder of runs that no paper and no grid asked for: accuracy, size and time of each row."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from modeling_dsa.files.markdown import markdown_table
from run_glue_style.tasks.validation_split import is_validation
from run_glue_style.training.results import have_same_examples

from .units import mean_and_spread


def plain_table(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The table as Markdown, best validation accuracy first.

    Raises:
        ValueError: All runs lack an accuracy, or a run that of a split, or has it of other examples.
    """
    first_row, (first, *_) = next(iter(rows.items()))
    splits = list(first["metrics"])
    chosen_by = next((name for name in splits if is_validation(name)), splits[0])
    all_runs = [run for runs in rows.values() for run in runs]
    if not any("accuracy" in metrics for run in all_runs for metrics in run["metrics"].values()):
        raise ValueError(
            "No run has an accuracy, as those of regression and distillation: have their table made by run_grid, or "
            "compare two rows by row_difference."
        )
    lines = []
    for row, runs in rows.items():
        lacking = [name for name in splits for run in runs if "accuracy" not in run["metrics"].get(name, {})]
        if lacking:
            raise ValueError(f"A run of the row '{row}' has no accuracy on '{lacking[0]}', and others have one.")
        for name in splits:
            if name != "train" and not have_same_examples(runs[0], first, name):
                raise ValueError(f"The rows '{first_row}' and '{row}' have other examples in '{name}': put them apart.")

    def accuracy(row: str) -> float:
        return statistics.mean(float(run["metrics"][chosen_by]["accuracy"]) for run in rows[row])

    for row in sorted(rows, key=accuracy, reverse=True):
        runs = rows[row]
        minutes = statistics.mean(run["train_seconds"] for run in runs) / 60
        lines.append(
            [
                row,
                str(len(runs)),
                *(mean_and_spread([run["metrics"][name]["accuracy"] for run in runs], "accuracy") for name in splits),
                f"{runs[0]['trained_parameters']:,}",
                f"{statistics.mean(run['steps'] for run in runs):,.0f}",
                f"{minutes:.1f}",
            ]
        )
    header = ["row", "seeds", *(f"{name} accuracy" for name in splits), "parameters", "updates", "minutes"]
    return markdown_table(header, lines) + "\n"
