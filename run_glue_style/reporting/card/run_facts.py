"""What a card says of a run: its figures, beside the published ones, and how it was made."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from modeling_dsa.files.shown_paths import without_folders
from run_glue_style.reporting.published import read_published
from run_glue_style.reporting.units import mean_and_spread
from run_glue_style.tasks.task import Task
from run_glue_style.training.recipe import TrainingRecipe
from run_glue_style.training.results import read_metric, spearman_of_files

from .known_data import KnownData, is_packaged, joined_pairs
from .text import plain

# A reader wants these even where they are the defaults.
_ALWAYS_SHOWN = ("num_train_epochs", "per_device_train_batch_size", "optimizer", "learning_rate", "schedule")

_OVER_SEEDS = {
    **{"accuracy": "accuracy", "macro_f1": "macro F1", "fnc_relative": "FNC score"},
    **{"pearson": "Pearson correlation", "spearman": "Spearman correlation", "cosine": "cosine with the teacher"},
}


def run_facts(
    results: Mapping[str, Any], known: KnownData | None, other_seeds: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What the card's template reads of a run.

    The figures are those on the test split, or on the first validation split where there is no other.

    Args:
        results: The run's all_results.json.
        known: Its data, if they are public ones that we know.
        other_seeds: Results of runs that differ from it in their seed alone.
    """
    runs = sorted([results, *other_seeds], key=lambda run: int(run["seed"]))
    split = "test" if "test" in results["metrics"] else next(iter(results["metrics"]))
    metrics = results["metrics"][split]
    return {
        "split": split,
        "metrics": metrics,
        **(_best_and_worst(metrics) if "per_class" in metrics else {}),
        "packaged": is_packaged(results),
        "joined": joined_pairs(results),
        "seeds": [run["seed"] for run in runs],
        "over_seeds": _over_seeds(runs) if other_seeds else {},
        "setting": without_folders(results.get("setting") or ""),
        "recipe_name": without_folders(results.get("recipe_name") or ""),
        "source": without_folders(results["source"]),
        "start": without_folders(results["start"]),
        "teacher": without_folders(results.get("teacher", {}).get("name", "")),
        "spearman": list(spearman_of_files(metrics).items()),
        "minutes": f"{results['train_seconds'] / 60:.1f}",
        "recipe": _shown_options(results["recipe"]),
        "command": _command(results.get("command", ())),
        "versions": plain(_versions(results["environment"])),
        "comparison": _comparison(runs, known),
    }


def _best_and_worst(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The classes that a classifier finds most and least reliably, and what it takes the latter for."""
    names = list(metrics["per_class"])
    best = max(names, key=lambda name: float(metrics["per_class"][name]["f1"]))
    worst = min(names, key=lambda name: float(metrics["per_class"][name]["f1"]))
    index = names.index(worst)
    counts: list[int] = metrics["confusion_matrix"][index]
    mistaken_rows, mistaken_for = max((counts[i], name) for i, name in enumerate(names) if i != index)
    return {
        "best": best,
        "worst": worst,
        "worst_rows": sum(counts),
        "worst_found": counts[index],
        "mistaken_rows": mistaken_rows,
        "mistaken_for": mistaken_for,
    }


def _over_seeds(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Mean and standard deviation of what the runs have of these metrics, by split and the metric's name for people."""
    found = {
        split: {
            name: mean_and_spread([run["metrics"][split][metric] for run in runs], metric)
            for metric, name in _OVER_SEEDS.items()
            if metric in of_split
        }
        for split, of_split in runs[0]["metrics"].items()
        if all(split in run["metrics"] for run in runs)
    }
    return {split: figures for split, figures in found.items() if figures}


def _comparison(runs: Sequence[Mapping[str, Any]], known: KnownData | None) -> dict[str, Any] | None:
    """Our figures beside the paper's on the same data: `systems`, their `source`, the `vectors`
    of each, `table`, and `figures` of (column, ours, published).

    The system is the run's own or, where the table has none of the kind, each that the table's paper has.
    """
    if known is None:
        return None
    results = runs[0]
    table, part = read_published(known.table), known.name.replace("-", "").lower()
    own = [name for name in table.systems if f"{name}-{part}" == results.get("setting")]
    systems = own or [name for name, system in table.systems.items() if system.source is None]
    figures = []
    for column, wanted in table.columns.items():
        published = [table.systems[name].published.get(column) for name in systems]
        split = wanted.metric.partition(".")[0]
        if wanted.part == part and any(published) and all(split in run["metrics"] for run in runs):
            ours = [read_metric(run, wanted.metric) for run in runs]
            shown_figures = ["–" if figure is None else f"{figure:.{table.decimals}f}" for figure in published]
            figures.append((column, mean_and_spread(ours, wanted.metric), shown_figures))
    shown = [number for number in range(len(systems)) if any(told[number] != "–" for _, _, told in figures)]
    if not shown:
        return None
    kept = [table.systems[systems[number]] for number in shown]
    return {
        "systems": [system.called for system in kept],
        "source": kept[0].source or table.source,
        "vectors": [system.vectors or table.published_with.vectors for system in kept],
        "table": table,
        "figures": [(column, ours, [told[number] for number in shown]) for column, ours, told in figures],
    }


def _shown_options(recipe: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options of a recipe that are not the defaults, or that everybody asks for."""
    defaults = {option.name: option.default for option in fields(TrainingRecipe)}
    defaults["metric_for_best_model"] = Task.metric_for_best_model
    return [
        (name, f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in recipe.items()
        if name in _ALWAYS_SHOWN or value != defaults.get(name)
    ]


def _command(argv: Sequence[str]) -> str | None:
    """A fenced block with the command, an option a line; None where it was not recorded."""
    if not argv:
        return None
    script, *options = map(without_folders, argv)
    module = f"run_glue_style.{Path(script).stem}"
    known = (Path(__file__).parents[2] / f"{Path(script).stem}.py").is_file()
    lines = [f"accelerate launch -q -m {module}" if known else shlex.quote(script)]
    for option in options:
        if option.startswith("--"):
            lines.append(shlex.quote(option))
        else:
            lines[-1] += f" {shlex.quote(option)}"
    text = " \\\n    ".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}bash\n{text}\n{fence}"


def _versions(environment: Mapping[str, Any]) -> str:
    hardware = ("machine", "cpu_capability", "cpu_threads", "gpu")
    return ", ".join(f"{name} {value}" for name, value in environment.items() if name not in hardware and value)
