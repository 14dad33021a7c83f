"""Started in several processes by test_engine.py: train, and write what each process ends with.

Arguments: the run's folder, the file of the final state (its number is put behind), the batch in which to stop, or 0,
and the number of groups of examples, or 0.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from small_runs import accuracy, small_trainer

from run_glue_style.training.interruption import Interrupted
from run_glue_style.training.objective import Metrics

torch.set_num_threads(1)
folder, file, stop, groups = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
counts: list[int] = []


def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
    counts.append(len(references))
    return accuracy(predictions, references)


trainer = small_trainer(
    folder,
    groups=[row % groups for row in range(100)] if groups else None,
    compute_metrics=compute,
    per_device_eval_batch_size=16,
    gradient_accumulation_steps=2,
    average_decay=0.9,
    per_device_train_batch_size=8,
)
model, rank = trainer.unwrapped_model(), trainer.accelerator.process_index
table = model.get_parameter("dsa.embed_tokens.weight")
before = table.clone()
batches = 0


def hook(module: torch.nn.Module, _inputs: object) -> None:
    global batches
    batches += module.training
    if module.training and batches == stop and rank == 1:  # one process is asked, and all must stop
        os.kill(os.getpid(), signal.SIGTERM)


model.register_forward_pre_hook(hook)
try:
    trainer.train()
except Interrupted:
    trainer.accelerator.end_training()
    sys.exit(0)
state = {
    "weights": model.state_dict(),
    "history": trainer.progress.history,
    "tokens": trainer.progress.tokens,
    "counts": set(counts),
    "table": torch.equal(before, table),
    "frozen": not table.requires_grad,
    "processes": trainer.accelerator.num_processes,
    "resumed": batches < 2 * trainer.progress.step,
}
torch.save(state, f"{file}.{rank}")
trainer.accelerator.end_training()
