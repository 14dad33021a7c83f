"""The training engine: what it trains, and that a run that was stopped ends like one that was not."""

import itertools
import math
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_runs
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from gpu_waits import gpu_waits
from safetensors.torch import load_file, save_file
from small_runs import accuracy, same_tensors, small_trainer, tokenized
from torch import nn

from modeling_dsa import DSAForNLI
from run_glue_style.training.accelerator import make_accelerator
from run_glue_style.training.batch_norm import recalibrate_batch_norm
from run_glue_style.training.engine import Trainer
from run_glue_style.training.interruption import Interrupted
from run_glue_style.training.nonfinite import NonFiniteError
from run_glue_style.training.objective import Metrics
from run_glue_style.training.recipe import RunArguments
from run_glue_style.training.tokenized_examples import TokenizedExamples

NO_NOISE: dict[str, Any] = {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0}
NO_TRAINING: dict[str, Any] = {"learning_rate": 1e-12, "schedule": "constant", "warmup_ratio": 0.0, "config": NO_NOISE}
# 100 examples in batches of 16 are 7 batches, the last of 4: 4 updates an epoch, the last of one batch.
COSINE: dict[str, Any] = {"gradient_accumulation_steps": 2, "average_decay": 0.9, "batch_norm_batches": 2}
PLATEAU: dict[str, Any] = {
    "gradient_accumulation_steps": 2,
    "schedule": "plateau",
    "optimizer": "adam",
    "plateau_patience": 1,
    "plateau_threshold": 0.5,
    "early_stopping_patience": 5,
}
BATCHES, UPDATES = 21, 12
SUPPORT = Path(__file__).parents[2] / "support"


class Order(TokenizedExamples):
    """The first hundred training examples, which remember in which order they were read."""

    def __init__(self) -> None:
        examples = tokenized("train", 100)
        super().__init__(examples.tokenized, examples.texts, examples.labels)
        self.read: list[int] = []

    def __getitems__(self, indices: Sequence[int]) -> TokenizedExamples:
        self.read += indices
        return super().__getitems__(indices)


class CrashError(Exception):
    pass


def at_batch(trainer: Trainer, number: int, action: Callable[[], None]) -> None:
    """Do something in the training batch of that number, counted from 1."""
    count = 0

    def hook(model: nn.Module, _inputs: object) -> None:
        nonlocal count
        count += model.training
        if model.training and count == number:
            action()

    trainer.unwrapped_model().register_forward_pre_hook(hook)


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def crash() -> None:
    raise CrashError


def final_state(trainer: Trainer) -> dict[str, Any]:
    """All that a run ends with, but for times."""
    progress = {key: value for key, value in vars(trainer.progress).items() if key != "seconds"}
    return {
        "weights": dict(trainer.unwrapped_model().state_dict()),
        "optimizer": trainer.optimizer.state_dict(),
        "scheduler": {key: value for key, value in trainer.scheduler.state_dict().items() if key != "lr_lambdas"},
        "average": trainer.average.state_dict() if trainer.average is not None else None,
        "progress": progress,
    }


@pytest.fixture
def terminal() -> Iterator[None]:
    """SIGHUP as a process has it that was not started by `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Final states of runs that nothing stopped."""
    done: dict[str, dict[str, Any]] = {}

    def run(recipe: dict[str, Any]) -> dict[str, Any]:
        key = str(recipe)
        if key not in done:
            trainer = small_trainer(tmp_path_factory.mktemp("whole"), **recipe)
            trainer.train()
            done[key] = final_state(trainer)
        return done[key]

    return run


# Batch 5 is in update 3, between two evaluations; 8 is the first of an epoch, 21 the last of all.
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("batch", "update"), [(5, 3), (8, 5), (21, UPDATES)])
def test_interrupted_run_ends_bit_for_bit_like_a_whole_one(
    tmp_path: Path, whole_runs: Callable[[dict[str, Any]], dict[str, Any]], batch: int, update: int
) -> None:
    whole = whole_runs(PLATEAU)
    assert whole["progress"]["step"] == UPDATES
    trainer = small_trainer(tmp_path, **PLATEAU)
    at_batch(trainer, batch, send({5: signal.SIGHUP, 8: signal.SIGTERM, BATCHES: signal.SIGUSR1}[batch]))
    with pytest.raises(Interrupted):
        trainer.train()
    assert trainer.progress.step == update
    torch.manual_seed(12345)  # a new process has another state of everything
    resumed = small_trainer(tmp_path, **PLATEAU)
    resumed.train()
    assert same_tensors(final_state(resumed), whole)


def test_signal_in_the_last_evaluation_stops_the_run_too(
    tmp_path: Path, whole_runs: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    evaluations = 0

    def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 6:
            send(signal.SIGTERM)()
        return accuracy(predictions, references)

    with pytest.raises(Interrupted):
        small_trainer(tmp_path, compute_metrics=compute, **COSINE).train()
    resumed = small_trainer(tmp_path, **COSINE)
    resumed.train()
    assert same_tensors(final_state(resumed), whole_runs(COSINE))


# Before the first checkpoint, and after it.
@pytest.mark.parametrize("batch", [2, 9])
def test_crashed_run_goes_on_from_its_last_checkpoint(
    tmp_path: Path, whole_runs: Callable[[dict[str, Any]], dict[str, Any]], batch: int
) -> None:
    trainer = small_trainer(tmp_path, run={"checkpointing_steps": 3}, **COSINE)
    at_batch(trainer, batch, crash)
    with pytest.raises(CrashError):
        trainer.train()
    resumed = small_trainer(tmp_path, run={"checkpointing_steps": 3}, **COSINE)
    resumed.train()
    assert same_tensors(final_state(resumed), whole_runs(COSINE))


def test_run_may_be_interrupted_many_times(
    tmp_path: Path, whole_runs: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    for stop in range(1, UPDATES + 1):
        trainer = small_trainer(tmp_path, **COSINE)
        at_batch(trainer, 1, send(signal.SIGTERM))
        with pytest.raises(Interrupted):
            trainer.train()
        assert trainer.progress.step == stop
    resumed = small_trainer(tmp_path, **COSINE)
    resumed.train()
    assert same_tensors(final_state(resumed), whole_runs(COSINE))


def test_resumed_run_takes_the_best_weights_of_its_checkpoint_and_clears_what_a_killed_one_left(
    tmp_path: Path, whole_runs: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    trainer = small_trainer(tmp_path, **COSINE)
    at_batch(trainer, BATCHES, send(signal.SIGTERM))
    with pytest.raises(Interrupted):
        trainer.train()
    checkpoints = tmp_path / "checkpoints"
    # A run that was killed after it found new best weights, and while it wrote a checkpoint.
    save_file({"unknown": torch.zeros(1)}, checkpoints / "best.safetensors")
    (checkpoints / ".best.safetensors").write_bytes(b"half")
    (checkpoints / ".step-99").mkdir()
    (checkpoints / ".step-99" / "model.safetensors").write_bytes(b"half")
    resumed = small_trainer(tmp_path, **COSINE)
    resumed.train()
    assert same_tensors(final_state(resumed), whole_runs(COSINE))
    assert not list(checkpoints.glob(".*"))


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def test_damaged_checkpoint_is_named_and_the_one_before_is_used(
    tmp_path: Path, whole_runs: Callable[[dict[str, Any]], dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    trainer = small_trainer(tmp_path, **COSINE)
    at_batch(trainer, 14, crash)
    with pytest.raises(CrashError):
        trainer.train()
    _, newest = sorted((tmp_path / "checkpoints").glob("step-*"))
    flip_bit(newest / "best.safetensors")  # which comes last into a checkpoint
    resumed = small_trainer(tmp_path, **COSINE)
    resumed.train()
    assert f"{newest} is damaged (best.safetensors has other contents" in caplog.text
    assert ": the one before it is used" in caplog.text
    assert same_tensors(final_state(resumed), whole_runs(COSINE))


def test_a_run_without_a_whole_checkpoint_is_not_begun_anew(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, num_train_epochs=1)
    trainer.train()
    for path in (tmp_path / "checkpoints").glob("step-*"):
        flip_bit(path / "optimizer.bin")
    with pytest.raises(ValueError, match=r"All checkpoints in .* are damaged: give --overwrite_output_dir"):
        small_trainer(tmp_path, num_train_epochs=1).train()


@pytest.mark.parametrize("damage", [flip_bit, Path.unlink])
def test_damaged_best_weights_are_noticed_and_come_back_from_the_checkpoint(
    tmp_path: Path, whole_runs: Callable[[dict[str, Any]], dict[str, Any]], damage: Callable[[Path], None]
) -> None:
    trainer = small_trainer(tmp_path, **COSINE)
    trainer.train()
    damage(tmp_path / "checkpoints" / "best.safetensors")
    with pytest.raises(ValueError, match=r"best\.safetensors is damaged: the same command resumes"):
        trainer.checkpoints.load_best()
    resumed = small_trainer(tmp_path, **COSINE)
    resumed.train()
    assert same_tensors(final_state(resumed), whole_runs(COSINE))


def test_checkpoint_that_cannot_be_written_is_one_sentence_and_the_one_before_stays(tmp_path: Path) -> None:
    """A limit on the size of files fails as a full disk does: torch raises a RuntimeError for both."""
    trainer = small_trainer(tmp_path, run={"checkpointing_steps": 2})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    at_batch(trainer, 4, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, limits[1])))
    try:
        with pytest.raises(OSError, match=r"The checkpoint of step 4 cannot be written to .*: free some space there"):
            trainer.train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in (tmp_path / "checkpoints").glob("step-*")] == ["step-2"]


def test_two_checkpoints_are_kept_and_none_after_the_end(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def look() -> None:
        seen.append(sorted(path.name for path in (tmp_path / "checkpoints").glob("*step-*")))

    trainer = small_trainer(tmp_path, num_train_epochs=1, run={"checkpointing_steps": 1})
    for batch in range(1, 8):
        at_batch(trainer, batch, look)
    trainer.train()
    assert seen[:4] == [[], ["step-1"], ["step-1", "step-2"], ["step-2", "step-3"]]
    assert seen[-1] == ["step-5", "step-6"]
    trainer.finish()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"learning_rate": 1e-4}, "recipe.learning_rate is 0.005, not 0.0001"),
        ({"run": {"seed": 3}}, "seed is 0, not 3"),
    ],
)
def test_other_options_are_refused_with_the_field_that_differs(
    tmp_path: Path, changes: dict[str, Any], field: str
) -> None:
    trainer = small_trainer(tmp_path)
    at_batch(trainer, 1, send(signal.SIGINT))
    with pytest.raises(Interrupted):
        trainer.train()
    with pytest.raises(ValueError, match=f"{field}.*--overwrite_output_dir"):
        small_trainer(tmp_path, **changes).train()
    assert (tmp_path / "checkpoints" / "step-1").is_dir()


def test_a_run_that_is_killed_after_its_last_update_goes_on_from_there(tmp_path: Path) -> None:
    first = small_trainer(tmp_path, run={"checkpointing_steps": 1000})
    first.train()
    again = small_trainer(tmp_path, run={"checkpointing_steps": 1000})
    at_batch(again, 1, crash)
    again.train()
    assert same_tensors(dict(again.unwrapped_model().state_dict()), dict(first.unwrapped_model().state_dict()))


def test_a_launcher_that_compiles_gets_the_model_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_DYNAMO_BACKEND", "EAGER")
    trainer = small_trainer(tmp_path, num_train_epochs=1)
    trainer.train()
    assert type(trainer.unwrapped_model()) is DSAForNLI
    assert load_file(trainer.checkpoints.best).keys() <= trainer.unwrapped_model().state_dict().keys()


def test_signals_do_what_they_did_before_once_training_is_over(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    trainer = small_trainer(tmp_path)
    at_batch(trainer, 1, send(signal.SIGINT))
    with pytest.raises(Interrupted):
        trainer.train()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    at_batch(trainer, 1, lambda: [send(signal.SIGINT)(), send(signal.SIGINT)()])  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        trainer.train()


def test_accumulated_batches_update_like_one_large_batch(tmp_path: Path) -> None:
    """The mean over all examples of an update, also of the last one of an epoch: 8 + 2 examples against 10.

    In float64 the two differ by rounding only, and Adam's division by the gradient's size carries that to the weights.
    """
    examples = tokenized("train", 90)
    config = NO_NOISE | {"classifier_hidden_sizes": []}  # no batch normalisation, which sees each batch alone
    trainers = [
        small_trainer(
            tmp_path / str(count),
            train_examples=examples,
            dtype=torch.float64,
            config=config,
            per_device_train_batch_size=16 // count,
            gradient_accumulation_steps=count,
            num_train_epochs=2,
        )
        for count in (1, 2)
    ]
    weights, losses = [], []
    for trainer in trainers:
        trainer.train()
        weights.append(trainer.unwrapped_model().state_dict())
        losses.append([record["train_loss"] for record in trainer.progress.history])
    assert trainers[0].progress.step == trainers[1].progress.step == 12
    for name in weights[0]:
        torch.testing.assert_close(weights[0][name], weights[1][name], rtol=0, atol=1e-8)
    assert losses[0] == pytest.approx(losses[1], abs=1e-9)


def test_an_update_waits_for_a_gpu_once_beside_its_batches(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, gradient_accumulation_steps=2, max_train_steps=2)
    seen: list[Counter[str]] = []
    with gpu_waits() as counts:
        for batch in (1, 3):  # the first of an update, and of the next
            at_batch(trainer, batch, lambda: seen.append(counts.copy()))
        trainer.train()
    of_batch = {"nonzero": 2, "index": 1}
    assert seen[1] - seen[0] == {name: 2 * count for name, count in of_batch.items()} | {"tolist": 1}


def test_word_table_is_neither_optimised_nor_changed(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, optimizer="adam", weight_decay=0.1, average_decay=0.5, num_train_epochs=1)
    model = trainer.unwrapped_model()
    table = model.get_parameter("dsa.embed_tokens.weight")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimized = [parameter for group in trainer.optimizer.param_groups for parameter in group["params"]]
    assert all(parameter is not table for parameter in optimized)
    assert {id(parameter) for parameter in optimized} == {id(p) for p in model.parameters() if p is not table}
    trainer.train()
    assert torch.equal(table, before["dsa.embed_tokens.weight"])
    assert not torch.equal(model.state_dict()["classifier.1.weight"], before["classifier.1.weight"])


def test_plateau_keeps_the_rate_while_the_loss_falls_enough(tmp_path: Path) -> None:
    trainer = small_trainer(
        tmp_path, schedule="plateau", plateau_patience=1, plateau_threshold=0.0, num_train_epochs=4, config=NO_NOISE,
        evaluations_per_epoch=1,
    )  # fmt: skip
    history = trainer.train().history
    losses = [record["train_loss"] for record in history]
    assert losses == sorted(losses, reverse=True)
    assert {record["learning_rate"] for record in history} == {5e-3}


def test_early_stopping_counts_evaluations_without_a_new_best_also_over_an_interrupt(tmp_path: Path) -> None:
    settings = NO_TRAINING | {"early_stopping_patience": 2, "evaluations_per_epoch": 7, "schedule": "constant"}

    def scripted() -> Callable[[np.ndarray, np.ndarray], Metrics]:
        return lambda predictions, references: {"accuracy": 0.5}

    whole = small_trainer(tmp_path / "whole", compute_metrics=scripted(), **settings)
    assert whole.train().step == 3
    stopped = small_trainer(tmp_path / "stopped", compute_metrics=scripted(), **settings)
    at_batch(stopped, 2, send(signal.SIGTERM))
    with pytest.raises(Interrupted):
        stopped.train()
    assert stopped.progress.stale == 1
    resumed = small_trainer(tmp_path / "stopped", compute_metrics=scripted(), **settings)
    assert resumed.train().step == 3
    # A run that is over trains no further when it is started again.
    again = small_trainer(tmp_path / "stopped", compute_metrics=scripted(), **settings)
    assert again.train().step == 3


def test_chosen_metric_chooses_the_best_weights(tmp_path: Path) -> None:
    scores = iter([0.2, 0.1, 0.7, 0.6])

    def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
        value = next(scores)
        return {"accuracy": 1 - value, "macro_f1": value, "per_class": {}}

    trainer = small_trainer(tmp_path, compute_metrics=compute, metric_for_best_model="macro_f1", num_train_epochs=2)
    progress = trainer.train()
    assert progress.best is not None
    assert (progress.best["macro_f1"], progress.best["step"]) == (0.7, progress.history[2]["step"])
    assert [record["validation_macro_f1"] for record in progress.history] == [0.2, 0.1, 0.7, 0.6]
    assert progress.stale == 1


def test_batch_norm_statistics_are_those_without_dropout(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, batch_norm_batches=3, num_train_epochs=1)
    trainer.train()
    model = trainer.unwrapped_model()
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    recalibrate_batch_norm(model, trainer.calibration_loader)  # no dropout: the same batches give the same statistics
    assert kept.keys() == dict(model.named_buffers()).keys()
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(buffer, kept[name], msg=name)
    assert len(trainer.calibration_loader) == 3


@pytest.mark.parametrize("average_decay", [0.0, 0.9])
def test_best_weights_are_kept_and_not_the_last(tmp_path: Path, average_decay: float) -> None:
    accuracies = iter([0.3, 0.9, 0.9, 0.1, 0.2, 0.4])
    seen: list[dict[str, torch.Tensor]] = []

    def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
        seen.append({name: tensor.clone() for name, tensor in trainer.unwrapped_model().state_dict().items()})
        return {"accuracy": next(accuracies)}

    trainer = small_trainer(tmp_path, compute_metrics=compute, average_decay=average_decay)
    progress = trainer.train()
    assert len(seen) == 6
    assert progress.best is not None
    assert progress.best["accuracy"] == 0.9
    assert progress.best["step"] == progress.history[1]["step"]
    assert same_tensors(dict(trainer.unwrapped_model().state_dict()), seen[1])
    assert not same_tensors(seen[1], seen[5])


def test_average_and_not_the_live_weights_are_evaluated(tmp_path: Path) -> None:
    evaluated: list[torch.Tensor] = []

    def compute(predictions: np.ndarray, references: np.ndarray) -> Metrics:
        evaluated.append(trainer.unwrapped_model().state_dict()["classifier.1.weight"].clone())
        return accuracy(predictions, references)

    trainer = small_trainer(tmp_path, compute_metrics=compute, average_decay=0.99, num_train_epochs=1)
    trained = trainer.unwrapped_model().get_parameter("classifier.1.weight")
    live = [trained.detach().clone()]
    for batch in range(2, 8):
        at_batch(trainer, batch, lambda: live.append(trained.detach().clone()))
    trainer.train()
    expected = live[0]
    for update, weights in enumerate(live[1:5]):  # the first of two evaluations comes after update 4 of 7
        decay = (1 + update) / (10 + update)
        expected = decay * expected + (1 - decay) * weights
    torch.testing.assert_close(evaluated[0], expected)
    assert not torch.allclose(evaluated[0], live[4])


@pytest.mark.parametrize(("times", "steps"), [(1, [7, 14]), (2, [4, 8, 12, 14]), (3, [3, 6, 9, 12, 14])])
def test_evaluation_comes_several_times_an_epoch_and_at_the_end(tmp_path: Path, times: int, steps: list[int]) -> None:
    trainer = small_trainer(tmp_path, num_train_epochs=2, evaluations_per_epoch=times)
    assert [record["step"] for record in trainer.train().history] == steps


@pytest.mark.parametrize(
    ("epochs", "most", "steps"), [(1, 3, 3), (3, 9, 9), (1, 100, 100), (0.5, None, 4), (1.5, None, 11)]
)
def test_number_of_updates(tmp_path: Path, epochs: float, most: int | None, steps: int) -> None:
    assert small_trainer(tmp_path, num_train_epochs=epochs, max_train_steps=most).total_steps == steps


def test_every_example_is_read_once_an_epoch_in_an_order_of_seed_and_epoch(tmp_path: Path) -> None:
    orders: dict[int, list[list[int]]] = {}
    for seed in (0, 1):
        examples = Order()
        small_trainer(tmp_path / str(seed), train_examples=examples, run={"seed": seed}, num_train_epochs=2).train()
        orders[seed] = [examples.read[:100], examples.read[100:]]
    epochs = [*orders[0], *orders[1]]
    assert all(sorted(order) == list(range(100)) for order in epochs)
    assert len({tuple(order) for order in epochs}) == 4


def test_examples_of_a_group_are_read_one_after_another_in_another_order_each_epoch(tmp_path: Path) -> None:
    groups = [example % 9 for example in range(100)]
    examples = Order()
    small_trainer(tmp_path, train_examples=examples, groups=groups, num_train_epochs=2).train()
    epochs = [examples.read[:100], examples.read[100:]]
    for order in epochs:
        assert sorted(order) == list(range(100))
        assert len([group for group, _ in itertools.groupby(groups[example] for example in order)]) == 9
    assert epochs[0] != epochs[1]


def test_calibration_reads_whole_groups_too(tmp_path: Path) -> None:
    groups = [example % 25 for example in range(100)]  # four examples each, and 16 in a batch
    examples = Order()
    trainer = small_trainer(tmp_path, train_examples=examples, groups=groups, batch_norm_batches=2)
    assert len(list(trainer.calibration_loader)) == 2
    assert len({groups[example] for example in examples.read}) == 8


def test_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    states = []
    for number, seed in enumerate((7, 7, 2**40)):
        torch.manual_seed(number)  # what ran before does not matter
        trainer = small_trainer(tmp_path / str(number), run={"seed": seed}, num_train_epochs=1)
        trainer.train()
        states.append(dict(trainer.unwrapped_model().state_dict()))
    assert same_tensors(states[0], states[1])
    assert not same_tensors(states[0], states[2])


def test_metrics_are_those_of_all_examples(tmp_path: Path) -> None:
    examples = tokenized("validation", 45)
    trainer = small_trainer(tmp_path, per_device_eval_batch_size=16, num_train_epochs=1)
    trainer.train()
    metrics = trainer.objective.metrics(*trainer.predict(examples))
    batch = trainer.collate(examples)
    with torch.no_grad():
        logits = trainer.unwrapped_model()(**batch).logits  # in eval mode since the evaluation
    assert metrics["accuracy"] == (logits.argmax(-1) == batch["labels"]).sum().item() / 45
    assert metrics["loss"] == pytest.approx(F.cross_entropy(logits, batch["labels"]).item(), abs=1e-6)


def test_bf16_trains_weights_of_float32(tmp_path: Path) -> None:
    losses = {}
    for precision in ("no", "bf16"):
        run = {"mixed_precision": precision}
        trainer = small_trainer(tmp_path / precision, run=run, num_train_epochs=1, config=NO_NOISE)
        losses[precision] = [record["train_loss"] for record in trainer.train().history]
        assert {parameter.dtype for parameter in trainer.unwrapped_model().parameters()} == {torch.float32}
    assert losses["no"] != losses["bf16"]
    assert losses["no"] == pytest.approx(losses["bf16"], rel=0.05)  # a bf16 number has 8 bits: about 0.4 %


def test_one_example_that_is_left_over_is_not_a_batch(tmp_path: Path) -> None:
    assert small_trainer(tmp_path, train_examples=tokenized("train", 33), num_train_epochs=2).train().step == 4


def test_too_few_examples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two examples or more"):
        small_trainer(tmp_path, train_examples=tokenized("train", 1))


def test_progress_bar_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_trainer(tmp_path, num_train_epochs=1).train()
    lines = capsys.readouterr().err
    assert "training" in lines
    assert "7/7" in lines


def test_processes_that_do_not_know_each_other_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_trainer(tmp_path)  # leaves the state of one process
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"started 2 processes, but accelerate sees 1.*give the script --cpu"):
        make_accelerator(RunArguments(report_to="none"), tmp_path)


def test_options_that_do_not_fit_machine_or_launcher_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="fp16 needs a GPU"):
        small_trainer(tmp_path, run={"mixed_precision": "fp16"})
    monkeypatch.setattr("run_glue_style.training.accelerator._is_installed", lambda package: False)
    with pytest.raises(ValueError, match="needs the package wandb, which is not installed"):
        small_trainer(tmp_path, run={"report_to": "wandb"})
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4")
    with pytest.raises(ValueError, match="not to the launcher"):
        small_trainer(tmp_path)


@pytest.mark.slow
def test_two_processes_train_one_model_and_resume_it_bit_for_bit(tmp_path: Path) -> None:
    """Also with groups, and where only one process is asked to stop, in the middle of an epoch."""

    script = str(SUPPORT / "train_in_processes.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", script]
    path = os.pathsep.join([str(SUPPORT.parents[1]), str(SUPPORT)])
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "PYTHONPATH": path}
    done = subprocess.run([*command, str(tmp_path)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = (torch.load(tmp_path / rank, weights_only=False) for rank in ("0", "1"))

    whole = first["whole"]
    assert whole["processes"] == 2
    assert same_tensors(whole["weights"], second["whole"]["weights"])
    assert whole["history"] == second["whole"]["history"]
    assert whole["tokens"] == second["whole"]["tokens"]
    assert whole["counts"] == {50}  # each example of the validation split once, though 2 x 16 does not divide 50
    assert whole["table"]
    assert whole["frozen"]
    assert not whole["stopped"]

    assert all(process["stopped"]["stopped"] for process in (first, second))
    resumed = first["resumed"]
    assert resumed["resumed"]
    assert same_tensors(resumed["weights"], whole["weights"])
    assert resumed["history"] == whole["history"]
    assert same_tensors(second["resumed"]["weights"], whole["weights"])


def spoil_batch(trainer: Trainer, *numbers: int) -> None:
    """Give training batches of these numbers, counted from 1, word vectors that are not finite."""
    table = trainer.unwrapped_model().get_input_embeddings()
    count = 0

    def hook(_layer: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += trainer.unwrapped_model().training
        spoiled = trainer.unwrapped_model().training and count in numbers
        return output * torch.nan if spoiled else output

    table.register_forward_hook(hook)


def test_update_that_is_not_finite_is_skipped_and_changes_nothing(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, run={"skip_nonfinite": 2}, num_train_epochs=1)
    spoil_batch(trainer, 3, 4)
    before: dict[str, torch.Tensor] = {}

    def remember() -> None:
        before.update({name: tensor.clone() for name, tensor in trainer.unwrapped_model().state_dict().items()})

    def compare() -> None:
        assert same_tensors(dict(trainer.unwrapped_model().state_dict()), before)
        before["compared"] = torch.ones(1)

    at_batch(trainer, 3, remember)
    at_batch(trainer, 5, compare)
    progress = trainer.train()
    assert "compared" in before
    assert progress.skipped == [3, 4]
    assert progress.step == 7
    assert all(np.isfinite(record["train_loss"]) for record in progress.history)
    assert (tmp_path / "checkpoints" / "nonfinite-step-3.json").is_file()


def test_one_more_update_that_is_not_finite_stops_the_run_which_skips_more_when_it_is_told_to(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, run={"skip_nonfinite": 1, "checkpointing_steps": 1})
    spoil_batch(trainer, 3, 5)
    with pytest.raises(NonFiniteError, match=r"Step 5: the loss is nan.* its 16 examples are in .*nonfinite-step-5"):
        trainer.train()
    for allowed in (0, 1):
        stricter = small_trainer(tmp_path, run={"skip_nonfinite": allowed, "checkpointing_steps": 1})
        spoil_batch(stricter, 1)  # step 5 again
        with pytest.raises(NonFiniteError, match="Step 5: the loss is nan"):
            stricter.train()
    resumed = small_trainer(tmp_path, run={"skip_nonfinite": 2, "checkpointing_steps": 1})
    spoil_batch(resumed, 1)
    assert resumed.train().skipped == [3, 5]


@pytest.mark.parametrize("max_grad_norm", [5.0, 0.0])
def test_a_run_with_scaled_gradients_goes_on_behind_an_update_that_is_skipped(
    tmp_path: Path, max_grad_norm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_scaler(run: RunArguments, folder: Path) -> Accelerator:
        accelerator = make_accelerator(run, folder)
        accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=4.0)  # as for fp16, which takes a GPU
        return accelerator

    monkeypatch.setattr(small_runs, "make_accelerator", with_scaler)
    trainer = small_trainer(tmp_path, run={"skip_nonfinite": 1}, num_train_epochs=1, max_grad_norm=max_grad_norm)
    trainer.accelerator.native_amp, trainer.accelerator.state._mixed_precision = True, "fp16"
    spoil_batch(trainer, 3)
    progress = trainer.train()
    assert (progress.step, progress.skipped) == (7, [3])


def test_weights_that_are_not_finite_are_not_kept(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, run={"checkpointing_steps": 2})

    def spoil() -> None:
        with torch.no_grad():
            trainer.optimizer.param_groups[0]["lr"] = math.inf

    at_batch(trainer, 4, spoil)
    with pytest.raises(NonFiniteError, match=r"Step 4: the weights .* are not finite"):
        trainer.train()
    assert [path.name for path in (tmp_path / "checkpoints").glob("step-*")] == ["step-2"]
