"""Started in several processes by test_engine.py: train, stop and go on, and write what each process ends with.

Argument: the folder of the runs; each process writes to a file with its number there.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from small_runs import accuracy, small_trainer

from run_glue_style.training.interruption import Interrupted
from run_glue_style.training.objective import Metrics

folder = Path(sys.argv[1])


def train(name: str, stop: int = 0) -> dict[str, Any]:
    """Train in groups of examples; one process is asked to stop in a batch, and all must."""
    counts: list[int] = []
    batches = 0

    def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
        counts.append(len(references))
        return accuracy(predictions, references)

    trainer = small_trainer(
        folder / name,
        groups=[row % 7 for row in range(100)],
        compute_metrics=compute,
        per_device_eval_batch_size=16,
        gradient_accumulation_steps=2,
        average_decay=0.9,
        per_device_train_batch_size=8,
    )
    model, rank = trainer.unwrapped_model(), trainer.accelerator.process_index
    table = model.get_parameter("dsa.embed_tokens.weight")
    before = table.clone()

    def hook(module: torch.nn.Module, _inputs: object) -> None:
        nonlocal batches
        batches += module.training
        if module.training and batches == stop and rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    model.register_forward_pre_hook(hook)
    is_stopped = True
    with suppress(Interrupted):
        trainer.train()
        is_stopped = False
    return {
        "weights": model.state_dict(),
        "history": trainer.progress.history,
        "tokens": trainer.progress.tokens,
        "counts": set(counts),
        "table": torch.equal(before, table),
        "frozen": not table.requires_grad,
        "processes": trainer.accelerator.num_processes,
        "stopped": is_stopped,
        "resumed": batches < 2 * trainer.progress.step,
    }


found = {"whole": train("whole"), "stopped": train("again", stop=9), "resumed": train("again")}
torch.save(found, folder / os.environ["RANK"])
torch.distributed.destroy_process_group()
