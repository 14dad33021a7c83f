"""run_glue_style.training.accelerator: what a launcher says of itself."""

from pathlib import Path

import pytest
from accelerate.state import AcceleratorState, GradientState

from run_glue_style.training.accelerator import make_accelerator
from run_glue_style.training.recipe import RunArguments


def test_tasks_of_slurm_that_do_not_know_each_other_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(ValueError, match="The launcher started 4 processes, but accelerate sees 1: each would train"):
        make_accelerator(RunArguments(output_dir=tmp_path, cpu=True, report_to="none"), tmp_path)
