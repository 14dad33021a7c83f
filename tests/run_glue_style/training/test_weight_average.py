"""The exponential average of the weights."""

from pathlib import Path

import pytest
import torch
from torch import nn

from run_glue_style.training.weight_average import WeightAverage


def make_model() -> nn.Sequential:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 3), nn.BatchNorm1d(3))
    model[0].requires_grad_(False)
    return model


def change(model: nn.Module) -> None:
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.copy_(torch.randn(tensor.shape) * 10)


def test_average_is_that_of_the_formula_also_for_statistics() -> None:
    model = make_model()
    average = WeightAverage(model, 0.3)
    expected = {name: tensor.double() for name, tensor in model.state_dict().items()}
    for update in range(6):
        change(model)
        average.update()
        decay = min(0.3, (1 + update) / (10 + update))
        for name, tensor in model.state_dict().items():
            expected[name] = decay * expected[name] + (1 - decay) * tensor.double()
    with average.applied():
        for name in ("1.weight", "1.bias", "2.weight", "2.running_mean", "2.running_var"):
            torch.testing.assert_close(model.state_dict()[name].double(), expected[name], rtol=1e-5, atol=1e-5)


def test_block_leaves_live_weights_as_they_were_also_after_an_error() -> None:
    model = make_model()
    average = WeightAverage(model, 0.9)
    change(model)
    average.update()
    live = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def fail() -> None:
        with average.applied():
            assert not torch.equal(model.state_dict()["1.weight"], live["1.weight"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert all(torch.equal(tensor, live[name]) for name, tensor in model.state_dict().items())


def test_frozen_table_is_left_out() -> None:
    model = make_model()
    average = WeightAverage(model, 0.9)
    assert sum(tensor.numel() for tensor in average.state_dict()["average"]) == (3 * 3 + 3) + 2 * 3 + 2 * 3
    table = model.get_parameter("0.weight").clone()
    with average.applied():
        assert torch.equal(model.get_parameter("0.weight"), table)


def test_state_survives_a_file(tmp_path: Path) -> None:
    model = make_model()
    average = WeightAverage(model, 0.9)
    change(model)
    average.update()
    torch.save(average.state_dict(), tmp_path / "state")
    other = WeightAverage(model, 0.9)
    other.load_state_dict(torch.load(tmp_path / "state"))
    change(model)
    average.update()
    other.update()
    assert other.updates == average.updates == 2
    for ours, theirs in zip(other.state_dict()["average"], average.state_dict()["average"], strict=True):
        assert torch.equal(ours, theirs)


def test_saved_state_does_not_change_with_later_updates() -> None:
    model = make_model()
    average = WeightAverage(model, 0.9)
    saved = average.state_dict()
    before = [tensor.clone() for tensor in saved["average"]]
    change(model)
    average.update()
    assert all(map(torch.equal, saved["average"], before))
