"""The training engine that all tasks share: the loop of updates, evaluations and checkpoints.

It needs examples that are tokenised already, such as `TokenizedExamples`. What is minimised and how it is scored is its
objective's.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import torch
from accelerate import Accelerator
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, RandomSampler
from tqdm.auto import tqdm
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from .accelerator import derived_seed
from .attention_sharpness import entropy_shares
from .batch_norm import recalibrate_batch_norm, share_batch_norm
from .checkpoints import Checkpoints
from .interruption import Interrupted, catch_signals
from .nonfinite import NonFiniteError, clip_gradient, is_finite_update, require_finite_weights, write_examples
from .objective import Metrics, Objective, metric_value
from .optimizer import make_optimizer, make_scheduler
from .progress import ENTROPY_KEY, Progress
from .recipe import RunArguments, TrainingRecipe
from .sharding import is_shared_out, share_out_again, whole, whole_copy
from .soft_attention import plan_soft_attention
from .training_batches import Batch, GlobalBatches, GroupedSampler, PaddingCollator, model_inputs
from .weight_average import WeightAverage

logger = logging.get_logger(__name__)

TRACKER = "tracker"  # the folder of its files, in that of the run
_ATTENTION_EXAMPLES = 1000  # whose attention is recorded


class Trainer:
    """Trains a model and keeps its best weights. Its files are in `output_dir/checkpoints`.

    The same call in the same folder resumes an interrupted one, to the same weights bit by bit on a CPU.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        train_examples: Any,
        validation_splits: Mapping[str, Any],
        objective: Objective,
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
            model: The model that the objective asks.
            tokenizer: Its padding and separator are no tokens of sentences.
            train_examples: Tokenised examples with `labels`.
            validation_splits: Splits to evaluate by name; the first one chooses the best weights.
            objective: The loss and the metrics.
            recipe: How to train.
            run: Where and how to run.
            output_dir: Folder of the run.
            identity: What must be equal for a checkpoint to be this run's, as JSON.
            groups: The group of each training example, where examples of a group shall stand in one batch. (examples,)
            on_checkpoint: Called on the main process when a checkpoint is written and there are best weights.

        Raises:
            ValueError: There are too few examples, or as in `plan_soft_attention`.
        """
        processes = accelerator.num_processes
        _require_examples(len(train_examples), processes)
        self.accelerator, self.objective, self.recipe, self.run = accelerator, objective, recipe, run
        self.tokenizer, self.on_checkpoint = tokenizer, on_checkpoint
        # torch's types promise it a list of examples; it gets what their `__getitems__` gives.
        self.collate = cast(Callable[[Any], BatchEncoding], PaddingCollator(tokenizer.pad_token_id))
        sampler = GroupedSampler(groups, run.seed) if groups is not None else RandomSampler(train_examples)
        self.batches = GlobalBatches(sampler, recipe.per_device_train_batch_size, processes)
        if processes > 1:
            share_batch_norm(model)
        self.model, self.optimizer = accelerator.prepare(model, make_optimizer(model, recipe))
        self.train_loader: Any = self._loader(train_examples, batch_sampler=self.batches)
        # After prepare: moving a model to its device puts new tensors in the place of its buffers.
        self.average = WeightAverage(self.unwrapped_model(), recipe.average_decay) if recipe.average_decay else None
        self.calibration_loader = self._calibration_loader(train_examples, None if groups is None else list(sampler))
        self.validation_loaders = {name: self._evaluation_loader(split) for name, split in validation_splits.items()}

        self.steps_per_epoch = math.ceil(len(self.train_loader) / recipe.gradient_accumulation_steps)
        self.total_steps = _total_steps(recipe, self.steps_per_epoch)
        self.soft_steps = plan_soft_attention(self.unwrapped_model(), recipe, self.total_steps, len(self.train_loader))
        self.evaluation_interval = max(1, math.ceil(self.steps_per_epoch / recipe.evaluations_per_epoch))
        self.scheduler = make_scheduler(self.optimizer.optimizer, recipe, self.total_steps)
        self.progress = Progress()
        for state in (self.progress, self.scheduler, self.average):
            if state is not None:
                accelerator.register_for_checkpointing(state)
        self.again = "the same command" + (" without --overwrite_output_dir" if run.overwrite_output_dir else "")
        self.checkpoints = Checkpoints(accelerator, output_dir / "checkpoints", identity, self.again)

    def train(self) -> Progress:
        """Train to the end, or to a stop, and leave the best weights in the model.

        Raises:
            Interrupted: The process was asked to stop; a checkpoint is written.
            ValueError: The folder holds checkpoints of another run.
            NonFiniteError: A loss, a gradient or weights are not finite.
        """
        resumed = self.checkpoints.resume()
        if self.accelerator.log_with:  # not before: a refused run would leave a file of its own beside the other's
            self.accelerator.init_trackers(TRACKER)
        if resumed is not None:
            logger.warning(f"Resuming from {resumed}: step {self.progress.step} of {self.total_steps}.")
        bar = tqdm(
            total=self.total_steps,
            initial=self.progress.step,
            disable=not self.accelerator.is_main_process,
            desc="training",
            unit="step",
            smoothing=0.1,
        )
        with bar, catch_signals() as signals:
            while not self._is_over():
                self._train_epoch(bar, signals)
            if self._any_process(bool(signals)):  # during the last evaluation
                self._save_checkpoint()
                raise Interrupted(f"{self.again.capitalize()} resumes here.")
        if not self._checkpoint_is_due(is_evaluation=True):  # else the last evaluation's is there
            self._save_checkpoint()
        if self.progress.best is None:
            raise NonFiniteError(
                f"No evaluation had a finite loss and {self.objective.metric_for_best_model}: there are no weights to "
                "keep. Start anew with --overwrite_output_dir and a lower --learning_rate."
            )
        self._take_best()
        return self.progress

    def predict(self, examples: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Predictions of the model as it is on a split, and its labels, as `Objective.metrics` takes them."""
        return self._predict(self._evaluation_loader(examples))

    def unwrapped_model(self) -> PreTrainedModel:
        """The model itself, without what the accelerator put around it."""
        model: PreTrainedModel = self.accelerator.unwrap_model(self.model, keep_torch_compile=False)
        return model

    def best_model(self) -> PreTrainedModel:
        """A copy of the model with the best weights so far, on the CPU."""
        copied = whole_copy(self.unwrapped_model(), self.checkpoints.load_best())
        self.objective.finish(copied)
        return copied

    def finish(self) -> None:
        """Delete the checkpoints: the run is complete."""
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            self.checkpoints.delete()

    def _loader(self, examples: Any, **batches: Any) -> DataLoader[Any]:
        """What brings batches to the device: to a GPU from pinned memory, so that nothing waits for the copy."""
        on_gpu = self.accelerator.device.type == "cuda"
        loader = DataLoader(examples, collate_fn=self.collate, pin_memory=on_gpu, **batches)
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def _evaluation_loader(self, examples: Any) -> DataLoader[Any]:
        return self._loader(examples, batch_size=self.recipe.per_device_eval_batch_size)

    def _calibration_loader(self, train_examples: Any, order: list[int] | None) -> DataLoader[Any]:
        """This process's part of a fixed sample of full training batches."""
        processes = self.accelerator.num_processes
        if order is None:
            order = torch.randperm(len(train_examples), generator=torch.Generator().manual_seed(self.run.seed)).tolist()
        size = min(self.recipe.per_device_train_batch_size * processes, len(order))
        sample = order[: min(self.recipe.batch_norm_batches, len(order) // size) * size]
        return self._loader(train_examples, batch_sampler=GlobalBatches(sample, -(-size // processes), processes))

    @torch.no_grad()
    def _take_best(self) -> None:
        """Give the model its best weights; one that FSDP has shared out becomes whole."""
        model, best = self.unwrapped_model(), self.checkpoints.load_best()
        if is_shared_out(model):
            self.model = whole_copy(model, best).to(self.accelerator.device)
        else:
            for name, tensor in self._trained_tensors().items():
                tensor.copy_(best[name])

    def _train_epoch(self, bar: "tqdm[Any]", signals: Sequence[int]) -> None:
        """Train on what is left of the current epoch."""
        progress = self.progress
        # On the whole loader: with several processes set_epoch of a skipped one does not reach the sampler.
        self.train_loader.set_epoch(progress.epoch)
        loader = self.train_loader
        if progress.batch:
            loader = self.accelerator.skip_first_batches(loader, progress.batch)
        started = time.perf_counter()
        for batches in _windows(loader, self.recipe.gradient_accumulation_steps):
            must_stop = self._update(batches, signals)
            bar.update()
            progress.seconds += time.perf_counter() - started
            is_evaluation = progress.step % self.evaluation_interval == 0 or progress.step == self.total_steps
            if is_evaluation:
                self._evaluate_and_keep_best(bar)
            if must_stop or self._checkpoint_is_due(is_evaluation):
                self._save_checkpoint()
            if must_stop:
                raise Interrupted(f"{self.again.capitalize()} resumes here.")
            if self._is_over():
                return
            started = time.perf_counter()

    def _update(self, batches: Sequence[Batch], signals: Sequence[int]) -> bool:
        """Update the weights once; tell if any process was asked to stop.

        The loss is the mean over the examples of `batches` in all processes. accelerate's `accumulate` would weigh
        batches alike, also the smaller one at the end of an epoch, and divide by the full number of batches where an
        epoch ends with fewer.
        """
        progress, recipe, accelerator = self.progress, self.recipe, self.accelerator
        self.model.train()
        examples = sum(self.batches.global_size(progress.batch + index) for index in range(len(batches)))
        losses: list[torch.Tensor] = []
        tokens = torch.zeros((), dtype=torch.int64, device=accelerator.device)
        # A forward pass on broken numbers reaches the statistics of batch normalisation.
        buffers = {name: buffer.clone() for name, buffer in self._buffers().items()} if self.run.skip_nonfinite else {}
        for number, batch in enumerate(batches, 1):
            losses.append(self._backward(batch, examples, synchronize=number == len(batches)))
            ids = batch["input_ids"]  # (batch, tokens)
            tokens += ((ids != self.tokenizer.pad_token_id) & (ids != self.tokenizer.sep_token_id)).sum()
            progress.batch += 1
        clipped = clip_gradient(accelerator, self.model, recipe.max_grad_norm)
        # Read together, as a GPU is waited for.
        *parts, norm, count = torch.stack([*losses, clipped, tokens]).tolist()
        loss, must_stop = sum(parts), bool(signals)
        if accelerator.num_processes > 1:
            sums = torch.tensor([loss / accelerator.num_processes, count, must_stop], device=accelerator.device)
            loss, count, must_stop = accelerator.reduce(sums, "sum").tolist()
        if is_finite_update(accelerator, loss, norm):
            self.optimizer.step()
            if self.average is not None:
                self.average.update()
        else:
            self._skip_or_stop(batches, buffers, loss, norm)
            if accelerator.scaler is not None and recipe.max_grad_norm:
                accelerator.scaler.update()  # before it clips again: it unscales a gradient once between two of these
        self.optimizer.zero_grad()
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        progress.count_update(loss, int(count), len(self.train_loader))
        return bool(must_stop)

    def _backward(self, batch: Batch, examples: int, synchronize: bool) -> torch.Tensor:
        """Add a batch's part of the gradient of an update with so many examples; return its part of the loss. ()"""
        progress, accelerator = self.progress, self.accelerator
        # Noise is a function of the batch's index in the run, not of what ran before: a resumed run draws the same.
        torch.manual_seed(derived_seed(self.run.seed, progress.epoch, progress.batch, accelerator.process_index))
        with nullcontext() if synchronize else accelerator.no_sync(self.model):
            loss = self.objective.loss(self.model, batch)
            # Gradients are averaged over the processes.
            loss = loss * (len(batch["labels"]) * accelerator.num_processes / examples)
            accelerator.backward(loss)
        part: torch.Tensor = loss.detach()
        return part

    def _skip_or_stop(
        self, batches: Sequence[Batch], buffers: Mapping[str, torch.Tensor], loss: float, norm: float
    ) -> None:
        """Leave out an update whose loss or gradient is not finite, where the run may; write its examples.

        Raises:
            NonFiniteError: It may not, or not so many.
        """
        step, allowed = self.progress.step + 1, self.run.skip_nonfinite
        found = f"Step {step}: the loss is {loss} and the norm of its gradient {norm}"
        path = self.checkpoints.folder / f"nonfinite-step-{step}.json"
        count = write_examples(path, self.accelerator, self.model, self.objective, self.tokenizer, batches)
        if len(self.progress.skipped) >= allowed:
            raise NonFiniteError(
                f"{found}; its {count} examples are in {path}. Fix them, give --skip_nonfinite N to skip up to N such "
                "updates and resume from the last checkpoint, or start anew with a lower --learning_rate."
            )
        self.progress.skipped.append(step)
        for name, buffer in self._buffers().items():
            buffer.copy_(buffers[name])
        told = f"update {len(self.progress.skipped)} of {allowed} that are skipped"
        logger.warning(f"{found}: {told}. See {path}, while the run lasts.")

    @torch.inference_mode()
    def _predict(self, loader: DataLoader[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        self.model.eval()
        predictions, labels = [], []
        for batch in loader:
            references = batch.pop("labels")
            gathered = self.accelerator.gather_for_metrics((self.objective.predictions(self.model, batch), references))
            predictions.append(gathered[0].cpu())
            labels.append(gathered[1].cpu())
        return torch.cat(predictions), torch.cat(labels)

    def _evaluate_and_keep_best(self, bar: "tqdm[Any]") -> None:
        progress, name = self.progress, self.objective.metric_for_best_model
        loss, rate = progress.take_mean_loss(), self.optimizer.param_groups[0]["lr"]
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(loss)
        with self.average.applied() if self.average is not None else nullcontext():
            if self.recipe.batch_norm_batches:
                recalibrate_batch_norm(self.unwrapped_model(), map(model_inputs, self.calibration_loader))
            results = {
                split: self.objective.metrics(*self._predict(loader))
                for split, loader in self.validation_loaders.items()
            }
            attention = self._attention_entropy() if self.run.record_attention else []
            share_out_again(self.unwrapped_model())
            chosen = next(iter(results.values()))
            value = metric_value(chosen, name)
            # While all tokens are chosen the model is another one than it will be.
            if progress.step > self.soft_steps and progress.count_evaluation(name, value, chosen["loss"]):
                require_finite_weights(self._trained_tensors(), progress.step)
                self.checkpoints.save_best(self._trained_tensors())
        record: Metrics = {"step": progress.step, "train_loss": loss, "learning_rate": rate}
        for split, metrics in results.items():
            record |= {f"{split}_{key}": value for key, value in metrics.items() if isinstance(value, float)}
        self.accelerator.log(record, step=progress.step)
        progress.history.append(record | ({ENTROPY_KEY: attention} if self.run.record_attention else {}))
        best = progress.best[name] if progress.best else math.nan
        bar.set_postfix({"loss": f"{loss:.3f}", name: f"{value:.4g}", "best": f"{best:.4g}"})

    def _attention_entropy(self) -> list[float]:
        """The share of the entropy of equal weights, by iteration, on the first examples of the first split."""
        examples: Any = next(iter(self.validation_loaders.values())).dataset
        size, count = self.recipe.per_device_eval_batch_size, min(len(examples), _ATTENTION_EXAMPLES)
        model = self.unwrapped_model()
        batches = (self.collate(examples[start : min(start + size, count)]) for start in range(0, count, size))
        inputs = ({name: tensor.to(model.device) for name, tensor in model_inputs(batch).items()} for batch in batches)
        return entropy_shares(model, inputs)

    def _save_checkpoint(self) -> None:
        require_finite_weights(self._trained_tensors(), self.progress.step)
        self.checkpoints.save(self.progress.step)
        if self.accelerator.is_main_process and self.on_checkpoint is not None and self.progress.best is not None:
            self.on_checkpoint(self)
        self.accelerator.wait_for_everyone()

    def _any_process(self, value: bool) -> bool:
        flags = torch.tensor([float(value)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(flags, "sum").item())

    def _is_over(self) -> bool:
        patience = self.recipe.early_stopping_patience
        return self.progress.step >= self.total_steps or 0 < patience <= self.progress.stale

    def _checkpoint_is_due(self, is_evaluation: bool) -> bool:
        steps = self.run.checkpointing_steps
        return is_evaluation if steps is None else self.progress.step % steps == 0

    def _trained_tensors(self) -> dict[str, torch.Tensor]:
        model = self.unwrapped_model()
        tensors = {name: whole(tensor.data) for name, tensor in model.named_parameters() if tensor.requires_grad}
        return tensors | self._buffers()

    def _buffers(self) -> dict[str, torch.Tensor]:
        return dict(self.unwrapped_model().named_buffers())


def _require_examples(count: int, processes: int) -> None:
    if count < max(2, processes):
        raise ValueError(
            "Training needs two examples or more for batch normalisation, and one for each process: got "
            f"{count} for {processes}."
        )


def _total_steps(recipe: TrainingRecipe, steps_per_epoch: int) -> int:
    if recipe.max_train_steps is not None:
        return recipe.max_train_steps
    return max(1, math.ceil(round(recipe.num_train_epochs * steps_per_epoch, 9)))  # 1.1 * 100 is a little above 110


def _windows(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """`size` batches at a time, the last time perhaps fewer."""
    remaining = iter(batches)
    while window := list(itertools.islice(remaining, size)):
        yield window
