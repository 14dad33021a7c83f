"""modeling_dsa.layers_dsa: the convolution equals torch's, blocks change nothing, dropout has its statistics."""

from typing import Any

import pytest
import torch
from small_models import FIRST_TOKEN, VOCABULARY, pad_rows, randomize, small_config
from torch import Tensor, nn

from modeling_dsa import DSAModel, layers_dsa
from modeling_dsa.layers_dsa import TokenConv1d, dropout
from modeling_dsa.packing_dsa import Packing


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 7, 16, 17, 300])
@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
def test_row_convolution_equals_torchs_with_same_padding(kernel: int, rows: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer = TokenConv1d(4, 3, kernel, bias=bias).double()
    plain = nn.Conv1d(4, 3, kernel, padding="same", bias=bias).double()
    plain.load_state_dict(layer.state_dict())
    tokens = torch.randn(rows, 4, dtype=torch.float64, requires_grad=True)
    ours, theirs = layer(tokens), plain(tokens.t()[None])[0].t()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    direction = torch.randn_like(ours)
    our_gradients = torch.autograd.grad(ours, [tokens, *layer.parameters()], direction)
    their_gradients = torch.autograd.grad(theirs, [tokens, *plain.parameters()], direction)
    torch.testing.assert_close(our_gradients, their_gradients, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 3, 16, 33, 300])
@pytest.mark.parametrize("kernel", [2, 4, 6])
def test_an_even_kernel_sees_one_row_more_before_than_after(kernel: int, rows: int) -> None:
    torch.manual_seed(0)
    layer = TokenConv1d(4, 3, kernel).double()
    tokens = torch.randn(rows, 4, dtype=torch.float64, requires_grad=True)
    padded = nn.functional.pad(tokens.t(), (kernel // 2, kernel // 2 - 1))  # (4, rows + kernel - 1)
    ours = layer(tokens)
    theirs = nn.functional.conv1d(padded[None], layer.weight, layer.bias)[0].t()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    direction = torch.randn_like(ours)
    our_gradients = torch.autograd.grad(ours, [tokens, *layer.parameters()], direction)
    their_gradients = torch.autograd.grad(theirs, [tokens, *layer.parameters()], direction)
    torch.testing.assert_close(our_gradients, their_gradients, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kernel", "rows"), [(1, 256), (3, 2), (4, 5), (5, 3)])
def test_row_convolution_has_second_derivatives(kernel: int, rows: int) -> None:
    torch.manual_seed(0)
    layer = TokenConv1d(2, 1, kernel).double()
    tokens = torch.randn(rows, 2, dtype=torch.float64, requires_grad=True)
    weight = layer.weight.detach().requires_grad_()
    assert torch.autograd.gradgradcheck(layers_dsa.convolve, (tokens, weight), fast_mode=True)


def test_row_convolution_takes_no_rows() -> None:
    assert TokenConv1d(4, 3, 5)(torch.zeros(0, 4)).shape == (0, 3)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kernel_sizes": [1, 7]},
        {"num_hidden_layers": 4},
        {"num_attention_heads": 3, "routing_iterations": 4},
        {"normalize_tokens": False},
    ],
    ids=["two kernels", "kernels of one and seven", "four layers", "heads", "tokens of any length"],
)
@pytest.mark.parametrize("tokens", [1, 5, 16])
def test_predicting_in_blocks_changes_nothing(
    tokens: int, changes: dict[str, Any], folded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = randomize(DSAModel(small_config(**changes))).eval()
    numbers = torch.randint(FIRST_TOKEN, VOCABULARY, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    ids, mask = pad_rows([[], numbers[:9], [], numbers[9:10], numbers[10:17], [], numbers[17:], []])
    blocks: list[slice] = []
    gapped_indices = Packing.gapped_indices

    def watched(packing: Packing, gap: int, block: slice = slice(None)) -> tuple[Tensor, int]:
        blocks.append(block)
        return gapped_indices(packing, gap, block)

    with torch.no_grad():
        whole = model(ids, attention_mask=mask, output_attentions=True)
        if folded:
            model.fold_embeddings()
        monkeypatch.setattr(Packing, "gapped_indices", watched)
        monkeypatch.setattr(layers_dsa, "BLOCK_TOKENS", tokens)
        parts = model(ids, attention_mask=mask, output_attentions=True)
    assert len(blocks) == -(-len(numbers) // tokens)
    for name in ("last_hidden_state", "pooler_output", "attentions"):
        torch.testing.assert_close(parts[name], whole[name], rtol=1e-5, atol=1e-6)


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
