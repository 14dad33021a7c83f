"""modeling_dsa.encoders_dsa: every encoder equals its equations token by token, and none sees two sentences."""

from typing import Any

import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import ENCODER_CASES, packing_of, randomize, small_config
from torch import Tensor, nn

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.encoders_dsa import ENCODERS, BiLSTM, DenseCNN
from modeling_dsa.layers_dsa import ConvLayer

CONFIGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "one branch": {"kernel_sizes": [3]},
    "kernel of one": {"kernel_sizes": [1]},
    "wide kernels": {"kernel_sizes": [7, 3, 1]},
    "four layers": {"num_hidden_layers": 4},
    "negative_slope 0.3": {"negative_slope": 0.3},
    **ENCODER_CASES,
    "kim_cnn, kernels of one to eight": {"encoder": "kim_cnn", "kernel_sizes": [1, 8, 5, 6], "hidden_size": 8},
    "kim_cnn, negative_slope 0.3": {"encoder": "kim_cnn", "kernel_sizes": [3], "negative_slope": 0.3},
    "bilstm of one layer": {"encoder": "bilstm", "hidden_size": 6, "num_hidden_layers": 1},
    "bilstm of three layers": {"encoder": "bilstm", "hidden_size": 2, "num_hidden_layers": 3},
    "pairwise of one layer": {"encoder": "pairwise", "num_hidden_layers": 1, "negative_slope": 0.3},
}


def encoder_of(config: DSAConfig) -> nn.Module:
    return randomize(ENCODERS[config.encoder](config)).double()


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS.keys())
def test_every_encoder_equals_its_equations_token_by_token(changes: dict[str, Any]) -> None:
    config = small_config(**changes)
    encoder = encoder_of(config).eval()
    lengths = [4, 0, 1, 9, 2, 14]
    tokens = torch.randn(sum(lengths), config.embedding_size, dtype=torch.float64)
    encoded, between = encoder(tokens, packing_of(lengths), output_hidden_states=True)
    assert encoded.shape == (sum(lengths), config.encoded_size)

    weights = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    start = 0
    for length in lengths:
        span = slice(start, start + length)
        expected_between, expected = reference.encode_tokens(weights, config, list(tokens[span]))
        assert len(between) == len(expected_between)
        if length:
            torch.testing.assert_close(encoded[span], torch.stack(expected), rtol=0, atol=1e-10)
            for layer, expected_layer in zip(between, expected_between, strict=True):
                torch.testing.assert_close(layer[span], torch.stack(expected_layer), rtol=0, atol=1e-10)
        start += length
    assert torch.equal(encoder(tokens, packing_of(lengths), output_hidden_states=False)[0], encoded)
    assert encoder(tokens, packing_of(lengths), output_hidden_states=False)[1] == []


@pytest.mark.parametrize("changes", [{}, *ENCODER_CASES.values()], ids=["dense_cnn", *ENCODER_CASES])
def test_every_encoded_token_has_the_norm_of_the_config(changes: dict[str, Any]) -> None:
    model = randomize(DSAModel(small_config(token_norm=4.0, **changes))).eval()
    encoded = model(torch.arange(3, 11).view(2, 4)).last_hidden_state.flatten(0, 1)
    torch.testing.assert_close(encoded.norm(dim=1), torch.full((8,), 4.0))


def test_a_bilstm_equals_torchs_bidirectional_lstm() -> None:
    """The same weights in torch's own module, on a `PackedSequence`."""
    config = small_config(encoder="bilstm", hidden_size=6, num_hidden_layers=2)
    encoder = randomize(BiLSTM(config)).double().eval()
    outside = nn.LSTM(6, 3, num_layers=2, bidirectional=True, batch_first=True).double()
    state: dict[str, Tensor] = {}
    for direction, suffix in ((encoder.forwards, ""), (encoder.backwards, "_reverse")):
        for number, layer in enumerate(direction):
            values = layer.state_dict().items()
            state |= {f"{name.removesuffix('_l0')}_l{number}{suffix}": value for name, value in values}
    outside.load_state_dict(state)
    lengths = [3, 8, 1, 5, 20]
    tokens = torch.randn(sum(lengths), 6, dtype=torch.float64, requires_grad=True)
    encoded, _ = encoder(tokens, packing_of(lengths), output_hidden_states=False)
    sequence = nn.utils.rnn.pack_sequence(list(tokens.split(lengths)), enforce_sorted=False)
    padded, _ = nn.utils.rnn.pad_packed_sequence(outside(sequence)[0], batch_first=True)
    expected = torch.cat([row[:length] for row, length in zip(padded, lengths, strict=True)])
    torch.testing.assert_close(encoded, expected, rtol=0, atol=1e-12)
    direction_of_gradient = torch.randn_like(expected)
    ours = torch.autograd.grad(encoded, tokens, direction_of_gradient)
    theirs = torch.autograd.grad(expected, tokens, direction_of_gradient)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("changes", ENCODER_CASES.values(), ids=ENCODER_CASES.keys())
@settings(max_examples=15)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=6).filter(any), st.booleans(), st.data())
def test_no_other_encoder_reaches_across_two_sentences(
    changes: dict[str, Any], lengths: list[int], training: bool, data: st.DataObject
) -> None:
    torch.manual_seed(0)
    encoder = encoder_of(small_config(**changes)).train(training)
    number = data.draw(st.sampled_from([n for n, length in enumerate(lengths) if length]))
    packing = packing_of(lengths)
    inside = packing.sentence_of_token == number
    tokens = torch.randn(sum(lengths), 6, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)  # for the dropout masks
    encoded, _ = encoder(tokens, packing, output_hidden_states=False)
    (gradient,) = torch.autograd.grad(encoded[inside].square().sum(), tokens)
    assert torch.all(gradient[~inside] == 0)
    assert torch.any(gradient[inside] != 0)
    torch.manual_seed(0)
    perturbed, _ = encoder(torch.where(inside[:, None], tokens, 1e3), packing, output_hidden_states=False)
    torch.testing.assert_close(perturbed[inside], encoded[inside], rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", ["bilstm", "pairwise", "directional", "distance"])
def test_every_token_sees_its_whole_sentence(encoder: str) -> None:
    config = small_config(encoder=encoder, hidden_size=6, num_hidden_layers=1, encoder_attention_heads=1)
    layers = encoder_of(config).eval()
    tokens = torch.randn(20, 6, dtype=torch.float64, requires_grad=True)
    encoded, _ = layers(tokens, packing_of([20]), output_hidden_states=False)
    (gradient,) = torch.autograd.grad(encoded[7].sum(), tokens)
    assert torch.all(gradient.abs().sum(1) > 0)


@pytest.mark.parametrize(("kernel", "before", "after"), [(1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 2, 1), (5, 2, 2)])
def test_a_window_of_kims_cnn(kernel: int, before: int, after: int) -> None:
    encoder = encoder_of(small_config(encoder="kim_cnn", kernel_sizes=[kernel])).eval()
    tokens = torch.randn(21, 6, dtype=torch.float64, requires_grad=True)
    encoded, _ = encoder(tokens, packing_of([21]), output_hidden_states=False)
    (gradient,) = torch.autograd.grad(encoded[10].sum(), tokens)
    seen = gradient.abs().sum(1).nonzero().flatten().tolist()
    assert seen == list(range(10 - before, 10 + after + 1))


def test_a_reader_of_a_sentence_backwards_gives_the_mirror_of_one_forwards() -> None:
    """A BiLSTM whose directions have the same weights."""
    encoder = randomize(BiLSTM(small_config(encoder="bilstm", hidden_size=6, num_hidden_layers=1))).eval()
    encoder.backwards.load_state_dict(encoder.forwards.state_dict())
    tokens = torch.randn(7, 6)
    forwards, _ = encoder(tokens, packing_of([7]), output_hidden_states=False)
    backwards, _ = encoder(tokens.flip(0), packing_of([7]), output_hidden_states=False)
    torch.testing.assert_close(forwards, backwards.flip(0).roll(3, dims=1))


@settings(max_examples=60)
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
    """A sentence's gradient is exactly 0 at all other sentences' tokens, and perturbing them does nothing."""
    torch.manual_seed(0)
    config = small_config(kernel_sizes=kernel_sizes, num_hidden_layers=layers)
    encoder = randomize(DenseCNN(config)).double().train(training)
    packing = packing_of(lengths)
    inside = packing.sentence_of_token == data.draw(st.sampled_from([n for n, length in enumerate(lengths) if length]))
    tokens = torch.randn(sum(lengths), config.embedding_size, dtype=torch.float64, requires_grad=True)

    torch.manual_seed(0)  # for the dropout masks
    encoded, branches = encoder(tokens, packing, output_hidden_states=True)
    (gradient,) = torch.autograd.grad(encoded[inside].square().sum() + branches[0][inside].sum(), tokens)
    assert torch.all(gradient[~inside] == 0)
    assert torch.any(gradient[inside] != 0)

    torch.manual_seed(0)
    perturbed, _ = encoder(torch.where(inside[:, None], tokens, 1e6), packing, output_hidden_states=False)
    torch.testing.assert_close(perturbed[inside], encoded[inside], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kernel", "layers"), [(3, 2), (5, 2), (3, 4), (1, 3)])
def test_a_token_sees_layers_times_half_a_kernel_to_each_side(kernel: int, layers: int) -> None:
    config = small_config(kernel_sizes=[kernel], num_hidden_layers=layers)
    encoder = randomize(DenseCNN(config)).double().eval()
    tokens = torch.randn(31, config.embedding_size, dtype=torch.float64, requires_grad=True)
    encoded, _ = encoder(tokens, packing_of([31]), output_hidden_states=False)
    (gradient,) = torch.autograd.grad(encoded[15].sum(), tokens)
    reach = layers * (kernel // 2)
    seen = gradient.abs().sum(1).nonzero().flatten().tolist()
    assert seen == list(range(15 - reach, 15 + reach + 1))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("lengths", [[1], [4, 0, 5], [40] * 9, [25] * 40], ids=["1", "9", "360", "1000"])
def test_the_layers_compute_tokens_and_little_else(lengths: list[int], training: bool) -> None:
    """Rows may be rounded up, by a sixteenth or by 15; gaps between sentences are computed in prediction only."""
    encoder = DenseCNN(small_config(kernel_sizes=[3, 7])).train(training)
    seen: list[int] = []
    for layer in encoder.modules():
        if isinstance(layer, ConvLayer):
            layer.register_forward_hook(lambda module, inputs, output: seen.append(output.shape[0]))
    encoder(torch.randn(sum(lengths), 6), packing_of(lengths), output_hidden_states=False)
    rows = sum(lengths) + (0 if training else 3 * (len(lengths) - 1))
    assert len(seen) == 2 * 3 + 1
    assert len(set(seen)) == 1
    assert rows <= seen[0] <= max(rows + 15, rows * 17 / 16)


@pytest.mark.parametrize("name", [name for name in ENCODERS if "hidden_dropout" in ENCODERS[name].own_fields])
def test_dropout_of_the_layers_acts_in_training_only(name: str) -> None:
    encoder = ENCODERS[name](small_config(encoder=name, hidden_size=6, hidden_dropout=0.5, encoder_attention_heads=1))
    tokens, packing = torch.randn(9, 6), packing_of([4, 5])
    assert not torch.equal(encoder(tokens, packing, False)[0], encoder(tokens, packing, False)[0])
    encoder.eval()
    assert torch.equal(encoder(tokens, packing, False)[0], encoder(tokens, packing, False)[0])
