"""What runs minimise: classes, numbers, and an objective that the trainer has never seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from small_models import small_config
from small_runs import accuracy, small_tokenizer, small_trainer, tokenized
from torch import Tensor, nn

from run_glue_style.training.objective import Classification, ExampleScores, Metrics, Regression, metric_value
from run_glue_style.training.progress import Progress
from run_glue_style.training.tokenized_examples import TokenizedExamples
from run_glue_style.training.training_batches import Batch

NO_NOISE = {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0}


def scores(predictions: np.ndarray, references: np.ndarray) -> Metrics:
    return {"pearson": float(np.corrcoef(predictions, references)[0, 1])}


def labelled(split: str, count: int, label: Callable[[NDArray[np.int64]], Any]) -> TokenizedExamples:
    """The first examples of a split under labels of their token ids (tokens,), padded with 0."""
    examples = tokenized(split, count)
    return TokenizedExamples(examples.tokenized, examples.texts, [*map(label, examples.padded(0)["input_ids"])])


def test_a_regression_learns_numbers(tmp_path: Path) -> None:
    word = small_tokenizer().convert_tokens_to_ids("man")
    examples = labelled("train", 100, lambda ids: 2.5 if word in ids else -0.5)
    trainer = small_trainer(
        tmp_path,
        train_examples=examples,
        validation_examples=examples,
        objective=Regression(scores, "pearson"),
        config={"num_labels": 1, "problem_type": "regression", **NO_NOISE},
        num_train_epochs=15,
        learning_rate=0.02,
    )
    trainer.train()
    metrics = trainer.objective.metrics(*trainer.predict(examples))
    assert metrics["pearson"] > 0.7
    batch = trainer.collate(examples)
    with torch.no_grad():
        found = trainer.unwrapped_model()(**batch)  # in eval mode since the evaluation
    assert metrics["loss"] == pytest.approx(F.mse_loss(found.logits[:, 0], batch["labels"]).item(), abs=1e-6)
    assert metrics["loss"] == pytest.approx(found.loss.item(), abs=1e-6)


def test_numbers_of_any_size_are_learnt_in_units_of_their_own(tmp_path: Path) -> None:
    objective = Regression(scores, "pearson", center=500.0, scale=40.0)
    trainer = small_trainer(tmp_path, objective=objective, config={"num_labels": 1, "problem_type": "regression"})
    model, examples = trainer.unwrapped_model().eval(), tokenized("train", 40)
    batch = {**trainer.collate(examples), "labels": torch.linspace(400, 600, 40)}
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    with torch.no_grad():
        saved = model(**inputs).logits[:, 0]
        objective.start(model, is_fresh=False)
        loss, predictions = objective.loss(model, batch), objective.predictions(model, inputs)
        torch.testing.assert_close(predictions, saved, atol=1e-3, rtol=0)  # float32 rounds at 500
        assert loss.item() * 40**2 == pytest.approx(F.mse_loss(predictions, batch["labels"]).item(), rel=1e-5)
        objective.finish(model)
        torch.testing.assert_close(model(**inputs).logits[:, 0], predictions, atol=1e-3, rtol=0)
        objective.start(model, is_fresh=True)
        assert objective.predictions(model, inputs).tolist() == [500.0] * 40


@dataclass(frozen=True)
class Teacher:
    """Sentence vectors like a teacher's: labels are vectors, and the model gives no logits."""

    metric_for_best_model: str = "cosine"

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
        return 1 - F.cosine_similarity(self.predictions(model, inputs), batch["labels"]).mean()

    def predictions(self, model: nn.Module, inputs: Batch) -> Tensor:
        vectors: Tensor = model.get_submodule("dsa")(**inputs).pooler_output
        return vectors

    def metrics(self, predictions: Tensor, labels: Tensor) -> Metrics:
        cosine = F.cosine_similarity(predictions, labels).mean().item()
        return {"loss": 1 - cosine, "cosine": cosine}

    def example_scores(self, predictions: Tensor, labels: Tensor) -> ExampleScores:
        return {"cosine": F.cosine_similarity(predictions, labels).numpy()}

    def finish(self, model: nn.Module) -> None:
        pass


def test_a_task_without_classes_trains_too(tmp_path: Path) -> None:
    size = small_config().sentence_embedding_size
    vectors = np.random.default_rng(0).normal(size=(3, size))
    train, validation = (
        labelled(split, count, lambda ids: vectors[np.count_nonzero(ids) % 3])
        for split, count in (("train", 100), ("validation", 50))
    )
    trainer = small_trainer(
        tmp_path, train_examples=train, validation_examples=validation, objective=Teacher(), batch_norm_batches=2
    )
    history = trainer.train().history
    assert history[-1]["validation_cosine"] > history[0]["validation_cosine"] + 0.02
    metrics = trainer.objective.metrics(*trainer.predict(validation))
    assert max(record["validation_cosine"] for record in history) == metrics["cosine"]


@pytest.mark.parametrize(("balanced", "points"), [(False, None), (True, None), (True, (1.0, 0.25, 1.0))])
def test_smoothing_balance_and_points_replace_the_cross_entropy_alone(
    tmp_path: Path, balanced: bool, points: tuple[float, ...] | None
) -> None:
    """The penalty on structured attention, the other part of its loss, stays."""
    shares = torch.tensor([0.7, 0.2, 0.1]).log().expand(40, 3) if balanced else torch.zeros(40, 3)
    trainer = small_trainer(
        tmp_path, config={"pooling": "structured", "num_attention_heads": 3, "attention_penalty": 0.3}
    )
    model, batch = trainer.unwrapped_model().eval(), dict(trainer.collate(tokenized("train", 40)))
    with torch.no_grad():
        outputs = model(**batch)
        batch |= {"log_class_shares": shares} if balanced else {}
        loss = Classification(accuracy, "accuracy", label_smoothing=0.2, class_points=points).loss(model, batch)
    logs = (outputs.logits + shares - torch.tensor(points or 1.0).log()).log_softmax(-1)  # (batch, classes)
    right = logs[torch.arange(40), batch["labels"]]  # (batch,)
    smoothed = -(0.8 * right + 0.2 * logs.mean(-1)).mean()
    penalty = outputs.loss - F.cross_entropy(outputs.logits, batch["labels"])
    assert penalty > 0
    assert loss.item() == pytest.approx((smoothed + penalty).item(), abs=1e-5)


@pytest.mark.parametrize("name", ["f1", "loss", "per_class"])
def test_metric_that_is_not_there_is_refused_with_those_that_are(name: str) -> None:
    metrics = {"loss": 1.0, "accuracy": 0.5, "macro_f1": 0.5, "per_class": {}}
    with pytest.raises(ValueError, match=f"no metric '{name}' to choose.* give one of accuracy, macro_f1"):
        metric_value(metrics, name)


def test_a_metric_or_loss_that_is_not_finite_is_never_best() -> None:
    progress = Progress()
    evaluations = [(math.nan, 1.0), (0.1, 1.0), (math.inf, 1.0), (0.3, math.nan), (0.2, 1.0)]
    found = [progress.count_evaluation("pearson", value, loss) for value, loss in evaluations]
    assert found == [False, True, False, False, True]
    assert progress.stale == 0
