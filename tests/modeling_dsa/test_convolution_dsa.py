"""modeling_dsa.convolution_dsa: the convolution equals torch's, and blocks change nothing."""

from typing import Any

import pytest
import torch
from small_models import FIRST_TOKEN, VOCABULARY, pad_rows, randomize, small_config
from torch import Tensor, nn

from modeling_dsa import DSAModel, convolution_dsa
from modeling_dsa.convolution_dsa import convolve
from modeling_dsa.layers_dsa import TokenConv1d
from modeling_dsa.packing_dsa import Packing


@pytest.mark.parametrize(
    ("kernel", "rows", "bias"),
    [
        (1, 1, True),
        (1, 300, True),
        (1, 300, False),
        (2, 1, False),
        (2, 33, True),
        (3, 2, True),
        (3, 300, False),
        (4, 3, True),
        (4, 16, False),
        (5, 16, True),
        (5, 17, False),
        (6, 1, True),
        (6, 300, True),
        (7, 1, False),
        (7, 7, True),
    ],
)
def test_row_convolution_equals_torchs_whose_even_kernels_see_one_row_more_before(
    kernel: int, rows: int, bias: bool
) -> None:
    torch.manual_seed(0)
    layer = TokenConv1d(4, 3, kernel, bias=bias).double()
    plain = nn.Conv1d(4, 3, kernel, bias=bias).double()
    plain.load_state_dict(layer.state_dict())
    tokens = torch.randn(rows, 4, dtype=torch.float64, requires_grad=True)
    padded = nn.functional.pad(tokens.t(), (kernel // 2, (kernel - 1) // 2))  # (4, rows + kernel - 1)
    ours, theirs = layer(tokens), plain(padded[None])[0].t()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    direction = torch.randn_like(ours)
    our_gradients = torch.autograd.grad(ours, [tokens, *layer.parameters()], direction)
    their_gradients = torch.autograd.grad(theirs, [tokens, *plain.parameters()], direction)
    torch.testing.assert_close(our_gradients, their_gradients, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kernel", "rows"), [(1, 256), (3, 2), (4, 5), (5, 3)])
def test_row_convolution_has_second_derivatives(kernel: int, rows: int) -> None:
    torch.manual_seed(0)
    layer = TokenConv1d(2, 1, kernel).double()
    tokens = torch.randn(rows, 2, dtype=torch.float64, requires_grad=True)
    weight = layer.weight.detach().requires_grad_()
    assert torch.autograd.gradgradcheck(convolve, (tokens, weight), fast_mode=True)


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
        monkeypatch.setattr(convolution_dsa, "BLOCK_TOKENS", tokens)
        parts = model(ids, attention_mask=mask, output_attentions=True)
    assert len(blocks) == -(-len(numbers) // tokens)
    for name in ("last_hidden_state", "pooler_output", "attentions"):
        torch.testing.assert_close(parts[name], whole[name], rtol=1e-5, atol=1e-6)
