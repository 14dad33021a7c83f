"""modeling_dsa.reinforced_dsa: what chooses, and what teaches it. Other tests compare it with its equations."""

from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from huggingface_hub.errors import StrictDataclassError
from small_models import join_pair, packing_of, pad_rows, randomize, small_config
from torch import Tensor

from modeling_dsa import DSAForNLI
from modeling_dsa.reinforced_dsa import SequenceSampler, policy_loss

PAIRS = [(list(range(5, 14)), [8, 9]), ([8, 9], [10]), ([11], list(range(12, 24)))]  # one sentence twice
LABELS = torch.tensor([0, 2, 1])


def head_of(**changes: Any) -> DSAForNLI:
    """A classifier of pairs in training, but for its batch normalisation, without dropout: only choices are random."""
    still = {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0, "sentences_per_example": 2}
    head = randomize(DSAForNLI(small_config(pooling="reinforced", **still, **changes))).double().train()
    head.classifier.eval()
    return cast(DSAForNLI, head)


def batch() -> dict[str, Tensor]:
    ids, mask = pad_rows([join_pair(*pair) for pair in PAIRS])
    return {"input_ids": ids, "attention_mask": mask, "labels": LABELS}


def test_choices_learn_from_their_cost_and_all_else_from_the_cross_entropy() -> None:
    """REINFORCE by hand: the gradient of (cost + lambda share) log p, by each sentence and its example's cost."""
    head, penalty = head_of(choice_penalty=0.3), 0.3
    weights = dict(head.named_parameters())
    trained = {name: weight for name, weight in weights.items() if weight.requires_grad}
    torch.manual_seed(0)
    outputs = head(**batch())
    torch.testing.assert_close(outputs.loss, F.cross_entropy(outputs.logits, LABELS))
    found = dict(zip(trained, torch.autograd.grad(outputs.loss, list(trained.values())), strict=True))
    torch.manual_seed(0)
    choices = head.dsa(**batch())

    cost = torch.stack([-outputs.logits[row].log_softmax(0)[label].detach() for row, label in enumerate(LABELS)])
    share, log_probability = choices.chosen_share, choices.choice_log_probability  # (3, 2)
    assert ((share > 0) & (share < 1)).any()
    expected = sum(
        (cost[row] + penalty * share[row, side]) * log_probability[row, side] for row in range(3) for side in range(2)
    )
    samplers = [name for name in trained if "attention.heads" in name or "attention.dependents" in name]
    assert len(samplers) == 8
    by_hand = torch.autograd.grad(cast(Tensor, expected) / 3, [trained[name] for name in samplers])
    for name, gradient in zip(samplers, by_hand, strict=True):
        torch.testing.assert_close(found[name], gradient, rtol=0, atol=1e-10)
        assert gradient.any()

    torch.manual_seed(0)
    others = [name for name in trained if name not in samplers]
    cross_entropy = F.cross_entropy(head(**batch()).logits, LABELS)
    by_hand = torch.autograd.grad(cross_entropy, [trained[name] for name in others])
    for name, gradient in zip(others, by_hand, strict=True):
        torch.testing.assert_close(found[name], gradient, rtol=0, atol=1e-10)


def test_an_example_without_a_class_teaches_no_choice() -> None:
    logits, share = torch.randn(2, 3), torch.rand(2, 2)
    log_probability = torch.randn(2, 2, requires_grad=True)
    (alone,) = torch.autograd.grad(
        policy_loss(logits[:1], LABELS[:1], log_probability[:1], share[:1], 0.3), log_probability
    )
    (found,) = torch.autograd.grad(
        policy_loss(logits, torch.tensor([0, -100]), log_probability, share, 0.3), log_probability
    )
    assert torch.equal(found, alone)


def test_tokens_that_only_cost_are_chosen_ever_less() -> None:
    torch.manual_seed(0)
    sampler, packing = SequenceSampler(small_config(hidden_dropout=0.0), 4), packing_of([6, 3])
    tokens, optimizer = torch.randn(9, 4), torch.optim.SGD(sampler.parameters(), lr=0.1)
    shares = []
    for _ in range(150):
        choice = sampler(tokens, packing, True, torch.tensor(False))
        shares.append(choice.share.mean().item())
        logits, labels = torch.zeros(2, 3), torch.tensor([0, 1])
        policy_loss(logits, labels, choice.log_probability[:, None], choice.share[:, None], 1.0).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert sum(shares[-30:]) < 0.5 * sum(shares[:30])


def test_everything_is_chosen_in_the_first_batches() -> None:
    head = head_of(soft_attention_steps=2)
    for step in range(4):
        torch.manual_seed(0)
        outputs = head.dsa(**batch())
        takes_all = bool((outputs.chosen_share == 1).all() and (outputs.choice_log_probability == 0).all())
        assert takes_all == (step < 2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"attention_head_size": 5}, "both directions of pooling 'reinforced' and even, got 5"),
        ({"num_labels": 1}, "rewarded for the class of each example: num_labels must be at least 2"),
        ({"classifier_highway": True, "classifier_hidden_sizes": []}, "there is none"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(StrictDataclassError, match=said):
        small_config(pooling="reinforced", **changes)
