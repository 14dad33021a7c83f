"""Losses and metrics, against what the words in their help say."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from small_models import pad_rows, randomize, small_config
from torch import Tensor

from modeling_dsa import DSAModel
from run_glue_style.distillation.arguments import LossArguments
from run_glue_style.distillation.vector_objective import Distillation

OFF = {"cosine_weight": 0.0, "similarity_weight": 0.0, "contrastive_weight": 0.0}


def objective(components: Tensor | None = None, **losses: Any) -> Distillation:
    return Distillation(LossArguments(**(OFF | losses)), "cosine", components)


def unit(vectors: Tensor) -> Tensor:
    lengths: Tensor = vectors.norm(dim=1, keepdim=True)
    return vectors / lengths


def test_each_loss_is_what_it_says_and_their_weights_add_up() -> None:
    student, teacher = torch.randn(6, 4), torch.randn(6, 4)
    s, t = unit(student), unit(teacher)
    cosine = 1 - (s * t).sum(1).mean()
    similarity = ((s @ s.T - t @ t.T) ** 2).mean()
    prefix = unit(student[:, :2])
    matryoshka = similarity + ((prefix @ prefix.T - t @ t.T) ** 2).mean()
    contrastive = -(s @ t.T / 0.1).log_softmax(1).diagonal().mean()
    pairs = -(s[0::2] @ s[1::2].T / 0.1).log_softmax(1).diagonal().mean()
    expected = [
        (objective(cosine_weight=2), 2 * cosine),
        (objective(similarity_weight=3), 3 * similarity),
        (objective(similarity_weight=1, matryoshka=[2]), matryoshka),
        (objective(contrastive_weight=1, contrastive_temperature=0.1), contrastive),
        (objective(cosine_weight=1, similarity_weight=1), cosine + similarity),
    ]
    for found, value in expected:
        torch.testing.assert_close(found.distance(student, teacher), value)
    found = objective(contrastive_weight=1, contrastive_temperature=0.1)
    torch.testing.assert_close(found.distance(student, teacher, pairs=True), pairs)


def test_a_narrower_student_learns_components_and_the_whole_teachers_similarities() -> None:
    student, teacher, components = torch.randn(6, 3), torch.randn(6, 5), torch.randn(5, 3)
    found = objective(components, cosine_weight=1, similarity_weight=1)
    s, t, target = unit(student), unit(teacher), unit(teacher @ components)
    expected = 1 - (s * target).sum(1).mean() + ((s @ s.T - t @ t.T) ** 2).mean()
    torch.testing.assert_close(found.distance(student, teacher), expected)


def test_pairs_of_a_batch_stand_in_rows_of_their_own_and_gradients_reach_every_weight() -> None:
    no_noise = {"embedding_dropout": 0.0, "hidden_dropout": 0.0}
    model = randomize(
        DSAModel(small_config(projection_size=4, word_shortcut=True, freeze_embeddings=False, **no_noise))
    )
    ids, mask = pad_rows([[5, 6, 7], [8, 9], [10], [11, 12, 13, 14]])
    labels = torch.randn(2, 2, 4)  # (pairs, 2, width)
    found = objective(cosine_weight=1, contrastive_weight=1)
    loss = found.loss(model.train(), {"input_ids": ids, "attention_mask": mask, "labels": labels})
    with torch.no_grad():
        vectors = model(ids, attention_mask=mask).pooler_output
    torch.testing.assert_close(loss, found.distance(vectors, labels.view(4, 4), pairs=True))
    loss.backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_metrics_are_those_of_the_held_out_sentences_and_of_each_similarity_file() -> None:
    teacher = F.normalize(torch.randn(700, 8), dim=1)
    vectors = teacher + 0.3 * torch.randn(700, 8)
    pairs = torch.randn(10, 8)
    scores = np.random.default_rng(0).normal(size=5)
    found = Distillation(LossArguments(), "spearman", similarity={"sts": scores})
    metrics = found.metrics(torch.cat([vectors, pairs]), torch.cat([teacher, torch.zeros(10, 8)]))
    s = unit(vectors)
    assert metrics["cosine"] == pytest.approx(float((s * teacher).sum(1).mean()), abs=1e-5)
    nearest = (s @ teacher.T).argmax(1) == torch.arange(700)
    assert metrics["recall_at_1"] == pytest.approx(float(nearest.float().mean()))
    twins = found.example_scores(torch.cat([teacher, teacher, pairs]), torch.cat([teacher, teacher, pairs * 0]))
    assert twins["recall_at_1"].all()  # which of two equal vectors is nearer cannot be told
    nothing = found.example_scores(torch.cat([vectors * 0, pairs]), torch.cat([teacher, pairs * 0]))
    assert not nothing["recall_at_1"].any()  # all vectors are as near
    cosines = F.cosine_similarity(pairs[:5], pairs[5:])
    assert metrics["spearman_sts"] == metrics["spearman"] == pytest.approx(spearmanr(cosines, scores).statistic)
    parts = [(vectors[:512], teacher[:512]), (vectors[512:], teacher[512:])]
    expected = sum(float(found.distance(*part)) * len(part[0]) for part in parts) / 700
    assert metrics["loss"] == pytest.approx(expected)
    found = Distillation(LossArguments(contrastive_weight=1.0), "cosine", pairs=True)
    expected = sum(float(found.distance(*part, pairs=True)) * len(part[0]) for part in parts) / 700
    assert found.metrics(vectors, teacher)["loss"] == pytest.approx(expected)  # as in training
