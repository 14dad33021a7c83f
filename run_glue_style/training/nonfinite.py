"""Losses, gradients and weights that are not finite: a run that goes on with them learns nothing and says nothing."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from modeling_dsa.files.replacing import write_json

from .objective import Objective
from .sharding import whole
from .training_batches import Batch, model_inputs


class NonFiniteError(ValueError):
    """A run was stopped by a loss, gradient or weight that is not finite; its last good checkpoint is left."""


def clip_gradient(accelerator: Accelerator, model: nn.Module, max_norm: float) -> Tensor:
    """Clip the gradient's norm, unless `max_norm` is 0, and return what it was before. ()"""
    if max_norm:
        return whole(accelerator.clip_grad_norm_(model.parameters(), max_norm))
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return whole(torch.nn.utils.get_total_norm(gradients))


def is_finite_update(accelerator: Accelerator, loss: float, norm: float) -> bool:
    """Whether an update can be made. Half precision's scaler handles gradients that overflow by itself."""
    return math.isfinite(loss) and (math.isfinite(norm) or accelerator.scaler is not None)


@torch.inference_mode()
def write_examples(
    path: Path,
    accelerator: Accelerator,
    model: nn.Module,
    objective: Objective,
    tokenizer: PreTrainedTokenizerBase,
    batches: Sequence[Batch],
) -> int:
    """Write the examples of an update as JSON, with what the model makes of each of them alone; all processes call it.

    Args:
        path: The file.
        accelerator: Of the run.
        model: As it was before the update.
        objective: Gives the model's predictions.
        tokenizer: Tells the tokens' names.
        batches: This process's batches, with labels.

    Returns:
        How many examples there are, in all processes.
    """
    model.eval()
    own = [example for batch in batches for example in _described(model, objective, tokenizer, batch)]
    examples = gather_object(own)
    if accelerator.is_main_process:
        write_json(finite_or_none(examples), path)
    return len(examples)


def _described(
    model: nn.Module, objective: Objective, tokenizer: PreTrainedTokenizerBase, batch: Batch
) -> Iterator[dict[str, Any]]:
    finite = objective.predictions(model, model_inputs(batch)).isfinite()  # (batch, classes), or (batch,) numbers
    finite = finite.reshape(len(finite), -1).all(1)  # (batch,)
    labels = batch["labels"]
    if len(labels) < len(finite):  # a teacher's vectors of pairs, (batch, 2, width)
        labels = labels.flatten(0, 1)
    for ids, label, is_finite in zip(batch["input_ids"], labels, finite.tolist(), strict=True):
        tokens = ids[ids != tokenizer.pad_token_id]  # (tokens,)
        yield {"text": tokenizer.decode(tokens), "label": label.tolist(), "prediction_is_finite": is_finite}


def require_finite_weights(tensors: Mapping[str, Tensor], step: int) -> None:
    """Refuse weights that shall be kept.

    Raises:
        NonFiniteError: One of them is not finite.
    """
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise NonFiniteError(
                f"Step {step}: the weights {name} are not finite, and are not kept: give a lower --learning_rate or "
                "--max_grad_norm, with --overwrite_output_dir to start anew."
            )


def finite_or_none(content: Any) -> Any:
    """Nested lists and dicts, with None for numbers that JSON has no name for."""
    if isinstance(content, dict):
        return {name: finite_or_none(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite_or_none(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
