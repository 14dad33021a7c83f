"""Batch normalisation without dropout's statistics, and over processes against torch's over all their examples."""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import start_processes

from run_glue_style.training.batch_norm import GlobalBatchNorm1d, recalibrate_batch_norm, share_batch_norm

SIZES = (5, 4)  # examples of each process


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dropout(features))  # type: ignore[no-any-return]


def test_statistics_are_those_of_the_batches_without_dropout() -> None:
    torch.manual_seed(0)
    model = Noisy()
    batches = [torch.randn(8, 3) + 5 for _ in range(4)]
    for batch in batches:
        model.train()(batch)
    recalibrate_batch_norm(model, [{"features": batch} for batch in batches])
    norm = model.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    torch.testing.assert_close(norm.running_mean, torch.stack([batch.mean(0) for batch in batches]).mean(0))
    torch.testing.assert_close(norm.running_var, torch.stack([batch.var(0) for batch in batches]).mean(0))
    assert norm.momentum == 0.1
    assert not model.training
    assert not norm.training


def test_a_model_without_batch_norm_is_left_alone() -> None:
    model = nn.Linear(3, 3)
    recalibrate_batch_norm(model, [{"input": torch.zeros(1, 3)}])
    assert not model.training


def make() -> nn.Sequential:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).double()
    nn.init.normal_(model.get_parameter("1.weight"))
    return model


def features() -> torch.Tensor:
    return torch.randn(2, sum(SIZES), 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 3 + 50


def work(rank: int, folder: str) -> None:
    """One process: two batches forward and backward, then statistics without momentum, on its examples."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=len(SIZES))
    model = make()
    share_batch_norm(model)
    outputs = []
    batches = [batch.split(SIZES)[rank] for batch in features()]
    for batch in batches:
        output = model(batch)
        outputs.append(output.detach())
        (output**3).sum().backward()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    recalibrate_batch_norm(model, [{"input": batch} for batch in batches])
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    torch.save((outputs, state, gradients, model.state_dict(), model(features()[0])), f"{folder}/{rank}")
    dist.destroy_process_group()


def test_processes_normalise_like_one_that_has_all_examples(tmp_path: Path) -> None:
    # Forks import nothing again; beside a GPU, whose backward pass has threads, torch refuses one in a fork.
    start = "spawn" if torch.cuda.is_available() else "fork"
    start_processes(work, (str(tmp_path),), nprocs=len(SIZES), start_method=start)
    found = [torch.load(tmp_path / str(rank)) for rank in range(len(SIZES))]
    model = make()
    for number, batch in enumerate(features()):
        output = model(batch)
        (output**3).sum().backward()
        torch.testing.assert_close(torch.cat([process[0][number] for process in found]), output.detach())
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    recalibrate_batch_norm(model, [{"input": batch} for batch in features()])
    for _, state, summed, calibrated, predicted in found:
        torch.testing.assert_close(state, expected)
        torch.testing.assert_close(summed, gradients)
        torch.testing.assert_close(calibrated, dict(model.state_dict()))
        torch.testing.assert_close(predicted, model(features()[0]))


def test_shared_norm_is_the_old_one_in_prediction() -> None:
    model, shared = make(), make()
    for batch in features():
        model(batch)
    shared.load_state_dict(model.state_dict())
    before = [(name, tensor.clone()) for name, tensor in shared.state_dict().items()]
    share_batch_norm(shared)
    assert type(shared[1]) is GlobalBatchNorm1d
    assert all(torch.equal(tensor, shared.state_dict()[name]) for name, tensor in before)
    assert torch.equal(shared.eval()(features()[0]), model.eval()(features()[0]))
