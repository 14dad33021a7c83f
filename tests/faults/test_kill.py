"""A short form of the kill tests; CONTRIBUTING and the page on reliability name the long one."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_killed_runs_end_like_others() -> None:
    command = [sys.executable, str(Path(__file__).with_name("kill.py")), "--kills", "10", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout
    assert "10 kills, 0 faults" in done.stdout
