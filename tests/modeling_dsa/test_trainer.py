"""transformers' Trainer with the heads of this package, as with those of any transformers model.

Functions that take text alone run in fresh processes, as what a client of the loopback Hub does.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from loopback_hub import LoopbackHub
from small_models import ENCODER_CASES, POOLING_CASES, small_config
from small_runs import SMALL_SIZES, Example, pairs, same_tensors, small_tokenizer
from torch import Tensor
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    EvalPrediction,
    Trainer,
    TrainingArguments,
)
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils import logging

from modeling_dsa import DSAForNLI, DSAForSequenceClassification
from modeling_dsa.repository_dsa import write_repository_files

TOKEN = "hf_writes"
SYSTEMS: dict[str, dict[str, Any]] = {
    "pairs": {"sentences_per_example": 2},
    "sentences": {"sentences_per_example": 1},
    "pairs, bilstm": {"sentences_per_example": 2, **ENCODER_CASES["bilstm"]},
    "pairs, structured": {"sentences_per_example": 2, **POOLING_CASES["structured"]},
    "pairs, variational": {"sentences_per_example": 2, "pooling": "variational", "kl_warmup_steps": 10},
}
NO_DROPOUT = {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0}


def quickly(*names: str) -> pytest.MarkDecorator:
    """The other systems are slow."""
    params = [
        pytest.param(changes, id=name, marks=() if name in names else pytest.mark.slow)
        for name, changes in SYSTEMS.items()
    ]
    return pytest.mark.parametrize("changes", params)


@pytest.fixture(scope="module", autouse=True)
def _short_collections() -> Iterator[None]:
    """A Trainer collects garbage again and again, each time through all that pytest has imported."""
    gc.freeze()
    yield
    gc.unfreeze()


def rows_of(split: str, count: int, sentences_per_example: int) -> list[Example]:
    """Pairs, or premises under the labels of their pairs."""
    chosen = pairs(split)[:count]
    columns = ("premise", "hypothesis")[:sentences_per_example]
    batch = small_tokenizer()(*([row[column] for row in chosen] for column in columns))
    return [{**{key: batch[key][index] for key in batch}, "labels": row["label"]} for index, row in enumerate(chosen)]


def model_of(changes: dict[str, Any]) -> DSAForSequenceClassification:
    """The same weights every time."""
    kind = DSAForNLI if changes["sentences_per_example"] == 2 else DSAForSequenceClassification
    torch.manual_seed(0)
    return kind(small_config(vocab_size=len(small_tokenizer()), embedding_size=16, **(SMALL_SIZES | changes)))


def share_of_hits(outputs: EvalPrediction) -> dict[str, float]:
    assert isinstance(outputs.predictions, np.ndarray)  # and no tuple with something beside the logits
    return {"accuracy": float((outputs.predictions.argmax(-1) == outputs.label_ids).mean())}


def trainer_of(changes: dict[str, Any], folder: Path, **arguments: Any) -> Any:  # a Trainer may lack all that this has
    """A `Trainer` of 7 batches an epoch."""
    settings: dict[str, Any] = {
        "per_device_train_batch_size": 16,
        "num_train_epochs": 2,
        "learning_rate": 5e-3,
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "logging_steps": 1,
        "seed": 1,
    }
    tokenizer = small_tokenizer()
    return Trainer(
        model_of(changes),
        TrainingArguments(output_dir=str(folder), **(settings | arguments)),
        train_dataset=rows_of("train", 100, changes["sentences_per_example"]),
        eval_dataset=rows_of("validation", 50, changes["sentences_per_example"]),
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
        compute_metrics=share_of_hits,
    )


def logits_of(model: torch.nn.Module, rows: list[Example]) -> Tensor:
    """Logits of rows that are read one by one."""
    with torch.no_grad():
        names = [name for name in rows[0] if name != "labels"]
        return torch.cat([model.eval()(**{name: torch.tensor([row[name]]) for name in names}).logits for row in rows])


def losses_of(trainer: Any) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_a_last_batch_of_one_example_is_trained(tmp_path: Path) -> None:
    """It has no spread to normalise by."""
    trainer = trainer_of(SYSTEMS["pairs"], tmp_path, per_device_train_batch_size=11, num_train_epochs=1)
    trainer.train()
    assert trainer.state.global_step == 10
    assert np.isfinite(losses_of(trainer)).all()


@pytest.mark.parametrize("pooling", ["structured", "variational", "reinforced"])
def test_a_loss_without_the_models_own_terms_is_told(
    pooling: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes = {"sentences_per_example": 2, "encoder": "none", "pooling": pooling, "attention_penalty": 0.3}
    trainer = trainer_of(changes, tmp_path, max_steps=1, label_smoothing_factor=0.1)
    logging.get_logger().warning_once.cache_clear()  # type: ignore[attr-defined]  # it is said once a process
    trainer.train()
    assert f"The loss of pooling '{pooling}' has terms of its own" in caplog.text


def test_noise_that_cannot_be_added_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neftune_noise_alpha takes word vectors with padding"):
        trainer_of(SYSTEMS["pairs"], tmp_path, max_steps=1, neftune_noise_alpha=5).train()


# Train, evaluate, predict


@quickly("pairs")
def test_training_evaluating_and_predicting(changes: dict[str, Any], tmp_path: Path) -> None:
    trainer = trainer_of(changes | NO_DROPOUT, tmp_path, num_train_epochs=10)
    model = trainer.model
    table = model.get_input_embeddings().weight.clone()
    before = trainer.evaluate(trainer.train_dataset)
    trainer.train()
    after = trainer.evaluate(trainer.train_dataset)
    assert after["eval_loss"] < 0.8 * before["eval_loss"]
    assert after["eval_accuracy"] > max(0.6, before["eval_accuracy"])
    assert torch.equal(model.get_input_embeddings().weight, table)

    rows = trainer.eval_dataset
    labels = torch.tensor([row["labels"] for row in rows])
    expected = logits_of(model, rows)
    found = trainer.predict(rows)
    assert found.predictions.shape == (50, 3)
    torch.testing.assert_close(torch.from_numpy(found.predictions), expected, rtol=1e-4, atol=1e-5)
    assert found.label_ids.tolist() == labels.tolist()
    assert found.metrics["test_accuracy"] == pytest.approx((expected.argmax(1) == labels).float().mean().item())
    if model.config.pooling != "structured":  # whose loss has its penalty, too
        assert found.metrics["test_loss"] == pytest.approx(F.cross_entropy(expected, labels).item(), rel=1e-4)
    unlabelled = [{name: value for name, value in row.items() if name != "labels"} for row in rows]
    assert np.array_equal(trainer.predict(unlabelled).predictions, found.predictions)


@quickly("pairs", "pairs, variational")  # the others have nothing of their own to keep
def test_a_resumed_run_is_the_uninterrupted_one(changes: dict[str, Any], tmp_path: Path) -> None:
    """Bit for bit: weights, running statistics, the step of the KL weight, the losses on the way."""
    whole = trainer_of(changes, tmp_path / "run", save_strategy="steps", save_steps=5)
    whole.train()
    resumed = trainer_of(changes, tmp_path / "run", save_strategy="steps", save_steps=5)
    with torch.no_grad():
        for weight in resumed.model.parameters():
            weight.add_(1.0)  # what is not loaded will show
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-5"))
    assert resumed.state.global_step == whole.state.global_step == 14
    assert same_tensors(resumed.model.state_dict(), whole.model.state_dict())
    assert losses_of(resumed) == losses_of(whole)
    assert not resumed.model.get_input_embeddings().weight.requires_grad


def test_the_best_model_is_loaded_and_few_checkpoints_stay(tmp_path: Path) -> None:
    trainer = trainer_of(
        SYSTEMS["pairs"],
        tmp_path,
        num_train_epochs=4,
        learning_rate=0.1,  # so that the last is not the best
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="loss",
        greater_is_better=False,
        save_total_limit=2,
    )
    trainer.train()
    losses = {entry["step"]: entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry}
    best = min(losses, key=lambda step: losses[step])
    assert len(losses) == 4
    assert best != max(losses)
    checkpoints = {path.name for path in tmp_path.iterdir()}
    assert checkpoints == {f"checkpoint-{best}", f"checkpoint-{max(losses)}"}
    assert trainer.state.best_model_checkpoint == str(tmp_path / f"checkpoint-{best}")
    assert trainer.evaluate()["eval_loss"] == pytest.approx(losses[best])
    assert not trainer.model.get_input_embeddings().weight.requires_grad

    write_repository_files(tmp_path)
    code = [path for path in tmp_path.iterdir() if path.is_file()]
    for name in checkpoints:
        for path in code:
            assert (tmp_path / name / path.name).read_bytes() == path.read_bytes()
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / f"checkpoint-{best}")
    assert type(loaded) is DSAForNLI
    assert same_tensors(loaded.state_dict(), trainer.model.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / f"checkpoint-{best}")
    assert tokenizer("A man.", "A boy.").input_ids == small_tokenizer()("A man.", "A boy.").input_ids


# Options


def test_batches_of_similar_lengths_hold_less_padding(tmp_path: Path) -> None:
    def padding(**arguments: Any) -> Any:
        trainer = trainer_of(SYSTEMS["pairs"], tmp_path, num_train_epochs=1, **arguments)
        trainer.train_dataset = rows_of("train", 400, 2)  # it sorts a quarter of the batches at a time
        trainer.train()
        assert trainer.state.global_step == 25
        masks = [batch["attention_mask"] for batch in trainer.get_train_dataloader()]
        assert sum(len(mask) for mask in masks) == 400
        return 1 - sum(mask.sum().item() for mask in masks) / sum(mask.numel() for mask in masks)

    assert padding(train_sampling_strategy="group_by_length") < 0.6 * padding()


@quickly("pairs")
def test_smoothed_labels(changes: dict[str, Any], tmp_path: Path) -> None:
    trainer = trainer_of(changes, tmp_path, label_smoothing_factor=0.1)
    rows = trainer.eval_dataset
    labels = torch.tensor([row["labels"] for row in rows])
    expected = F.cross_entropy(logits_of(trainer.model, rows), labels, label_smoothing=0.1).item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-4)
    trainer.train()
    assert np.isfinite(losses_of(trainer)).all()


def test_smoothed_labels_reach_no_posterior(tmp_path: Path) -> None:
    """A Trainer that smooths labels keeps them from the model, so variational attention learns as at prediction."""
    names = ("pooling.posterior_mean.weight", "pooling.class_vectors.weight")
    for smoothing, learns in ((0.0, True), (0.1, False)):
        trainer = trainer_of(SYSTEMS["pairs, variational"], tmp_path, label_smoothing_factor=smoothing)
        before = {name: trainer.model.dsa.get_parameter(name).clone() for name in names}
        trainer.train()
        for name in names:
            assert torch.equal(trainer.model.dsa.get_parameter(name), before[name]) is not learns, name


@quickly("pairs")
@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing:FutureWarning")  # of transformers, for its next name
def test_gradient_checkpointing_changes_no_weight(changes: dict[str, Any], tmp_path: Path) -> None:
    plain = trainer_of(changes, tmp_path)
    plain.train()
    sparing = trainer_of(changes, tmp_path, gradient_checkpointing=True)
    sparing.train()
    parts = [part for part in sparing.model.modules() if isinstance(part, GradientCheckpointingLayer)]
    assert parts
    assert all(part.gradient_checkpointing for part in parts)
    assert same_tensors(sparing.model.state_dict(), plain.model.state_dict())


@quickly("pairs")
def test_bfloat16_trains_float32_weights(changes: dict[str, Any], tmp_path: Path) -> None:
    # The two would draw dropout differently.
    changes = changes | {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0}
    exact = trainer_of(changes, tmp_path)
    exact.train()
    rough = trainer_of(changes, tmp_path, bf16=True)
    rough.train()
    assert {weight.dtype for weight in rough.model.parameters()} == {torch.float32}
    assert losses_of(rough) != losses_of(exact)
    np.testing.assert_allclose(losses_of(rough)[:2], losses_of(exact)[:2], rtol=0.1)
    assert rough.evaluate()["eval_loss"] == pytest.approx(exact.evaluate()["eval_loss"], rel=0.1)


def test_accumulated_batches_are_one_step(tmp_path: Path) -> None:
    trainer = trainer_of(SYSTEMS["pairs"], tmp_path, gradient_accumulation_steps=2, num_train_epochs=1)
    trainer.train()
    assert trainer.state.global_step == 4
    single = trainer_of(SYSTEMS["pairs"], tmp_path, num_train_epochs=1)
    single.train()
    # The first step's losses come before any weight moved: a mean over two batches is no sum.
    assert losses_of(trainer)[0] == pytest.approx(losses_of(single)[0], rel=0.3)


@pytest.mark.slow
def test_a_compiled_model_is_trained_and_saved_like_any_other(tmp_path: Path) -> None:
    trainer = trainer_of(
        # The loss would write the type into the config, and the model would be compiled again.
        SYSTEMS["pairs"] | NO_DROPOUT | {"problem_type": "single_label_classification"},
        tmp_path,
        num_train_epochs=8,
        torch_compile=True,
        torch_compile_backend="aot_eager",
    )
    try:
        before = trainer.evaluate(trainer.train_dataset)["eval_loss"]
        trainer.train()
        assert trainer.evaluate(trainer.train_dataset)["eval_loss"] < 0.98 * before
        trainer.save_model()
        loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
        rows = trainer.eval_dataset
        found = torch.from_numpy(trainer.predict(rows).predictions)
        torch.testing.assert_close(found, logits_of(loaded, rows), rtol=1e-4, atol=1e-5)
    finally:
        torch._dynamo.reset()


# The Hub


def train_and_push(folder: str) -> None:
    """A fresh process's run."""
    options: dict[str, Any] = {"save_strategy": "epoch", "hub_private_repo": True, "hub_always_push": True}
    trainer = trainer_of(
        SYSTEMS["pairs"],
        Path(folder),
        push_to_hub=True,
        hub_model_id="org/trained",
        hub_strategy="every_save",
        **options,
    )
    trainer.train()
    trainer.push_to_hub(dataset="Made by a test", language="en")
    logits = logits_of(DSAForNLI.from_pretrained(folder), trainer.eval_dataset[:8])
    sys.stdout.write("\n" + json.dumps(logits.tolist()))


STRANGER = """
import json, sys
sys.modules["modeling_dsa"] = None  # importing it fails from now on
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
model = AutoModelForSequenceClassification.from_pretrained("org/trained", trust_remote_code=True)
tokenizer = AutoTokenizer.from_pretrained("org/trained")
with torch.no_grad():
    pairs = json.loads(sys.argv[1])
    logits = [model(**tokenizer(*pair, return_tensors="pt")).logits[0].tolist() for pair in pairs]
sys.stdout.write("\\n" + json.dumps(logits))
"""


def run_python(code: str, *arguments: str | Path, **environment: str) -> Any:
    """The JSON on the last line that a fresh process writes."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_trainer_pushes_what_strangers_load(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.add_user("ada", TOKEN, orgs=["org"])
    run = "import sys, test_trainer; test_trainer.train_and_push(*sys.argv[1:])"
    writer = hub.environment(tmp_path / "writer", TOKEN)
    writer["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    expected = run_python(run, tmp_path / "run", **writer)
    commits = hub.commits("org/trained")
    on_the_way = [title for title in commits if title.startswith("Training in progress, epoch")]
    # Trainer leaves a push out while the last one is on its way.
    assert len(on_the_way) in (1, 2)
    assert commits[0] == "End of training"

    listed = ["git", "--git-dir", str(hub.git_folder("org/trained")), "ls-tree", "--name-only", "main"]
    files = set(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split())
    write_repository_files(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} <= files
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= files

    rows = [[row["premise"], row["hypothesis"]] for row in pairs("validation")[:8]]
    reader = hub.environment(tmp_path / "reader", TOKEN)
    assert run_python(STRANGER, json.dumps(rows), **reader) == expected
