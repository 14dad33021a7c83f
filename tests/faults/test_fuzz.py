"""What the fuzzing tool has found stays fixed, and a short form of it; the page on reliability names the long one."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_targets import Target, read_or_refuse, targets

TOOL = Path(__file__).with_name("fuzz.py")
FINDINGS = sorted(path for path in TOOL.with_name("findings").glob("*/*"))


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    return {name.replace(" ", "-"): target for name, target in targets(tmp_path_factory.mktemp("model")).items()}


def test_a_file_that_did_harm_is_read_or_refused_with_a_sentence(readers: dict[str, Target], tmp_path: Path) -> None:
    assert FINDINGS
    for number, finding in enumerate(FINDINGS):
        path = tmp_path / str(number) / finding.name.partition("-")[2]
        path.parent.mkdir()
        path.write_bytes(finding.read_bytes())
        read_or_refuse(readers[finding.parent.name], path)


@pytest.mark.slow
def test_files_with_random_changes_are_read_or_refused_with_a_sentence() -> None:
    done = subprocess.run([sys.executable, TOOL, "--mutations", "25", "--seed", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count(" 0 faults") == len(done.stdout.splitlines()) > 10
