"""What a run says of itself at its end."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modeling_dsa.files.card_sections import CARD
from modeling_dsa.files.model_replacing import RESULTS
from run_glue_style.tasks.task import Task

from .objective import Metrics

_SHOWN_CLASSES = 12


def summary(task: Task, results: Mapping[str, Any], output_dir: Path) -> str:
    """What a run says of itself at its end."""
    lines = [line for split, metrics in results["metrics"].items() for line in _metric_lines(split, metrics)]
    if task.baseline:
        lines.append(f"baseline on validation: {task.baseline}")
    text = dict(zip(("text", "text_pair"), task.example, strict=False))
    return "\n".join(
        [
            "",
            *lines,
            told_place(output_dir),
            "import modeling_dsa; from transformers import pipeline; "
            f"print(pipeline('text-classification', {str(output_dir)!r})({text}))",
        ]
    )


def told_place(output_dir: Path) -> str:
    """Where a finished run's model is; a card that could not be written was told of."""
    card = "its card and " if (output_dir / CARD).is_file() else ""
    return f"The model is in {output_dir}, with {card}its results. Use it:"


def _metric_lines(split: str, metrics: Metrics) -> list[str]:
    if "pearson" in metrics:
        return [
            f"{split}: Pearson {metrics['pearson']:.3f}, Spearman {metrics['spearman']:.3f}; mean absolute error "
            f"{metrics['mean_absolute_error']:.4g}, that of the best constant {metrics['constant_absolute_error']:.4g}"
        ]
    told = ("loss", "accuracy", "macro_f1", "majority_accuracy")
    own = ", ".join(
        f"{key} {value:,.6g}" for key, value in metrics.items() if isinstance(value, float) and key not in told
    )
    by_class = ", ".join(
        f"{label} {of_class['f1']:.1%}"
        for label, of_class in itertools.islice(metrics["per_class"].items(), _SHOWN_CLASSES)
    )
    if len(metrics["per_class"]) > _SHOWN_CLASSES:
        by_class += f", ... (all {len(metrics['per_class'])} are in {RESULTS})"
    return [
        f"{split}: accuracy {metrics['accuracy']:.1%}, macro F1 {metrics['macro_f1']:.1%}; "
        f"the majority class gives {metrics['majority_accuracy']:.1%}",
        f"{split}: F1 {by_class}" + (f"; {own}" if own else ""),
    ]
