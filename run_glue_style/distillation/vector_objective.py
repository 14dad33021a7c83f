"""What a student minimises, and how close to its teacher it comes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from modeling_dsa.evaluation.similarity import correlate, cosines
from run_glue_style.training.objective import ExampleScores, Metrics
from run_glue_style.training.results import SPEARMAN_OF
from run_glue_style.training.training_batches import Batch, model_inputs

from .arguments import LossArguments

_AT_ONCE = 512  # vectors, an even number: pairs stay together


@dataclass(frozen=True)
class Distillation:
    """Vectors as the teacher's are, or as similar to each other.

    The labels of a batch are the teacher's vectors of its sentences, (batch, width) or, of pairs, (batch, 2, width);
    the model is given each sentence as a row of its own.

    Attributes:
        losses: The weights of the losses.
        metric_for_best_model: As in `Objective`.
        components: What the teacher's vectors are multiplied with before the student's are compared with them, where
            these are narrower; similarities are always those of the teacher's whole vectors. (width, student's width)
        attention_penalty: Factor on the model's `attention_penalty`, where it has one.
        similarity: Human scores of pairs, by the name of their file. The sentences of these pairs, all first ones and
            then all second ones, stand in this order at the end of the validation split, with labels of zeros.
        pairs: Whether sentences 2 i and 2 i + 1 of the validation split, before those, are a pair.
    """

    losses: LossArguments
    metric_for_best_model: str
    components: Tensor | None = None
    attention_penalty: float = 0.0
    similarity: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    pairs: bool = False

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """As in `Objective`. ()"""
        labels = batch["labels"]
        outputs = model(**model_inputs(batch), output_tokens=False)
        loss = self.distance(outputs.pooler_output, labels.flatten(0, -2), pairs=labels.ndim == 3)
        if outputs.attention_penalty is not None:
            loss = loss + self.attention_penalty * outputs.attention_penalty.mean()
        return loss

    def distance(self, vectors: Tensor, teacher: Tensor, *, pairs: bool = False) -> Tensor:
        """The weighted losses of some sentences.

        Args:
            vectors: The student's. (sentences, student's width)
            teacher: The teacher's. (sentences, width)
            pairs: Whether sentences 2 i and 2 i + 1 are a pair.

        Returns:
            ()
        """
        losses = self.losses
        vectors = vectors.float()
        student, whole, target = F.normalize(vectors, dim=-1), F.normalize(teacher, dim=-1), self._target(teacher)
        loss = losses.cosine_weight * (1 - (student * target).sum(-1).mean())
        if losses.similarity_weight:
            similarities = whole @ whole.t()  # (sentences, sentences)
            prefixes = [F.normalize(vectors[:, :size], dim=-1) for size in losses.matryoshka or ()]
            for prefix in (student, *prefixes):
                loss = loss + losses.similarity_weight * F.mse_loss(prefix @ prefix.t(), similarities)
        if losses.contrastive_weight:
            anchors, candidates = (student[0::2], student[1::2]) if pairs else (student, target)
            scores = anchors @ candidates.t() / losses.contrastive_temperature  # (anchors, candidates)
            own = torch.arange(len(scores), device=scores.device)
            loss = loss + losses.contrastive_weight * F.cross_entropy(scores, own)
        return loss

    def predictions(self, model: nn.Module, inputs: Batch) -> Tensor:
        """The sentences' vectors. (batch, student's width)"""
        vectors: Tensor = model(**inputs, output_tokens=False).pooler_output
        return vectors.float()

    def metrics(self, predictions: Tensor, labels: Tensor) -> Metrics:
        """As in `Objective`; from (sentences, student's width) and (sentences, width)."""
        held_out = self._held_out(labels)
        vectors, teacher = predictions[:held_out], labels[:held_out]
        parts = zip(vectors.split(_AT_ONCE), teacher.split(_AT_ONCE), strict=True)
        loss = sum(float(self.distance(*part, pairs=self.pairs)) * len(part[0]) for part in parts) / held_out
        likeness = self.example_scores(predictions, labels)
        metrics: dict[str, Any] = {"loss": loss} | {name: float(scores.mean()) for name, scores in likeness.items()}
        start, correlations = held_out, []
        for name, scores in self.similarity.items():
            first, second = predictions[start : start + 2 * len(scores)].split(len(scores))
            correlations.append(correlate(cosines(first.numpy(), second.numpy()), scores).spearman)
            metrics[f"{SPEARMAN_OF}{name}"] = correlations[-1]
            start += 2 * len(scores)
        return metrics | ({"spearman": float(np.mean(correlations))} if correlations else {})

    def example_scores(self, predictions: Tensor, labels: Tensor) -> ExampleScores:
        """As in `Objective`: the cosine with the teacher's vector, and whether all others of them are farther.

        A teacher that does not read case has the same vector twice, which is no other one.
        """
        held_out = self._held_out(labels)
        student, target = F.normalize(predictions[:held_out], dim=-1), self._target(labels[:held_out])
        whole = F.normalize(labels[:held_out], dim=-1)
        number = whole.unique(dim=0, return_inverse=True)[1]  # which of the distinct vectors each is, (sentences,)
        hits = []
        for part, own in zip(student.split(_AT_ONCE), number.split(_AT_ONCE), strict=True):
            cosines = part @ target.t()  # (sentences of the part, sentences)
            is_own = own[:, None] == number
            of_others = cosines.masked_fill(is_own, -torch.inf).amax(-1)
            hits.append(cosines.masked_fill(~is_own, -torch.inf).amax(-1) > of_others)
        return {"cosine": (student * target).sum(-1).numpy(), "recall_at_1": torch.cat(hits).numpy()}

    def finish(self, model: nn.Module) -> None:
        """Vectors are what is saved."""

    def _held_out(self, labels: Tensor) -> int:
        """How many sentences of the validation split the teacher has vectors of; those of the pairs come after them."""
        return len(labels) - 2 * sum(map(len, self.similarity.values()))

    def _target(self, teacher: Tensor) -> Tensor:
        """The teacher's vectors as the student shall give them. (sentences, width) -> (sentences, student's width)"""
        if self.components is not None:
            teacher = teacher @ self.components.to(teacher.device)
        return F.normalize(teacher, dim=-1)
