"""What the classes of encoders and poolings say of themselves."""

from typing import Any

import pytest
import torch
from small_models import EXAMPLE_PAIRS, pad_rows, small_config
from torch import Tensor

from modeling_dsa import DSAForSequenceClassification
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.systems_dsa import Encoder, Pooling

BASE: dict[str, Any] = {
    "encoder": "none",
    "pooling": "mean",
    "max_sentence_tokens": 8,
    "hidden_dropout": 0.2,
    "kernel_sizes": [3, 5],
    "hidden_size": 12,
    "feedforward_size": 7,
    "encoder_attention_heads": 2,
    "attention_penalty": 0.1,
    "tree_size": 4,
}
CHANGES: dict[str, Any] = {
    "hidden_size": 24,
    "hidden_dropout": 0.5,
    "kernel_sizes": [3, 1],
    "num_hidden_layers": 3,
    "first_layer_size": 5,
    "growth_size": 4,
    "encoder_attention_heads": 3,
    "distance_weight": 3.0,
    "feedforward_size": 8,
    "attention_head_size": 6,
    "routing_iterations": 3,
    "routing_scale": 4.0,
    "attention_hidden_size": 8,
    "attention_penalty": 0.3,
    "soft_attention_steps": 9,
    "choice_penalty": 0.5,
    "tree_size": 5,
    "gumbel_temperature": 0.5,
    "latent": "sentence",
    "latent_size": 4,
    "kl_weight": 0.5,
    "kl_warmup_steps": 4,
    "num_training_samples": 2,
    "num_prediction_samples": 2,
}


def outcome(**fields: Any) -> list[Tensor]:
    """Losses, gradients and predictions of a classifier that starts from the same seed."""
    torch.manual_seed(0)
    model = DSAForSequenceClassification(small_config(**(BASE | fields)))
    ids, mask = pad_rows([first for first, _ in EXAMPLE_PAIRS if first])
    labels = torch.arange(len(ids)) % 3
    losses = []
    for _ in range(2):
        torch.manual_seed(1)
        loss = model.train()(ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        losses.append(loss.detach())
    gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    with torch.no_grad():
        return [*losses, torch.cat(gradients), model.eval()(ids, attention_mask=mask).logits]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"), [("encoder", name) for name in ENCODERS] + [("pooling", name) for name in POOLINGS]
)
def test_its_own_fields_are_those_that_change_something(kind: str, name: str) -> None:
    """Of all that are some encoder's or pooling's; the two kinds are tried beside one that reads none of them."""
    system: type[Encoder] | type[Pooling] = ENCODERS[name] if kind == "encoder" else POOLINGS[name]
    beside: set[str] = set()
    fields = {kind: name}
    if kind == "pooling" and POOLINGS[name].needs_states:
        fields, beside = fields | {"encoder": "bilstm"}, set(ENCODERS["bilstm"].own_fields)
    plain, found = outcome(**fields), set()
    for field, value in CHANGES.items():
        changed = outcome(**fields, **{field: value})
        if any(a.shape != b.shape or not torch.equal(a, b) for a, b in zip(plain, changed, strict=True)):
            found.add(field)
    assert found - beside == system.own_fields


def test_every_such_field_is_tried() -> None:
    systems: list[type[Encoder] | type[Pooling]] = [*ENCODERS.values(), *POOLINGS.values()]
    assert {field for system in systems for field in system.own_fields} == set(CHANGES)
