"""The metrics of an evaluation in a model's card: what the Hub reads, and a table for people."""

from pathlib import Path
from typing import cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from modeling_dsa.files.card_sections import put_section

from .report import METRICS, PICTURE, Evaluation, Result

HUB_NAMES = {"spearman": "spearmanr", "pearson": "pearsonr", "accuracy": "accuracy", "macro_f1": "f1"}
_TASKS = {
    "similarity": ("sentence-similarity", "Sentence similarity"),
    "probe": ("text-classification", "Linear probe on frozen vectors"),
    "classification": ("text-classification", "Text classification"),
}
_OURS = "sha256"  # what tells the results of `dsa evaluate` from others in a card


def update_card(card: ModelCard, evaluation: Evaluation, folder: Path) -> None:
    """Put an evaluation into a card in place of the one before; all else stays.

    Args:
        card: What `read_card` gives.
        evaluation: Of the model.
        folder: The model's, which holds the evaluation's picture.
    """
    data = cast(ModelCardData, card.data)
    others = [result for result in data.eval_results or [] if _OURS not in (result.dataset_args or {})]
    data.eval_results = others + [entry for result in evaluation.results for entry in _eval_results(result)]
    data.model_name = data.model_name or folder.resolve().name
    put_section(
        card,
        "dsa evaluate",
        f"## Evaluation by `dsa evaluate`\n\n{evaluation.as_markdown()}\n\n"
        "Percent; correlations of the cosines of vectors with human scores, times 100.\n\n"
        f"![The same figures as bars]({PICTURE})",
    )


def _eval_results(result: Result) -> list[EvalResult]:
    """An entry of the card's metadata for each metric."""
    task_type, task_name = _TASKS[result.kind]
    return [
        EvalResult(
            task_type=task_type,
            task_name=task_name,
            dataset_type="custom",
            dataset_name=result.name,
            # huggingface_hub makes one entry of results that do not differ in this.
            dataset_config=f"{result.kind}: {result.name} ({result.files[0]['sha256'][:8]})",
            dataset_args={_OURS: ", ".join(file["sha256"] for file in result.files)},
            metric_type=HUB_NAMES[key],
            metric_name=METRICS[key],
            metric_value=value,
        )
        for key, value in result.metrics.items()
    ]
