"""modeling_dsa.command.device: where a model computes if nobody says it."""

import pytest
import torch

from modeling_dsa.command.device import default_device


@pytest.mark.parametrize(
    ("gpus", "rank", "device"), [(0, "3", "cpu"), (2, None, "cuda:0"), (2, "1", "cuda:1"), (2, "3", "cuda:1")]
)
def test_processes_share_the_gpus_there_are(
    gpus: int, rank: str | None, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    assert default_device() == device
