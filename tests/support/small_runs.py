"""Small real runs that the tests of the training side share: SNLI pairs of the package and a tiny model."""

import itertools
import json
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch
from accelerate.state import AcceleratorState, GradientState
from small_models import small_config

from modeling_dsa import DSAForNLI
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from modeling_dsa.text.tokenization import WordTokenizer, build_tokenizer, count_words
from run_glue_style.sample import SAMPLE_FILES
from run_glue_style.training.accelerator import make_accelerator
from run_glue_style.training.engine import Trainer
from run_glue_style.training.entry import run_script
from run_glue_style.training.objective import Classification, ComputeMetrics, Metrics, Objective
from run_glue_style.training.recipe import RunArguments, TrainingRecipe
from run_glue_style.training.tokenized_examples import TokenizedExamples, TokenizedTexts, token_ids

Example = dict[str, Any]
SMALL_SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "first_layer_size": 8,
    "growth_size": 4,
    "num_hidden_layers": 1,
    "attention_head_size": 16,
    "classifier_hidden_sizes": [16],
}


def as_arguments(options: dict[str, Any]) -> list[str]:
    """Options as words of a command line."""
    words = [[f"--{key}", *map(str, value if isinstance(value, list) else [value])] for key, value in options.items()]
    return list(itertools.chain.from_iterable(words))


@cache
def pairs(split: str) -> list[Example]:
    """The first pairs of a split of the sample: `premise`, `hypothesis`, `label`."""
    rows: list[Example] = pyarrow.parquet.read_table(SAMPLE_FILES[split]).slice(0, 400).to_pylist()
    return rows


def write_pair_files(folder: Path, counts: dict[str, int], width: int) -> dict[str, Any]:
    """Pairs cut from the sample, so many of each split, and random vectors of their words, as options of a script."""
    options: dict[str, Any] = {}
    for split, count in counts.items():
        options[f"{split}_file"] = folder / f"{split}.jsonl"
        lines = [json.dumps({**row, "label": NLI_CLASS_NAMES[row["label"]]}) for row in pairs(split)[:count]]
        options[f"{split}_file"].write_text("\n".join(lines) + "\n")
    texts = [row[column] for split in counts for row in pairs(split) for column in ("premise", "hypothesis")]
    generator = np.random.default_rng(0)
    vectors = {word: generator.normal(size=width) for word in count_words(texts, lowercase=True) if word.isalpha()}
    lines = [" ".join([word, *(f"{number:.4f}" for number in vector)]) for word, vector in vectors.items()]
    options["vectors"] = folder / "vectors.txt"
    options["vectors"].write_text("\n".join(lines) + "\n")
    return options


@cache
def small_tokenizer() -> WordTokenizer:
    """Knows every word of `pairs`."""
    texts = [
        row[column] for name in ("train", "validation") for row in pairs(name) for column in ("premise", "hypothesis")
    ]
    return build_tokenizer(count_words(texts, lowercase=True), lowercase=True)


def tokenized(split: str, count: int) -> TokenizedExamples:
    """The first examples of a split, as the trainer reads them."""
    chosen, tokenizer = pairs(split)[:count], small_tokenizer()
    ids, lengths = token_ids(
        tokenizer.backend_tokenizer, [row[column] for column in ("premise", "hypothesis") for row in chosen]
    )
    columns = np.split(np.arange(2 * len(chosen)), 2)
    return TokenizedExamples(TokenizedTexts(tokenizer, ids, lengths, 2), columns, [row["label"] for row in chosen])


def accuracy(predictions: np.ndarray, references: np.ndarray) -> Metrics:
    """The one metric that the trainer needs."""
    return {"accuracy": float((predictions == references).mean())}


def small_trainer(
    folder: Path,
    *,
    train_examples: TokenizedExamples | None = None,
    validation_examples: TokenizedExamples | None = None,
    groups: Sequence[int] | None = None,
    compute_metrics: ComputeMetrics = accuracy,
    objective: Objective | None = None,
    run: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
    **recipe: Any,
) -> Trainer:
    """A trainer of 100 examples, 7 batches an epoch, on the CPU. Keywords are fields of the recipe."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    defaults: dict[str, Any] = {"report_to": "none", "cpu": True}
    run_arguments = RunArguments(output_dir=folder, **(defaults | (run or {})))
    settings: dict[str, Any] = {"per_device_train_batch_size": 16, "num_train_epochs": 3, "evaluations_per_epoch": 2}
    arguments = TrainingRecipe(**({**settings, "learning_rate": 5e-3} | recipe))
    classification = Classification(
        compute_metrics, arguments.metric_for_best_model or "accuracy", arguments.label_smoothing
    )
    sizes: dict[str, Any] = {
        "vocab_size": len(small_tokenizer()),
        "sentences_per_example": 2,
        "classifier_hidden_sizes": [6],
    }
    with torch.random.fork_rng():
        torch.manual_seed(run_arguments.seed)
        model = DSAForNLI(small_config(**(sizes | (config or {}))))
        model.to(dtype)  # type: ignore[arg-type]  # a wrapper of transformers hides the signature
    return Trainer(
        accelerator=make_accelerator(run_arguments, folder),
        model=model,
        tokenizer=small_tokenizer(),
        train_examples=tokenized("train", 100) if train_examples is None else train_examples,
        validation_splits={"validation": validation_examples or tokenized("validation", 50)},
        objective=objective or classification,
        recipe=arguments,
        run=run_arguments,
        output_dir=folder,
        identity={"recipe": asdict(arguments), "seed": run_arguments.seed},
        groups=groups,
    )


def same_tensors(first: Any, second: Any) -> bool:
    """Whether two nests of dicts and lists hold the same values, tensors bit for bit."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same_tensors(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same_tensors, first, second))
    return bool(first == second)


def run_main(main: Callable[[], None], script: str, options: dict[str, Any], *flags: str) -> int:
    """A script's exit code, run inside this process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, *as_arguments(options), *flags])
        return run_script(main)


def read_results(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((folder / "all_results.json").read_text("utf-8"))
    return results


def logged_error(caplog: pytest.LogCaptureFixture) -> str:
    """The one error that was logged, a sentence."""
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert "\n" not in errors[0]
    return errors[0]
