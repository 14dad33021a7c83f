"""modeling_dsa.pairwise_dsa: every word of a sentence attends to every other, and the pairs are never held at once."""

import pytest
import reference
import torch
from small_models import packing_of, randomize, small_config
from torch import Tensor, nn
from torch.func import functional_call

from modeling_dsa.pairwise_dsa import PairwiseSelfAttention


@pytest.mark.parametrize("lengths", [[1], [3, 0, 5, 1, 2], [40, 3, 3, 38, 0, 25, 1]], ids=str)
def test_it_equals_its_equations_word_by_word(lengths: list[int]) -> None:
    config = small_config(negative_slope=0.2)
    attention = randomize(PairwiseSelfAttention(config, 6, 4)).double().eval()
    words = torch.randn(sum(lengths), 6, dtype=torch.float64)
    outputs = attention(words, packing_of(lengths))
    weights = {f"pairs.{name}": value for name, value in attention.state_dict().items()}
    expected = [
        word
        for sentence in words.split(lengths)
        for word in reference.pairwise_attention(weights, "pairs", list(sentence), 0.2)
    ]
    torch.testing.assert_close(outputs, torch.stack(expected), rtol=0, atol=1e-10)


def test_its_attention_agrees_with_torchs_module() -> None:
    """`nn.MultiheadAttention` with one head, the same weights, a padded batch and a mask."""
    attention = randomize(PairwiseSelfAttention(small_config(), 6, 6)).double().eval()
    outside = nn.MultiheadAttention(6, 1, bias=False, batch_first=True).double()
    with torch.no_grad():
        outside.in_proj_weight.copy_(attention.projection.weight[:, :, 0])
        outside.out_proj.weight.copy_(torch.eye(6))
    lengths = [3, 7, 1, 12]
    words = torch.randn(sum(lengths), 6, dtype=torch.float64)
    padded = nn.utils.rnn.pad_sequence(list(words.split(lengths)), batch_first=True)
    outside_mask = torch.arange(12) >= torch.tensor(lengths)[:, None]
    contexts = outside(padded, padded, padded, key_padding_mask=outside_mask)[0][~outside_mask]
    expected = attention.combination(torch.cat([words, contexts], dim=1))
    torch.testing.assert_close(attention(words, packing_of(lengths)), expected, rtol=0, atol=1e-12)


def test_gradcheck() -> None:
    attention = randomize(PairwiseSelfAttention(small_config(), 3, 2)).double().eval()
    names = [name for name, _ in attention.named_parameters()]
    words = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)

    def attend(words: Tensor, *weights: Tensor) -> Tensor:
        outputs: Tensor = functional_call(attention, dict(zip(names, weights, strict=True)), (words, packing))
        return outputs

    packing = packing_of([3, 0, 1, 2])
    assert torch.autograd.gradcheck(attend, (words, *attention.parameters()))


def test_words_in_another_order_give_the_same_words_in_that_order() -> None:
    """It knows no positions."""
    attention = randomize(PairwiseSelfAttention(small_config(), 6, 4)).double().eval()
    words = torch.randn(9, 6, dtype=torch.float64)
    order = torch.randperm(9)
    outputs, reordered = attention(words, packing_of([9])), attention(words[order], packing_of([9]))
    torch.testing.assert_close(reordered, outputs[order], rtol=0, atol=1e-12)


def test_large_scores_stay_finite() -> None:
    attention = PairwiseSelfAttention(small_config(), 6, 4)
    words = (1000 * torch.randn(9, 6)).requires_grad_()
    outputs = attention(words, packing_of([4, 0, 5]))
    (gradient,) = torch.autograd.grad(outputs.sum(), words)
    assert torch.isfinite(outputs).all()
    assert torch.isfinite(gradient).all()


def test_the_pairs_of_a_sentence_are_never_held_at_once() -> None:
    """8,000 words have 64,000,000 pairs, 256 MB: torch's profiler sees a small part of that, forwards and backwards."""
    attention = PairwiseSelfAttention(small_config(), 6, 8)
    words = torch.randn(8000, 6, requires_grad=True)
    with torch.profiler.profile(profile_memory=True) as profile:
        attention(words, packing_of([8000])).sum().backward()
    events = profile.events()
    assert events is not None
    largest = max(event.cpu_memory_usage for event in events)
    assert 8000 * 8 * 4 <= largest < 20e6
