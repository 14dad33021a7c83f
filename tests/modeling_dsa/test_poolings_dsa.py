"""modeling_dsa.poolings_dsa: every pooling against explicit loops, an outside implementation and gradcheck."""

import importlib
import importlib.util
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import reference
import torch
from small_models import POOLING_CASES, WITHOUT_WEIGHTS, packing_of, randomize, small_config
from torch import Tensor, nn
from torch.func import functional_call

from modeling_dsa import DSAConfig
from modeling_dsa.poolings_dsa import POOLINGS, DynamicSelfAttention, StructuredSelfAttention, dynamic_routing

LENGTHS = [4, 0, 1, 6, 2]
CASES: dict[str, dict[str, Any]] = {
    "dynamic": {"num_attention_heads": 2, "routing_iterations": 3},
    **POOLING_CASES,
    "static, two heads": {"pooling": "static", "num_attention_heads": 2},
    "structured, one hop": {"pooling": "structured"},
    "pairwise by position, two heads": POOLING_CASES["variational by position"] | {"pooling": "pairwise"},
}


def pooling_of(config: DSAConfig) -> nn.Module:
    return randomize(POOLINGS[config.pooling](config, config.encoded_size))


@pytest.fixture
def float64() -> Iterator[None]:
    """Everything in float64, also the tensors that an outside implementation makes."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("iterations", "scale"), [(1, 1.0), (2, 1.0), (3, 0.3), (4, 5.0), (5, 0.3)])
def test_routing_equals_algorithm_1(iterations: int, scale: float) -> None:
    torch.manual_seed(0)
    values = torch.randn(3, sum(LENGTHS), 4, dtype=torch.float64)
    vectors, attentions = dynamic_routing(values, packing_of(LENGTHS), iterations, scale)
    assert vectors.shape == (len(LENGTHS), 3, 4)
    assert len(attentions) == iterations
    for head in range(3):
        start = 0
        for number, length in enumerate(LENGTHS):
            tokens = list(values[head, start : start + length])
            expected, expected_attentions = reference.dynamic_attention(tokens, iterations, scale, 4)
            torch.testing.assert_close(vectors[number, head], expected, rtol=0, atol=1e-10)
            for attention, weights in zip(attentions, expected_attentions, strict=True):
                assert attention[head, start : start + length].tolist() == pytest.approx(
                    [weight.item() for weight in weights], abs=1e-10
                )
            start += length


def test_one_iteration_is_the_mean() -> None:
    values = torch.randn(2, 5, 4)
    vectors, (weights,) = dynamic_routing(values, packing_of([2, 3]), 1, 1.0)
    torch.testing.assert_close(vectors[1], values[:, 2:].mean(1).tanh())
    torch.testing.assert_close(weights[:, :2], torch.full((2, 2), 0.5))


@pytest.mark.parametrize("scale", [1.0, 2.5])
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
def test_gradcheck_of_the_routing(iterations: int, scale: float) -> None:
    torch.manual_seed(0)
    packing = packing_of([3, 0, 1, 2])
    values = torch.randn(2, 6, 3, dtype=torch.float64, requires_grad=True)

    def route(values: Tensor) -> tuple[Tensor, ...]:
        vectors, attentions = dynamic_routing(values, packing, iterations, scale)
        return vectors, *attentions[1:]  # the first weights depend on nothing

    assert torch.autograd.gradcheck(route, values)


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_every_pooling_equals_its_equations_token_by_token(changes: dict[str, Any]) -> None:
    config = small_config(**changes)
    pooling = pooling_of(config).double().eval()
    tokens = torch.randn(sum(LENGTHS), config.encoded_size, dtype=torch.float64)
    pooled = pooling(tokens, packing_of(LENGTHS))
    assert pooled.vectors.shape == (1, len(LENGTHS), config.sentence_embedding_size)
    assert pooled.kl is None
    assert pooled.attentions_std is None
    assert (pooled.penalty is not None) == (config.pooling == "structured")

    weights = {f"pooling.{name}": value for name, value in pooling.state_dict().items()}
    start = 0
    for number, length in enumerate(LENGTHS):
        if not length:
            assert torch.all(pooled.vectors[0, number] == 0)
            continue
        span = slice(start, start + length)
        expected_attentions, expected = reference.pool(weights, config, list(tokens[span]))
        torch.testing.assert_close(pooled.vectors[0, number], expected, rtol=0, atol=1e-10)
        assert len(pooled.attentions) == len(expected_attentions)
        for attention, heads in zip(pooled.attentions, expected_attentions, strict=True):
            rows = torch.stack([torch.stack(head) for head in heads])
            tolerance = 1e-7 if config.pooling == "max" else 1e-10  # max's shares are float32: nothing is made of them
            torch.testing.assert_close(attention[:, span].double(), rows, rtol=0, atol=tolerance)
        if config.pooling == "structured":
            penalty = reference.structured_penalty(expected_attentions[0])
            torch.testing.assert_close(pooled.penalty[number], penalty, rtol=0, atol=1e-10)
        start += length


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("variational")])  # has its own test
def test_gradcheck_of_a_whole_pooling(name: str) -> None:
    config = small_config(**CASES[name], attention_hidden_size=3)
    pooling = pooling_of(config).double().eval()
    names = [name for name, _ in pooling.named_parameters()]
    packing = packing_of([3, 0, 1, 2])
    tokens = torch.randn(6, config.encoded_size, dtype=torch.float64, requires_grad=True)

    def pool(tokens: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        pooled = functional_call(pooling, dict(zip(names, weights, strict=True)), (tokens, packing))
        return pooled.vectors, *([] if pooled.penalty is None else [pooled.penalty])

    assert torch.autograd.gradcheck(pool, (tokens, *pooling.parameters()))


def test_one_hop_has_no_other_to_differ_from_but_is_drawn_to_one_word() -> None:
    """||a . a - 1||^2, 0 where all the weight lies on one token."""
    pooling = pooling_of(small_config(pooling="structured"))
    pooled = pooling(torch.randn(7, 5), packing_of([1, 6]))
    assert pooled.penalty[0].item() == pytest.approx(0, abs=1e-10)
    assert pooled.penalty[1].item() > 0.1


def test_two_equal_hops_are_penalised_more_than_two_different_ones() -> None:
    pooling = randomize(StructuredSelfAttention(small_config(num_attention_heads=2), 5))
    tokens, packing = torch.randn(6, 5), packing_of([6])
    different = pooling(tokens, packing).penalty
    with torch.no_grad():
        pooling.score.weight[1] = pooling.score.weight[0]
    assert pooling(tokens, packing).penalty > different


def test_the_maximum_of_a_sentence_without_tokens_hurts_no_gradient() -> None:
    tokens = torch.randn(3, 5, requires_grad=True)
    pooled = pooling_of(small_config(pooling="max"))(tokens, packing_of([0, 2, 0, 1]))
    (gradient,) = torch.autograd.grad(pooled.vectors.sum(), tokens)
    assert gradient.sum().item() == 10  # one token for each channel of the two sentences with tokens
    assert torch.all((gradient == 0) | (gradient == 1))


@pytest.mark.parametrize(
    "name", [name for name, changes in CASES.items() if changes.get("pooling") not in WITHOUT_WEIGHTS]
)
def test_a_sentence_of_one_token_gives_it_all_weight(name: str) -> None:
    pooled = pooling_of(small_config(**CASES[name])).eval()(torch.randn(1, 5), packing_of([1]))
    for attention in pooled.attentions:
        assert torch.equal(attention, torch.ones(len(attention), 1))


@pytest.fixture
def outside_encoder(monkeypatch: pytest.MonkeyPatch) -> type[nn.Module]:
    """`DynamicSelfAttentionEncoder` of pytorch-wrapper.

    Importing the package would import all of it, with what it needs. So its packages enter `sys.modules` without
    their `__init__`, and only the modules that the encoder reads are run.
    """
    spec = importlib.util.find_spec("pytorch_wrapper")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("pytorch-wrapper is not installed: pip install --no-deps pytorch-wrapper==1.1.0")
    folder = Path(spec.submodule_search_locations[0])
    packages = {"pytorch_wrapper": folder, "pytorch_wrapper.modules": folder / "modules"}
    for name, path in packages.items():
        package = ModuleType(name)
        package.__path__ = [str(path)]
        monkeypatch.setitem(sys.modules, name, package)
    mlp = importlib.import_module("pytorch_wrapper.modules.mlp")
    monkeypatch.setattr(sys.modules["pytorch_wrapper.modules"], "MLP", mlp.MLP, raising=False)
    module = importlib.import_module("pytorch_wrapper.modules.dynamic_self_attention_encoder")
    encoder: type[nn.Module] = module.DynamicSelfAttentionEncoder
    return encoder


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
def test_routing_agrees_with_pytorch_wrapper(outside_encoder: type[nn.Module], iterations: int, heads: int) -> None:
    lengths = [4, 1, 6, 2]
    ours = randomize(DynamicSelfAttention(small_config(num_attention_heads=heads, routing_iterations=iterations), 5))
    theirs = outside_encoder(5, att_scores_nb=heads, att_iterations=iterations, projection_size=4)
    (linear,) = (module for module in theirs.modules() if isinstance(module, nn.Linear))
    projection = ours.projection.state_dict()
    linear.load_state_dict({"weight": projection["weight"][:, :, 0], "bias": projection["bias"]})

    tokens = torch.randn(sum(lengths), 5, requires_grad=True)
    padded = nn.utils.rnn.pad_sequence(list(tokens.split(lengths)), batch_first=True)  # (batch, tokens, 5)
    our_vectors = ours(tokens, packing_of(lengths)).vectors[0]
    their_vectors = theirs(padded, torch.tensor(lengths))
    torch.testing.assert_close(our_vectors, their_vectors, rtol=0, atol=1e-12)
    direction = torch.randn_like(our_vectors)
    our_gradient = torch.autograd.grad(our_vectors, tokens, direction)
    their_gradient = torch.autograd.grad(their_vectors, tokens, direction)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=0, atol=1e-12)


# Weights by position differ over equal tokens, and so does what tokens know of those before them.
HALF = {
    name: changes
    for name, changes in POOLING_CASES.items()
    if name not in (*WITHOUT_WEIGHTS, "reinforced") and "latent" not in changes
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("changes", [{}, *HALF.values()], ids=["dynamic", *HALF])
def test_half_precision_tokens_are_weighed_in_float32(changes: dict[str, Any], dtype: torch.dtype) -> None:
    """Over 2,000 equal tokens the mean must not drift, nor the weights stop summing to 1."""
    pooling = pooling_of(small_config(**changes)).to(dtype).eval()
    token = torch.randn(1, 5).to(dtype)
    packing = packing_of([2000, 1])
    pooled = pooling(token.expand(2001, 5), packing)
    (vectors,), attentions = pooled.vectors, pooled.attentions
    assert vectors.dtype == dtype
    assert attentions[-1].dtype == torch.float32
    assert attentions[-1][0, :2000].sum().item() == pytest.approx(1, abs=1e-4)
    torch.testing.assert_close(vectors[0], vectors[1], rtol=0, atol=4 * torch.finfo(dtype).eps)


def test_extreme_scores_stay_finite() -> None:
    values = torch.randn(1, 5, 8) * 1000
    values.requires_grad_()
    vectors, attentions = dynamic_routing(values, packing_of([2, 3]), 5, 1000.0)
    (gradient,) = torch.autograd.grad(vectors.sum(), values)
    assert all(torch.isfinite(tensor).all() for tensor in (vectors, gradient, *attentions))
    assert math.isclose(attentions[-1][0, :2].sum().item(), 1, abs_tol=1e-6)
