"""The lock of a run's folder: held by one process, and by none that is dead."""

import subprocess
import sys
from pathlib import Path

import pytest

from run_glue_style.training.folder_lock import locked_folder

HOLD = """
import sys
from pathlib import Path
from run_glue_style.training.folder_lock import locked_folder
with locked_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match=rf"{folder} is in use by another run \(process {first.pid} on "):
            locked_folder(folder).__enter__()
        first.kill()
    with locked_folder(folder):
        pass
    assert not list(folder.iterdir())


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text\n")
    for folder in (file, file / "run"):
        with pytest.raises(ValueError, match=rf"^{file} is a file: give --output_dir a folder\.$"):
            locked_folder(folder).__enter__()
    with pytest.raises(ValueError, match=r"^s3:/bucket/run is a URL, .* alone: give another --output_dir\.$"):
        locked_folder(Path("s3://bucket/run")).__enter__()


def test_folders_that_were_made_for_nothing_go(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing to read"), locked_folder(tmp_path / "runs" / "one"):
        raise OSError("nothing to read")
    assert not list(tmp_path.iterdir())
