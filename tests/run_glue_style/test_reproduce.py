"""A paper's table, from the command line to table.md."""

import gzip
import json
import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_results import write_results
from small_runs import SMALL_SIZES, as_arguments, pairs

from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from modeling_dsa.text.tokenization import count_words
from run_glue_style.reporting.published import read_published
from run_glue_style.reporting.tabulate import table_and_writer
from run_glue_style.reproduce import main
from run_glue_style.studies.process import run_to_end
from run_glue_style.studies.table_plan import plan_runs

FILES = {"train": "snli_1.0_train.jsonl", "validation": "snli_1.0_dev.jsonl", "test": "snli_1.0_test.jsonl"}


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Arguments that train one small system on pairs cut from the sample."""
    for split, name in FILES.items():
        lines = [json.dumps({**row, "label": NLI_CLASS_NAMES[row["label"]]}) for row in pairs(split)[:200]]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    generator = np.random.default_rng(0)
    words = [word for word in count_words((row["premise"] for row in pairs("train")), lowercase=True) if word.isalpha()]
    vectors = "".join(f"{word} {' '.join(f'{x:.3f}' for x in generator.normal(size=12))}\n" for word in words)
    (tmp_path / "vectors.txt").write_text(vectors)
    options: dict[str, Any] = {
        "table": "snli",
        "row": "dsa-single",
        "data_dir": tmp_path,
        "vectors": tmp_path / "vectors.txt",
        "output_dir": tmp_path / "runs",
    }
    return [*as_arguments(options), "--cpu", *as_arguments({**SMALL_SIZES, "report_to": "none"})]


def start(*words: str) -> "subprocess.Popen[str]":
    line = [sys.executable, "-m", "run_glue_style.reproduce", *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def error(caplog: pytest.LogCaptureFixture) -> str:
    """The one error that was logged."""
    (message,) = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert message.startswith("error: ")
    assert "\n" not in message
    return str(message)


@pytest.mark.slow
def test_interrupted_table_goes_on_and_is_not_made_twice(
    tmp_path: Path,
    command: list[str],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))  # of the processes that train
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    words = [*command, "--quick", "--max_train_steps", "400", "--checkpointing_steps", "20", "--num_train_epochs", "99"]
    folder = tmp_path / "runs-quick"
    run = folder / "dsa-single-snli" / "seed-0"
    process = start(*words)
    while not list(run.glob("checkpoints/step-*")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    written = process.communicate()[1]
    assert process.returncode == 130, written
    assert "the checkpoint is written" in written
    assert written.endswith("Stopped. The same command resumes here.\n")
    assert "Traceback" not in written
    assert not (folder / "table.md").exists()

    assert main(words) == 0
    printed, written = capfd.readouterr()
    assert "Resuming from" in written
    record = run.with_suffix(".json")
    all_results = json.loads((run / "all_results.json").read_text("utf-8"))
    assert json.loads(record.read_text("utf-8")).items() < all_results.items()
    assert all_results.pop("shown_examples")  # texts of the data stay in the folder of the run
    assert json.loads(gzip.decompress(run.with_suffix(".json.gz").read_bytes())) == all_results
    assert {path.name for path in folder.iterdir()} == {
        "dsa-single-snli",
        "plot.png",
        "plot.svg",
        "table.json",
        "table.md",
    }
    table = (folder / "table.md").read_text("utf-8")
    assert table == table_and_writer(folder)[0] == printed.removesuffix("\n")
    assert "quick trial" in table.splitlines()[0]
    assert "200 train, 200 validation, 200 test examples" in table
    assert "--max_train_samples 512" in table
    assert (run / "model.safetensors").is_file()

    before = record.stat().st_mtime_ns
    record.unlink()  # as if stopped between the end of the run and its record
    for made in (False, True):
        assert record.is_file() == made
        assert main(words) == 0  # nothing trains: the figures are those of before
        assert capfd.readouterr().out.removesuffix("\n") == table
    assert record.stat().st_mtime_ns > before
    assert main([*words, "--learning_rate", "0.1"]) == 2
    assert f"{record} is a run with other options" in error(caplog)
    assert (folder / "table.md").read_text("utf-8") == table


@pytest.mark.slow
def test_mistake_of_a_run_is_passed_on_with_its_name(
    command: list[str], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--max_train_samples", "1"]) == 2
    printed, written = capfd.readouterr()
    assert "All 1 training examples are 'neutral'" in written
    last = "error: Run 1 of 1: dsa-single-snli, seed-0 failed with exit code 2; its own error stands above."
    assert error(caplog) == last
    assert not printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--table ssst", "There is no table 'ssst'. Did you mean 'sst'?"),
        ("--table snli --row dsa-singel", "The table 'snli' has no row 'dsa-singel'. Did you mean 'dsa-single'?"),
        ("--table snli --row vsam-fnc1x", "has no row 'vsam-fnc1x'. There are: bilstm-inner-attention, "),
        ("--table sst", "needs data: give --data_dir, a folder with train.txt, dev.txt, test.txt."),
        ("--table fnc1 --vectors v.txt", "needs data: give --data_dir, a folder with train_stances.csv, "),
        ("--table sst --data_dir x", "The data in x need word vectors: give --vectors"),
        ("--table sst --data_dir x --vectors v.txt", "There is no x/train.txt: --data_dir must have train.txt, "),
        ("--table snli --seed 3", "Leave out --seed: give --seeds."),
        ("--table snli --overwrite-output-dir=yes", "Write --overwrite_output_dir in place of --overwrite-output-dir."),
        ("--table snli --setting=x", "Leave out --setting: give --row."),
        ("--table snli --rows dsa-single", "there is no option '--rows'. Did you mean '--row'?"),
        ("--table snli --learning_rat 0.1", "there is no option '--learning_rat'. Did you mean '--learning_rate'?"),
        (
            "--table snli --overwrite_output_dir",
            "Leave out --overwrite_output_dir: delete the runs",
        ),
    ],
)
def test_mistakes_get_one_sentence(words: str, message: str, caplog: pytest.LogCaptureFixture) -> None:
    assert main(words.split()) == 2
    assert message in error(caplog)


def test_a_run_that_says_nothing_of_its_options_does_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_results(tmp_path, "dsa-single-snli", 0, 0.6, command=["run_nli.py"])
    assert main(["--table", "snli", "--output_dir", str(tmp_path)]) == 2
    assert "asked for is '--setting dsa-single-snli --seed 0 --evaluate_train true'" in error(caplog)


def test_runs_of_another_table_in_the_folder_are_told_before_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_results(tmp_path, "vsam-fnc1", 0, 0.6)
    assert main(["--table", "snli", "--output_dir", str(tmp_path)]) == 2
    assert "runs of 'vsam-fnc1', which is no setting of the table 'snli'" in error(caplog)


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """A folder with the files of SST, empty: nothing reads them here."""
    for name in ("train.txt", "dev.txt", "test.txt"):
        (tmp_path / name).touch()
    return tmp_path


def test_runs_go_seed_by_seed_with_the_options_of_their_part(trees: Path) -> None:
    options = ["--vectors", "v.txt", "--recipe", "modern"]
    runs = plan_runs(read_published("sst"), ["bilstm", "kim-cnn-sst5"], 2, False, trees / "runs", trees, options)
    settings = ["bilstm-sst2", "bilstm-sst5", "kim-cnn-sst5"]
    assert [run.folder for run in runs] == [
        trees / "runs" / name / f"seed-{seed}" for seed in (0, 1) for name in settings
    ]
    data = ["--train_file", "train.txt", "--validation_file", "dev.txt", "--test_file", "test.txt"]
    assert runs[4].arguments == [
        *("--setting", "bilstm-sst5", "--seed", "1", "--classes", "5"),
        *(str(trees / word) if word.endswith(".txt") else word for word in data),
        *options,
    ]


def test_options_of_the_command_line_take_the_place_of_those_of_a_quick_trial() -> None:
    (run,) = plan_runs(
        read_published("snli"), ["bilstm-structured-5"], 1, True, Path("x"), None, ["--max_train_steps", "9"]
    )
    assert run.arguments[-2:] == ["--max_train_steps", "9"]
    assert run.arguments.count("--max_train_steps") == 1


def test_all_rows_of_a_table_are_planned(trees: Path) -> None:
    for name in ("snli", "sst"):
        table = read_published(name)
        data = None if table.data_ship else trees
        planned = plan_runs(table, [], 1, False, trees, data, ["--vectors", "v.txt"])
        assert [run.folder.parent.name for run in planned] == list(table.parts_of_settings())


def test_finished_runs_of_another_day_make_the_table(trees: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--vectors", "v.txt"]
    for run in plan_runs(read_published("sst"), ["bilstm"], 2, False, trees / "runs", trees, options):
        seed = int(run.arguments[3])
        command = ["run_sst.py", *run.arguments, "--output_dir", "another/folder"]
        write_results(trees / "runs", run.arguments[1], seed, 0.5 + seed / 10, command=command)
    words = ["--table", "sst", "--row", "bilstm", "--seeds", "2", "--data_dir", str(trees), *options]
    assert main([*words, "--output_dir", str(trees / "runs")]) == 0
    assert "| bilstm | 54.00 ± 7.07 | 87.5 | 54.00 ± 7.07 | 49.5 | 2 | 2,078,703 |" in capsys.readouterr().out
    assert (trees / "runs" / "plot.png").is_file()


def test_exit_code_of_a_command() -> None:
    assert run_to_end([sys.executable, "-c", "raise SystemExit(7)"]) == 7
    with pytest.raises(KeyboardInterrupt):
        run_to_end([sys.executable, "-c", "raise SystemExit(130)"])


def test_a_request_to_stop_reaches_the_command_once_and_counts_when_it_has_ended(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys, time\n"
        "got = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: got.append(1))\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "while not got: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "pathlib.Path(sys.argv[1]).write_text(str(len(got)))\n"
    )
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run_to_end([sys.executable, "-c", code, str(tmp_path / "count")])
    assert (tmp_path / "count").read_text() == "1"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
