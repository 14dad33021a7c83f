"""What a run records of itself: its identity, and all_results.json."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from accelerate import Accelerator
from safetensors.torch import save
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.command.environment import environment
from modeling_dsa.files.model_hashes import tokenizer_hash, weight_file_hashes

from .objective import Metrics
from .progress import Progress
from .recipe import ModelArguments, RunArguments, TrainingRecipe

FRESH = "fresh weights"  # what a run starts from that starts from no model


def run_identity(
    arguments: ModelArguments,
    recipe: TrainingRecipe,
    run: RunArguments,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    of_task: Mapping[str, Any],
    accelerator: Accelerator,
) -> dict[str, Any]:
    """All that the weights of a run depend on, as JSON: a checkpoint with another identity is another run's."""
    table, start = cast(Tensor, model.get_input_embeddings().weight), arguments.model_name_or_path
    return {
        "model": {key: value for key, value in model.config.to_dict().items() if key != "transformers_version"},
        "start": start or FRESH,
        **({} if start is None else {"start_weights": weight_file_hashes(start)}),
        "tokenizer_sha256": tokenizer_hash(tokenizer.backend_tokenizer.to_str()),
        "word_table_sha256": hashlib.sha256(save({"": table.data})).hexdigest(),
        "recipe": asdict(recipe),
        "seed": run.seed,
        "mixed_precision": accelerator.mixed_precision,
        "processes": accelerator.num_processes,
        **of_task,
    }


def collect_results(
    facts: Mapping[str, Any],
    arguments: ModelArguments,
    run: RunArguments,
    identity: Mapping[str, Any],
    progress: Progress,
    metrics: Mapping[str, Metrics],
    trained_parameters: int,
    total_seconds: float,
) -> dict[str, Any]:
    """The contents of all_results.json; `facts` are what a task adds to what every run tells."""
    return {
        **facts,
        "setting": arguments.setting,
        "recipe_name": run.recipe or arguments.setting,
        "trained_parameters": trained_parameters,
        "metrics": dict(metrics),
        "best_step": progress.best["step"] if progress.best else None,
        "steps": progress.step,
        "skipped_steps": progress.skipped,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "train_seconds": round(progress.seconds, 1),
        "total_seconds": round(total_seconds, 1),
        "tokens_per_second": round(progress.tokens / max(progress.seconds, 1e-9)),
        "history": progress.history,
        **identity,
        "environment": environment(),
    }
