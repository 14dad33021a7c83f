"""The figures of an evaluation in a model's card: what the Hub reads, and a table for people."""

import re
from pathlib import Path
from typing import cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from yaml import YAMLError

from modeling_dsa.files.replacing import replaced_file

from .report import FIGURES, PICTURE, Evaluation, Result

CARD = "README.md"
_START, _END = "<!-- dsa evaluate: this section is written anew by each evaluation -->", "<!-- end of dsa evaluate -->"
_METRICS = {"spearman": "spearmanr", "pearson": "pearsonr", "accuracy": "accuracy", "macro_f1": "f1"}  # the Hub's names
_TASKS = {
    "similarity": ("sentence-similarity", "Sentence similarity"),
    "probe": ("text-classification", "Linear probe on frozen vectors"),
    "classification": ("text-classification", "Text classification"),
}
_OURS = "sha256"  # what tells the results of `dsa evaluate` from others in a card


def read_card(folder: Path) -> ModelCard:
    """Read a model's card.

    Raises:
        FileNotFoundError: The folder has none.
        ValueError: Its metadata are broken.
    """
    path = folder / CARD
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {CARD}: --card adds figures to the card of a model's folder.")
    try:
        return cast(ModelCard, ModelCard.load(path))
    except (YAMLError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path}: the metadata between the --- lines are broken ({reason}): fix them.") from error


def update_card(card: ModelCard, evaluation: Evaluation, folder: Path) -> None:
    """Put an evaluation into a card in place of the one before, and write it; all else stays.

    Args:
        card: What `read_card` gives.
        evaluation: The figures.
        folder: The model's, which holds the evaluation's picture.
    """
    data = cast(ModelCardData, card.data)
    others = [result for result in data.eval_results or [] if _OURS not in (result.dataset_args or {})]
    data.eval_results = others + [figure for result in evaluation.results for figure in _figures(result)]
    data.model_name = data.model_name or folder.resolve().name
    section = (
        f"{_START}\n## Evaluation by `dsa evaluate`\n\n{evaluation.as_markdown()}\n\n"
        f"Percent; correlations of the cosines of vectors with human scores, times 100.\n\n"
        f"![The same figures as bars]({PICTURE})\n{_END}"
    )
    pattern = re.compile(re.escape(_START) + ".*?" + re.escape(_END), re.S)
    text = card.text
    if pattern.search(text):
        card.text = pattern.sub(lambda _: section, text, count=1)
    else:
        card.text = f"{text.rstrip()}\n\n{section}\n"
    with replaced_file(folder / CARD) as beside:
        beside.write_text(str(card), encoding="utf-8", newline="")


def _figures(result: Result) -> list[EvalResult]:
    """An entry of the card's metadata for each figure."""
    task_type, task_name = _TASKS[result.kind]
    return [
        EvalResult(
            task_type=task_type,
            task_name=task_name,
            dataset_type="custom",
            dataset_name=result.name,
            dataset_config=result.name,  # huggingface_hub makes one entry of results that differ in the name alone
            dataset_args={_OURS: ", ".join(file["sha256"] for file in result.files)},
            metric_type=_METRICS[key],
            metric_name=FIGURES[key],
            metric_value=value,
        )
        for key, value in result.figures.items()
    ]
