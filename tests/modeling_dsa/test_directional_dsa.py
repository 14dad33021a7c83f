"""modeling_dsa.directional_dsa: what is special about attention to one side, beside what holds for every encoder."""

from typing import Any

import pytest
import torch
from small_models import ENCODER_CASES, packing_of, randomize, small_config
from torch import Tensor, nn

from modeling_dsa import directional_dsa
from modeling_dsa.encoders_dsa import ENCODERS

CASES = {name: ENCODER_CASES[name] | {"num_hidden_layers": 1} for name in ("directional", "distance")}


def encoder_of(changes: dict[str, Any]) -> nn.Module:
    return randomize(ENCODERS[changes["encoder"]](small_config(**changes))).double().eval()


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_half_of_the_channels_know_what_comes_before_and_half_what_comes_after(changes: dict[str, Any]) -> None:
    encoder = encoder_of(changes)
    tokens = torch.randn(9, 6, dtype=torch.float64, requires_grad=True)
    encoded, _ = encoder(tokens, packing_of([9]), output_hidden_states=False)
    for half, seen in zip(encoded[4].chunk(2), (range(5), range(4, 9)), strict=True):
        (gradient,) = torch.autograd.grad(half.square().sum(), tokens, retain_graph=True)
        assert gradient.abs().sum(1).nonzero().flatten().tolist() == list(seen)


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_blocks_of_tokens_change_nothing(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a vector nor a gradient."""
    encoder, packing = encoder_of(changes), packing_of([40, 3, 0, 38])
    tokens = torch.randn(81, 6, dtype=torch.float64, requires_grad=True)
    found: list[tuple[Tensor, ...]] = []
    for numbers in (1 << 24, 700):
        monkeypatch.setattr(directional_dsa, "_BLOCK_NUMBERS", numbers)
        encoded, _ = encoder(tokens, packing, output_hidden_states=False)
        found.append((encoded, *torch.autograd.grad(encoded.square().sum(), [tokens, *encoder.parameters()])))
        with torch.no_grad():
            found.append((encoder(tokens, packing, output_hidden_states=False)[0],))
    torch.testing.assert_close(found[2], found[0], rtol=0, atol=1e-10)
    torch.testing.assert_close(found[3], found[1], rtol=0, atol=1e-12)


def test_distance_turns_attention_to_the_neighbours() -> None:
    """With a large alpha a token's context is its neighbour's value alone."""
    gradients = []
    for weight in (0.0, 100.0):
        encoder = encoder_of(CASES["distance"] | {"distance_weight": weight})
        tokens = torch.randn(9, 6, dtype=torch.float64, requires_grad=True)
        encoded, _ = encoder(tokens, packing_of([9]), output_hidden_states=False)
        (gradient,) = torch.autograd.grad(encoded[8].square().sum(), tokens)
        gradients.append((gradient.abs().sum(1) > 1e-12).nonzero().flatten().tolist())
    assert gradients == [list(range(9)), [7, 8]]
