"""modeling_dsa.windows_dsa: a convolution inside each sentence equals torch's on that sentence alone."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_models import packing_of
from torch import Tensor, nn

from modeling_dsa.windows_dsa import keep_apart

LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=6)


def convolve_apart(lengths: list[int], kernel: int, training: bool) -> Callable[..., Tensor]:
    def convolve(tokens: Tensor, *weights: Tensor) -> Tensor:
        weight, bias = (*weights, None)[:2]
        assert weight is not None
        windows = keep_apart(packing_of(lengths), kernel // 2, tokens, training)
        return windows.collect(windows.convolve(windows.spread(tokens), weight, bias))

    return convolve


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 37])
@settings(max_examples=10)
@given(LENGTHS.filter(any))
@example([300])
@example([200, 0, 100])
def test_it_is_torchs_on_each_sentence(kernel: int, bias: bool, training: bool, lengths: list[int]) -> None:
    torch.manual_seed(0)
    plain = nn.Conv1d(4, 3, kernel, bias=bias).double()
    tokens = torch.randn(sum(lengths), 4, dtype=torch.float64, requires_grad=True)
    padding = kernel // 2, (kernel - 1) // 2
    parts = [nn.functional.pad(part.t(), padding) for part in tokens.split(lengths) if len(part)]
    expected = torch.cat([plain(part[None])[0].t() for part in parts])  # (N, 3)
    found = convolve_apart(lengths, kernel, training)(tokens, *plain.parameters())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    direction = torch.randn_like(expected)
    gradients = [torch.autograd.grad(out, [tokens, *plain.parameters()], direction) for out in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kernel", "lengths"), [(3, [2]), (4, [3, 2]), (5, [1, 0, 4])])
def test_it_has_second_derivatives(kernel: int, lengths: list[int]) -> None:
    torch.manual_seed(0)
    tokens = torch.randn(sum(lengths), 2, dtype=torch.float64, requires_grad=True)
    weights = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((1, 2, kernel), (1,))]
    assert torch.autograd.gradgradcheck(
        convolve_apart(lengths, kernel, training=True), (tokens, *weights), fast_mode=True
    )
