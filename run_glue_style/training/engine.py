"""The training engine that all tasks share: loop, evaluation, checkpoints, best weights.

It needs rows that are tokenised already (anything with `len` and items that are dicts of lists or arrays, such as a
`datasets.Dataset`) and neither `datasets` nor `evaluate`.
"""

import copy
import importlib.util
import itertools
import json
import math
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils.data import DataLoader, RandomSampler
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase, get_scheduler
from transformers.utils import logging

from .arguments import RunArguments, TrainingRecipe
from .batch_norm import recalibrate_batch_norm
from .collation import PadRows
from .global_batch_norm import share_batch_norm
from .global_batches import GlobalBatches
from .grouping import GroupedSampler
from .weight_average import WeightAverage

logger = logging.get_logger(__name__)

KEPT_CHECKPOINTS = 2

Metrics = dict[str, Any]
ComputeMetrics = Callable[[np.ndarray, np.ndarray], Metrics]


class Interrupted(Exception):  # noqa: N818  (not an error: the run goes on when it is started again)
    """The run was asked to stop and has written a checkpoint."""


@dataclass
class Progress:
    """Where a run stands, the same in all of its processes. It is part of every checkpoint.

    Attributes:
        step: Updates so far.
        epoch: Number of the epoch that goes on, from 0.
        batch: Batches of it that each process has used.
        words: Words in all processes' batches so far.
        seconds: Time spent on updates, without evaluation.
        loss_sum: Sum of the updates' losses since the last evaluation.
        loss_count: Updates since the last evaluation.
        best: Step, chosen metric and loss of the best evaluation so far.
        stale: Evaluations since then.
        history: What each evaluation gave.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    words: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    loss_count: int = 0
    best: Metrics | None = None
    stale: int = 0
    history: list[Metrics] = field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        vars(self).update(state)


def make_accelerator(run: RunArguments, output_dir: Path) -> Accelerator:
    """The accelerator of a run.

    Raises:
        ValueError: The launcher started several processes that do not know each other, or an option does not fit the
            machine or the launcher.
    """
    tracker = run.report_to
    if tracker == "auto":
        tracker = "tensorboard" if _is_installed("tensorboard") else "none"
    elif tracker != "none" and not _is_installed(tracker):
        raise ValueError(f"--report_to {tracker} needs the package {tracker}, which is not installed.")
    accelerator = Accelerator(
        cpu=run.cpu,
        mixed_precision=run.mixed_precision,
        # The order of an epoch is a function of the seed and its number, so that an interrupted run can find its place
        # again. accelerate adds the two up: hashed seeds keep the orders of neighbouring seeds apart.
        dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True, data_seed=_hash(run.seed) >> 2),
        log_with=None if tracker == "none" else tracker,
        project_dir=str(output_dir),
    )
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world != accelerator.num_processes:
        raise ValueError(
            f"The launcher started {world} processes, but accelerate sees {accelerator.num_processes}: each would "
            "train alone. On a CPU give the script --cpu and the launcher --multi_gpu."
        )
    if accelerator.gradient_accumulation_steps != 1:
        raise ValueError("Give --gradient_accumulation_steps to the script, behind its name, and not to the launcher.")
    if accelerator.mixed_precision == "fp16" and accelerator.device.type == "cpu":
        raise ValueError("--mixed_precision fp16 needs a GPU; a CPU computes with no or bf16.")
    return accelerator


class Trainer:
    """Trains a classifier and keeps its best weights. Files: `output_dir/checkpoints/{step-N, best.safetensors}`.

    The same call in the same folder goes on where an interrupted one stopped, to the same weights bit by bit on a CPU.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        train_rows: Any,
        validation_rows: Mapping[str, Any],
        compute_metrics: ComputeMetrics,
        recipe: TrainingRecipe,
        run: RunArguments,
        output_dir: Path,
        identity: Mapping[str, Any],
        groups: Sequence[int] | None = None,
        on_checkpoint: Callable[["Trainer"], None] | None = None,
    ) -> None:
        """Set up a run.

        Args:
            accelerator: From `make_accelerator`.
            model: A model whose forward takes `labels` and returns `loss` and `logits`.
            tokenizer: Pads the rows.
            train_rows: Tokenised rows with `labels`.
            validation_rows: Splits to evaluate by name; the first one chooses the best weights, by the recipe's
                `metric_for_best_model`.
            compute_metrics: From (predictions, references) to metrics, that one among them.
            recipe: How to train.
            run: Where and how to run.
            output_dir: Folder of the run.
            identity: What must be equal for a checkpoint to be this run's, as JSON.
            groups: The group of each training row, where rows of a group shall stand in one batch. (rows,)
            on_checkpoint: Called on the main process when a checkpoint is written and there are best weights.

        Raises:
            ValueError: There are too few rows.
        """
        processes = accelerator.num_processes
        if len(train_rows) < max(2, processes):
            raise ValueError(
                "Training needs two rows or more for batch normalisation, and one for each process: got "
                f"{len(train_rows)} for {processes}."
            )
        self.accelerator, self.recipe, self.run, self.output_dir = accelerator, recipe, run, output_dir
        self.tokenizer, self.compute_metrics, self.identity = tokenizer, compute_metrics, dict(identity)
        self.on_checkpoint = on_checkpoint
        self.collate = PadRows(tokenizer.pad_token_id)
        sampler = GroupedSampler(groups, run.seed) if groups is not None else RandomSampler(train_rows)
        self.batches = GlobalBatches(sampler, recipe.per_device_train_batch_size, processes)
        train_loader = DataLoader(train_rows, batch_sampler=self.batches, collate_fn=self.collate)
        if processes > 1:
            share_batch_norm(model)
        optimizer = _make_optimizer(model, recipe)
        self.model, self.optimizer, self.train_loader = accelerator.prepare(model, optimizer, train_loader)
        # After prepare: moving a model to its device puts new tensors in the place of its buffers.
        self.average = WeightAverage(self.unwrapped_model(), recipe.average_decay) if recipe.average_decay else None
        self.calibration_loader = self._calibration_loader(train_rows, list(sampler) if groups is not None else None)
        self.validation_loaders = {name: self._evaluation_loader(rows) for name, rows in validation_rows.items()}

        self.steps_per_epoch = math.ceil(len(self.train_loader) / recipe.gradient_accumulation_steps)
        self.total_steps = math.ceil(recipe.num_train_epochs * self.steps_per_epoch)
        if recipe.max_train_steps is not None:
            self.total_steps = min(self.total_steps, recipe.max_train_steps)
        self.evaluation_interval = max(1, math.ceil(self.steps_per_epoch / recipe.evaluations_per_epoch))
        self.scheduler = self._make_scheduler()
        self.progress = Progress()
        for state in (self.progress, self.scheduler, self.average):
            if state is not None:
                accelerator.register_for_checkpointing(state)
        self.checkpoints = output_dir / "checkpoints"

    def train(self) -> Progress:
        """Train to the end, or to a stop, and leave the best weights in the model.

        Raises:
            Interrupted: The process was asked to stop (Ctrl-C or SIGTERM); a checkpoint is written.
            ValueError: The folder holds checkpoints of another run.
        """
        self._resume()
        progress, accelerator = self.progress, self.accelerator
        bar = tqdm(
            total=self.total_steps,
            initial=progress.step,
            disable=not accelerator.is_main_process,
            desc="training",
            unit="step",
            smoothing=0.1,
        )
        with bar, _catch_signals() as stop_asked:
            while not self._is_over():
                # On the whole loader: with several processes set_epoch of a skipped one does not reach the sampler.
                self.train_loader.set_epoch(progress.epoch)
                loader = self.train_loader
                if progress.batch:
                    loader = accelerator.skip_first_batches(loader, progress.batch)
                started = time.perf_counter()
                for batches in _windows(loader, self.recipe.gradient_accumulation_steps):
                    asked = self._update(batches, stop_asked)
                    bar.update()
                    progress.seconds += time.perf_counter() - started
                    evaluated = progress.step % self.evaluation_interval == 0 or progress.step == self.total_steps
                    if evaluated:
                        self._evaluate_and_keep_best(bar)
                    if asked or self._checkpoint_is_due(evaluated):
                        self._save_checkpoint()
                    if asked:
                        raise Interrupted
                    if self._is_over():
                        break
                    started = time.perf_counter()
        self._load_best()
        return progress

    def evaluate(self, rows: Any) -> Metrics:
        """Metrics of the model as it is on a split."""
        return self._evaluate(self._evaluation_loader(rows))

    def unwrapped_model(self) -> PreTrainedModel:
        """The model itself, without what the accelerator put around it."""
        model: PreTrainedModel = self.accelerator.unwrap_model(self.model)
        return model

    def best_model(self) -> PreTrainedModel:
        """A copy of the model with the best weights so far, on the CPU."""
        model = self.unwrapped_model()
        weights = {name: tensor.to("cpu", copy=True) for name, tensor in model.state_dict().items()}
        with torch.device("meta"):  # nothing is drawn
            copied = type(model)(copy.deepcopy(model.config))
        copied.load_state_dict(weights | load_file(self.checkpoints / "best.safetensors"), assign=True)
        return copied

    def finish(self) -> None:
        """Delete the checkpoints: the run is complete."""
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            shutil.rmtree(self.checkpoints, ignore_errors=True)

    def _evaluation_loader(self, rows: Any) -> DataLoader[Any]:
        loader = DataLoader(rows, batch_size=self.recipe.per_device_eval_batch_size, collate_fn=self.collate)
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def _calibration_loader(self, train_rows: Any, order: list[int] | None) -> DataLoader[Any]:
        """This process's part of a fixed sample of full training batches."""
        processes = self.accelerator.num_processes
        if order is None:
            order = torch.randperm(len(train_rows), generator=torch.Generator().manual_seed(self.run.seed)).tolist()
        size = min(self.recipe.per_device_train_batch_size * processes, len(order))
        sample = order[: min(self.recipe.batch_norm_batches, len(order) // size) * size]
        batches = GlobalBatches(sample, -(-size // processes), processes)
        loader = DataLoader(train_rows, batch_sampler=batches, collate_fn=self.collate)
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def _make_scheduler(self) -> LRScheduler | ReduceLROnPlateau:
        recipe = self.recipe
        if recipe.schedule == "plateau":
            # torch halves after patience + 1 checks.
            return ReduceLROnPlateau(
                self.optimizer.optimizer,
                factor=0.5,
                patience=recipe.plateau_patience - 1,
                threshold=recipe.plateau_threshold,
                threshold_mode="abs",
            )
        name = "constant_with_warmup" if recipe.schedule == "constant" else recipe.schedule
        warmup = round(recipe.warmup_ratio * self.total_steps)
        scheduler: LRScheduler = get_scheduler(name, self.optimizer.optimizer, warmup, self.total_steps)
        return scheduler

    def _update(self, batches: Sequence[dict[str, Tensor]], stop_asked: Sequence[int]) -> bool:
        """Update the weights once; tell if any process was asked to stop.

        The loss is the mean over the rows of `batches` in all processes. accelerate's `accumulate` would weigh batches
        alike, also the smaller one at the end of an epoch, and divide by the full number of batches where an epoch ends
        with fewer.
        """
        progress, recipe, accelerator = self.progress, self.recipe, self.accelerator
        self.model.train()
        rows = sum(self.batches.rows_of(progress.batch + number) for number in range(len(batches)))
        words, total = 0, 0.0
        for number, batch in enumerate(batches, 1):
            # Noise is a function of the place in the run, not of what ran before: a resumed run draws the same.
            torch.manual_seed(_hash(self.run.seed, progress.epoch, progress.batch, accelerator.process_index))
            with nullcontext() if number == len(batches) else accelerator.no_sync(self.model):
                outputs = self.model(**batch)
                loss = outputs.loss
                if recipe.label_smoothing:
                    smoothed = F.cross_entropy(outputs.logits, batch["labels"], label_smoothing=recipe.label_smoothing)
                    loss = loss + smoothed - outputs.get("reconstruction_loss", loss)  # the loss may have other terms
                # Gradients are averaged over the processes.
                loss = loss * (len(batch["labels"]) * accelerator.num_processes / rows)
                accelerator.backward(loss)
            progress.batch += 1
            ids = batch["input_ids"]
            words += int(((ids != self.tokenizer.pad_token_id) & (ids != self.tokenizer.sep_token_id)).sum())
            total += loss.item()
        if recipe.max_grad_norm:
            accelerator.clip_grad_norm_(self.model.parameters(), recipe.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        if self.average is not None:
            self.average.update()

        stop = bool(stop_asked)
        if accelerator.num_processes > 1:
            sums = torch.tensor([total / accelerator.num_processes, words, stop], device=accelerator.device)
            total, words, stop = accelerator.reduce(sums, "sum").tolist()
        progress.step += 1
        progress.words += int(words)
        progress.loss_sum += total
        progress.loss_count += 1
        if progress.batch == len(self.train_loader):
            progress.epoch, progress.batch = progress.epoch + 1, 0
        return bool(stop)

    @torch.inference_mode()
    def _evaluate(self, loader: DataLoader[Any]) -> Metrics:
        self.model.eval()
        logits, labels = [], []
        for batch in loader:
            references = batch.pop("labels")
            gathered = self.accelerator.gather_for_metrics((self.model(**batch).logits.float(), references))
            logits.append(gathered[0].cpu())
            labels.append(gathered[1].cpu())
        all_logits, all_labels = torch.cat(logits), torch.cat(labels)
        metrics = self.compute_metrics(all_logits.argmax(-1).numpy(), all_labels.numpy())
        return {"loss": F.cross_entropy(all_logits, all_labels).item(), **metrics}

    def _evaluate_and_keep_best(self, bar: "tqdm[Any]") -> None:
        progress = self.progress
        loss = progress.loss_sum / progress.loss_count
        progress.loss_sum, progress.loss_count = 0.0, 0
        rate = self.optimizer.param_groups[0]["lr"]
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(loss)
        with self.average.applied() if self.average is not None else nullcontext():
            if self.recipe.batch_norm_batches:
                recalibrate_batch_norm(self.unwrapped_model(), self.calibration_loader)
            results = {name: self._evaluate(loader) for name, loader in self.validation_loaders.items()}
            chosen, name = next(iter(results.values())), self.recipe.metric_for_best_model
            value = metric_value(chosen, name)
            if progress.best is None or value > progress.best[name]:
                progress.best = {"step": progress.step, name: value, "loss": chosen["loss"]}
                progress.stale = 0
                self._save_best()
            else:
                progress.stale += 1
        record: Metrics = {"step": progress.step, "train_loss": loss, "learning_rate": rate}
        for split, metrics in results.items():
            record |= {f"{split}_{key}": value for key, value in metrics.items() if isinstance(value, float)}
        progress.history.append(record)
        self.accelerator.log(record, step=progress.step)
        bar.set_postfix({"loss": f"{loss:.3f}", name: f"{value:.4g}", "best": f"{progress.best[name]:.4g}"})

    def _is_over(self) -> bool:
        patience = self.recipe.early_stopping_patience
        return self.progress.step >= self.total_steps or 0 < patience <= self.progress.stale

    def _checkpoint_is_due(self, evaluated: bool) -> bool:
        steps = self.run.checkpointing_steps
        return evaluated if steps is None else self.progress.step % steps == 0

    def _trained_tensors(self) -> dict[str, Tensor]:
        model = self.unwrapped_model()
        tensors = {name: tensor.data for name, tensor in model.named_parameters() if tensor.requires_grad}
        return tensors | dict(model.named_buffers())

    def _save_best(self) -> None:
        if self.accelerator.is_main_process:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            beside = self.checkpoints / ".best.safetensors"
            save_file({name: tensor.contiguous() for name, tensor in self._trained_tensors().items()}, beside)
            beside.replace(self.checkpoints / "best.safetensors")
        self.accelerator.wait_for_everyone()

    def _load_best(self) -> None:
        saved = load_file(self.checkpoints / "best.safetensors")
        with torch.no_grad():
            for name, tensor in self._trained_tensors().items():
                tensor.copy_(saved[name])

    def _save_checkpoint(self) -> None:
        best, final = self.checkpoints / "best.safetensors", self.checkpoints / f"step-{self.progress.step}"
        beside = self.checkpoints / f".step-{self.progress.step}"
        self.accelerator.save_state(str(beside))
        self.accelerator.wait_for_everyone()  # each process writes a file of its own
        if self.accelerator.is_main_process:
            if best.is_file():
                shutil.copyfile(best, beside / best.name)
            (beside / "identity.json").write_text(json.dumps(self.identity), encoding="utf-8")
            beside.replace(final)
            for old in _checkpoints(self.checkpoints)[:-KEPT_CHECKPOINTS]:
                shutil.rmtree(old)
            if self.on_checkpoint is not None and best.is_file():
                self.on_checkpoint(self)
        self.accelerator.wait_for_everyone()

    def _resume(self) -> None:
        best, found = self.checkpoints / "best.safetensors", _checkpoints(self.checkpoints)
        if found:
            saved = json.loads((found[-1] / "identity.json").read_text(encoding="utf-8"))
            self._refuse_other_run(found[-1], saved)
            self.accelerator.load_state(str(found[-1]))
            logger.warning(f"Going on from {found[-1]}: step {self.progress.step} of {self.total_steps}.")
        if self.accelerator.is_main_process:
            # A killed run leaves files that were not finished, and best weights that are newer than its checkpoint.
            for path in self.checkpoints.glob(".*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            best.unlink(missing_ok=True)
            if self.progress.best is not None:
                shutil.copyfile(found[-1] / best.name, best)
        self.accelerator.wait_for_everyone()

    def _refuse_other_run(self, folder: Path, saved: Mapping[str, Any]) -> None:
        theirs, ours = _flat(saved), _flat(json.loads(json.dumps(self.identity)))
        for name in sorted(theirs.keys() | ours.keys()):
            if theirs.get(name) != ours.get(name):
                raise ValueError(
                    f"{folder} is a checkpoint of another run: its {name} is {theirs.get(name)}, not {ours.get(name)}. "
                    "Give the same options to go on with it, --overwrite_output_dir to start anew, or another "
                    "--output_dir."
                )


def metric_value(metrics: Metrics, name: str) -> float:
    """The metric of this name, as one that can choose the best weights.

    Raises:
        ValueError: There is none, or it is no single number of which more is better.
    """
    names = [key for key, value in metrics.items() if isinstance(value, float) and key != "loss"]
    if name not in names:
        raise ValueError(f"There is no metric '{name}' to choose the best weights by: give one of {', '.join(names)}.")
    return float(metrics[name])


def _make_optimizer(model: PreTrainedModel, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if recipe.optimizer == "adam":
        return torch.optim.Adam(trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)
    if recipe.optimizer == "adadelta":
        return torch.optim.Adadelta(trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, foreach=True)
    groups = [
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [parameter for parameter in trained if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)


def _checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(folder.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))


def _windows(batches: Iterable[dict[str, Tensor]], size: int) -> Iterator[list[dict[str, Tensor]]]:
    """`size` batches at a time, the last time perhaps fewer."""
    remaining = iter(batches)
    while window := list(itertools.islice(remaining, size)):
        yield window


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of nested dicts by names such as `recipe.learning_rate`."""
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        leaves |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return leaves


def _hash(*numbers: int) -> int:
    """A seed of 64 bits from numbers that are not negative."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


@contextmanager
def _catch_signals() -> Iterator[list[int]]:
    """A list that SIGINT and SIGTERM fill instead of ending the process; a second one ends it."""
    received: list[int] = []

    def remember(number: int, _frame: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    previous = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
