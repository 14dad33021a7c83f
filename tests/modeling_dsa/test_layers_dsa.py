"""modeling_dsa.layers_dsa: dropout has its statistics."""

import pytest
import torch

from modeling_dsa.layers_dsa import dropout


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3, 0.4, 0.5, 0.9])
def test_dropout_zeroes_its_rate_and_scales_the_rest(rate: float) -> None:
    torch.manual_seed(0)
    rows = torch.rand(501, 401) + 0.5
    dropped = dropout(rows, rate, training=True)
    survivors = dropped != 0
    torch.testing.assert_close(dropped[survivors], rows[survivors] / (1 - rate), rtol=2e-4, atol=0)
    deviation = (rate * (1 - rate) / rows.numel()) ** 0.5
    assert abs(1 - survivors.double().mean().item() - rate) < 5 * deviation + 2**-16
    # The expectation is the input's: each survivor stands for the dropped ones.
    relative = ((rate / (1 - rate)) / rows.numel()) ** 0.5
    assert dropped.double().mean().item() == pytest.approx(rows.double().mean().item(), rel=6 * relative)


def test_dropout_decides_each_element_on_its_own() -> None:
    """Four neighbours share one 64-bit draw: each has the rate, and no two of them go together."""
    torch.manual_seed(0)
    survivors = (dropout(torch.ones(100_000, 4), 0.3, training=True) != 0).double()
    assert (survivors.mean(0) - 0.7).abs().max() < 0.01
    correlation = torch.corrcoef(torch.cat([survivors[:-1], survivors[1:]], dim=1).t()) - torch.eye(8)
    assert correlation.abs().max() < 0.02


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (1, 3), (3, 3), (2, 4)])
def test_dropout_takes_any_shape(shape: tuple[int, int]) -> None:
    assert dropout(torch.ones(shape), 0.5, training=True).shape == shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_dropout_keeps_the_type(dtype: torch.dtype) -> None:
    dropped = dropout(torch.ones(64, 8, dtype=dtype), 0.5, training=True)
    assert dropped.dtype == dtype
    assert set(dropped.flatten().tolist()) == {0.0, 2.0}


def test_dropout_repeats_itself_under_a_seed() -> None:
    rows = torch.rand(33, 7)
    torch.manual_seed(1)
    first, second = dropout(rows, 0.4, training=True), dropout(rows, 0.4, training=True)
    torch.manual_seed(1)
    again = dropout(rows, 0.4, training=True)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_dropout_passes_the_gradient_of_the_survivors() -> None:
    torch.manual_seed(0)
    rows = torch.rand(50, 6, requires_grad=True)
    dropped = dropout(rows, 0.2, training=True)
    (gradient,) = torch.autograd.grad(dropped.sum(), rows)
    assert torch.equal(gradient * rows, dropped)
    assert 0 < (gradient == 0).double().mean() < 0.5


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (0.4, False)])
def test_no_dropout_returns_the_rows_themselves(rate: float, training: bool) -> None:
    rows = torch.rand(3, 3)
    assert dropout(rows, rate, training) is rows


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_factors_are_a_product_behind_dropout(rate: float, dtype: torch.dtype) -> None:
    values = torch.randn(50, 7).to(dtype).requires_grad_()
    factors = (torch.arange(50) % 3 > 0).float()[:, None]
    found = []
    for together in (True, False):
        torch.manual_seed(0)
        out = dropout(values, rate, True, factors) if together else dropout(values, rate, True) * factors.to(dtype)
        found.append((out, *torch.autograd.grad(out.float().square().sum(), [values])))
    torch.testing.assert_close(*found, rtol=0, atol=0)
