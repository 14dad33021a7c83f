"""modeling_dsa.encoders_dsa: the dense CNN is the paper's, and no layer of it sees two sentences."""

from typing import Any

import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import packing_of, randomize, small_config

from modeling_dsa.encoders_dsa import ConvLayer, DenseCNN

CONFIGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "one branch": {"kernel_sizes": [3]},
    "kernel of one": {"kernel_sizes": [1]},
    "wide kernels": {"kernel_sizes": [7, 3, 1]},
    "four layers": {"num_hidden_layers": 4},
    "not normalised": {"normalize_words": False},
    "word_norm 3": {"word_norm": 3.0},
    "negative_slope 0.3": {"negative_slope": 0.3},
}


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_encoder_equals_the_paper_word_by_word(changes: dict[str, Any]) -> None:
    config = small_config(**changes)
    encoder = randomize(DenseCNN(config)).double().eval()
    lengths = [4, 0, 1, 9, 2]
    words = torch.randn(sum(lengths), config.embedding_size, dtype=torch.float64)
    encoded, branches = encoder(words, packing_of(lengths), output_hidden_states=True)
    assert len(branches) == len(config.kernel_sizes)

    weights = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    start = 0
    for length in lengths:
        place = slice(start, start + length)
        expected_branches, expected = reference.dense_cnn(weights, config, list(words[place]))
        if length:
            torch.testing.assert_close(encoded[place], torch.stack(expected), rtol=0, atol=1e-10)
            for branch, expected_branch in zip(branches, expected_branches, strict=True):
                torch.testing.assert_close(branch[place], torch.stack(expected_branch), rtol=0, atol=1e-10)
        start += length


@pytest.mark.parametrize("word_norm", [1.0, 4.0])
def test_every_encoded_word_has_the_norm_of_the_config(word_norm: float) -> None:
    encoder = randomize(DenseCNN(small_config(word_norm=word_norm)))
    encoded, _ = encoder(torch.randn(8, 6), packing_of([3, 5]), False)
    torch.testing.assert_close(encoded.norm(dim=1), torch.full((8,), word_norm))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=6).filter(any),
    st.sampled_from([(3, 5), (7,), (1, 9), (1,)]),
    st.integers(1, 3),
    st.booleans(),
    st.data(),
)
def test_no_layer_reaches_across_two_sentences(
    lengths: list[int], kernel_sizes: tuple[int, ...], layers: int, training: bool, data: st.DataObject
) -> None:
    """A sentence's gradient is exactly 0 at all other sentences' words, and perturbing them does nothing."""
    torch.manual_seed(0)
    config = small_config(kernel_sizes=kernel_sizes, num_hidden_layers=layers)
    encoder = randomize(DenseCNN(config)).double().train(training)
    packing = packing_of(lengths)
    inside = packing.sentence_of_word == data.draw(st.sampled_from([n for n, length in enumerate(lengths) if length]))
    words = torch.randn(sum(lengths), config.embedding_size, dtype=torch.float64, requires_grad=True)

    torch.manual_seed(0)  # for the dropout masks
    encoded, branches = encoder(words, packing, output_hidden_states=True)
    (gradient,) = torch.autograd.grad(encoded[inside].square().sum() + branches[0][inside].sum(), words)
    assert torch.all(gradient[~inside] == 0)
    assert torch.any(gradient[inside] != 0)

    torch.manual_seed(0)
    perturbed, _ = encoder(torch.where(inside[:, None], words, 1e6), packing, output_hidden_states=False)
    torch.testing.assert_close(perturbed[inside], encoded[inside], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kernel", "layers"), [(3, 2), (5, 2), (3, 4), (1, 3)])
def test_a_word_sees_layers_times_half_a_kernel_to_each_side(kernel: int, layers: int) -> None:
    config = small_config(kernel_sizes=[kernel], num_hidden_layers=layers)
    encoder = randomize(DenseCNN(config)).double().eval()
    words = torch.randn(31, config.embedding_size, dtype=torch.float64, requires_grad=True)
    encoded, _ = encoder(words, packing_of([31]), output_hidden_states=False)
    (gradient,) = torch.autograd.grad(encoded[15].sum(), words)
    reach = layers * (kernel // 2)
    seen = gradient.abs().sum(1).nonzero().flatten().tolist()
    assert seen == list(range(15 - reach, 15 + reach + 1))


@pytest.mark.parametrize("lengths", [[1], [4, 0, 5], [40] * 9, [25] * 40], ids=["1", "9", "360", "1000"])
def test_the_layers_compute_words_and_gaps_and_little_else(lengths: list[int]) -> None:
    """Rows may be rounded up, by a sixteenth or by 15."""
    encoder = DenseCNN(small_config(kernel_sizes=[3, 7]))
    seen: list[int] = []
    for layer in encoder.modules():
        if isinstance(layer, ConvLayer):
            layer.register_forward_hook(lambda module, inputs, output: seen.append(output.shape[0]))
    encoder(torch.randn(sum(lengths), 6), packing_of(lengths), output_hidden_states=False)
    rows = sum(lengths) + 3 * (len(lengths) - 1)
    assert len(seen) == 2 * 3 + 1
    assert len(set(seen)) == 1
    assert rows <= seen[0] <= max(rows + 15, rows * 17 / 16)


def test_dropout_of_the_layers_acts_in_training_only() -> None:
    encoder = DenseCNN(small_config(hidden_dropout=0.5))
    words, packing = torch.randn(9, 6), packing_of([4, 5])
    assert not torch.equal(encoder(words, packing, False)[0], encoder(words, packing, False)[0])
    encoder.eval()
    assert torch.equal(encoder(words, packing, False)[0], encoder(words, packing, False)[0])
