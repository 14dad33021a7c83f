"""modeling_dsa.command.launchers: which process this is, by the variables that launchers set."""

import pytest

from modeling_dsa.command.launchers import Process


def test_process_comes_from_the_launchers_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert Process.from_environment() == Process(0, 1)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="RANK=1 and WORLD_SIZE=1 in the environment name no process"):
        Process.from_environment()
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert Process.from_environment() == Process(1, 3)
    monkeypatch.setenv("WORLD_SIZE", "x")
    with pytest.raises(ValueError, match="WORLD_SIZE=x"):
        Process.from_environment()
    monkeypatch.delenv("RANK")
    for name in ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv("WORLD_SIZE", raising=False)
        monkeypatch.setenv(name, "4")
        with pytest.raises(ValueError, match="The launcher started 4 processes, and none is told its number: set RANK"):
            Process.from_environment()
