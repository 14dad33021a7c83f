"""reporting.entropy_history: from the files of runs to the picture."""

import gzip
import json
from pathlib import Path

import pytest

from run_glue_style.reporting.entropy_history import main


def write_run(path: Path, shares: list[list[float]] | None) -> str:
    history = [{"step": 10 * number, "attention_entropy": of_step} for number, of_step in enumerate(shares or [], 1)]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps({"history": history or [{"step": 10}]}).encode()))
    return str(path)


def test_runs_become_a_picture_twice(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "base" / "seed-0.json.gz", [[1.0, 0.9], [1.0, 0.7]]),
        write_run(tmp_path / "rate=0.5" / "seed-0.json.gz", [[0.8], [0.6]]),
    ]
    assert main([*runs, "--output", str(tmp_path / "entropy" / "plot")]) == 0
    assert {path.name for path in (tmp_path / "entropy").iterdir()} == {"plot.png", "plot.svg"}
    svg = (tmp_path / "entropy" / "plot.svg").read_text("utf-8")
    assert all(f"<!-- {text} -->" in svg for text in ("base/seed-0", "rate=0.5/seed-0", "iteration 2", "update"))


def test_runs_of_one_name_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for study in ("a", "b"):
        (tmp_path / study).mkdir()
    runs = [write_run(tmp_path / study / "base" / "seed-0.json.gz", [[0.8]]) for study in ("a", "b")]
    assert main([*runs, "--output", str(tmp_path / "plot")]) == 2
    assert "Two of the runs have one name" in caplog.messages[-1]


def test_a_run_that_recorded_nothing_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = write_run(tmp_path / "base" / "seed-0.json.gz", None)
    assert main([run, "--output", str(tmp_path / "plot")]) == 2
    assert "base/seed-0 did not record its attention: train it with --record_attention true." in caplog.messages[-1]
    whole = Path(run).read_bytes()
    Path(run).write_bytes(whole[: len(whole) // 2])
    assert main([run, "--output", str(tmp_path / "plot")]) == 2
    assert "seed-0.json.gz is no JSON, and so no results of a run" in caplog.messages[-1]
    assert not (tmp_path / "plot.png").exists()


@pytest.mark.parametrize(
    ("output", "said"),
    [(name, f"{name} names no picture: give a path without an extension") for name in (".", "..", "plot.png")]
    + [("s3://bucket/plot", "s3:/bucket is a URL, and this is written on this machine alone: give another --output")],
)
def test_an_output_that_names_no_picture_is_refused(
    output: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = write_run(tmp_path / "base" / "seed-0.json.gz", [[1.0]])
    monkeypatch.chdir(tmp_path / "base")
    assert main([run, "--output", output]) == 2
    assert said in caplog.messages[-1]
    assert [path.name for path in tmp_path.rglob("*")] == ["base", "seed-0.json.gz"]
