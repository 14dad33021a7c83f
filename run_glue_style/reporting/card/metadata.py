"""What the Hub reads of a card."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from modeling_dsa.evaluation.card import HUB_NAMES
from modeling_dsa.evaluation.report import METRICS
from modeling_dsa.hub.publishing import check_repo_id
from run_glue_style.training.results import spearman_of_files

from .kinds import ENCODER, REGRESSION, Kind
from .known_data import has_other_data, known_data
from .widget import WidgetExample

# The Hub's name of each of our metrics, and what a reader calls it.
_METRICS = {key: (HUB_NAMES[key], name) for key, name in METRICS.items()} | {
    "fnc_relative": ("fnc_score", "FNC score, relative to its maximum"),
    "f1": ("f1", "F1"),
    "matthews_correlation": ("matthews_correlation", "Matthews correlation"),
    "mean_absolute_error": ("mae", "Mean absolute error"),
}
_METRIC_NAMES = {REGRESSION.name: ["pearsonr", "spearmanr"], ENCODER.name: ["cosine_similarity", "spearmanr"]}


def card_metadata(
    results: Mapping[str, Any], facts: Mapping[str, Any], kind: Kind, examples: Sequence[WidgetExample]
) -> ModelCardData:
    """What the Hub reads of a card: licence, tags, data, figures and the widget's examples.

    Args:
        results: The run's all_results.json; empty where nothing was measured.
        facts: What the template reads.
        kind: What the model is for.
        examples: What it said to some inputs.
    """
    config, known = facts["config"], known_data(results)
    source = _hub_id(results.get("source", ""))
    data_id = source or (known.hub_id if known else None)
    figures: list[EvalResult] = []
    if "teacher" in results:
        figures = _similarities(results["metrics"]["validation"])
    elif results:
        figures = _labelled(results["metrics"], data_id or "custom", known.name if known else facts["source"])
    vectors = results.get("vectors")
    widget = [
        {
            "text": example.text,
            "output": [{"label": label, "score": round(score, 4)} for label, score in example.output.items()],
        }
        for example in examples
    ]
    return ModelCardData(
        license="apache-2.0" if known is not None and not has_other_data(results) else None,
        language="en" if known is not None else None,
        library_name="transformers",
        pipeline_tag=_pipeline(kind, results),
        tags=[
            "dsa",
            "custom_code",
            "sentence-transformers",
            "sentence-similarity",
            "feature-extraction",
            *kind.tags,
            *(["glove"] if facts["glove"] else []),
        ],
        base_model=_hub_id(results.get("start", "")),
        base_vectors=f"{vectors}, {config.embedding_size} numbers a word" if vectors else None,
        datasets=[data_id] if data_id else None,
        metrics=_METRIC_NAMES.get(kind.name, ["accuracy", "f1"]) if results else None,
        model_name=facts["name"],
        eval_results=figures or None,
        widget=widget or None,
    )


def _pipeline(kind: Kind, results: Mapping[str, Any]) -> str:
    if kind is not ENCODER:
        return "text-classification"
    return "sentence-similarity" if "teacher" in results else "feature-extraction"


def _hub_id(name: str) -> str | None:
    """The name if it can be that of a repository on the Hub, and is no path here."""
    try:
        check_repo_id(name)
    except ValueError:
        return None
    return None if "/" not in name or Path(name).exists() else name


def _labelled(metrics: Mapping[str, Any], dataset_type: str, dataset_name: str) -> list[EvalResult]:
    """What was measured on each split of the data that a classifier or a regression was trained on."""
    return [
        EvalResult(
            task_type="text-classification",
            task_name="Text classification",
            dataset_type=dataset_type,
            dataset_name=dataset_name,
            dataset_split=split,
            metric_type=metric,
            metric_name=name,
            metric_value=of_split[key],
        )
        for split, of_split in metrics.items()
        if split != "train"  # what was learnt by heart is no evaluation
        for key, (metric, name) in _METRICS.items()
        if key in of_split
    ]


def _similarities(metrics: Mapping[str, Any]) -> list[EvalResult]:
    """A student's correlations with people's scores, of each file of pairs."""
    metric, name = _METRICS["spearman"]
    return [
        EvalResult(
            task_type="sentence-similarity",
            task_name="Sentence similarity",
            dataset_type="custom",
            dataset_name=file,
            dataset_config=file,  # or the Hub takes several files for one
            metric_type=metric,
            metric_name=name,
            metric_value=value,
        )
        for file, value in spearman_of_files(metrics).items()
    ]
