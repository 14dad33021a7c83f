"""Kill real runs, start them again, and compare what they leave with what a run leaves that nothing stopped.

`python tests/faults/kill.py --kills 200` kills each kind of run in turn, at random moments and at aimed ones: right
before its n-th change of the file system. It prints a line for each run that ended otherwise, and counts by kind.
"""

import argparse
import faulthandler
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.update({"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"})
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import datasets
import pytest
import torch
from huggingface_hub import constants
from loopback_hub import LoopbackHub
from small_encoders import many_sentences
from small_repositories import save_system
from small_runs import SMALL_SIZES, pairs, run_main, write_pair_files
from small_teachers import save_teacher

from modeling_dsa.cli.main import main as dsa
from run_glue_style.distillation import teacher_cache
from run_glue_style.run_distillation import main as run_distillation
from run_glue_style.run_nli import main as run_nli
from run_glue_style.training import accelerator

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "open", "shutil.rmtree", "shutil.copyfile")
VARYING = ("train_seconds", "total_seconds", "tokens_per_second", "command", "environment")
LONGEST = 300.0  # seconds until a run hangs
accelerator.LONGEST_MEETING = 30.0  # the runs start within a second
Run = Callable[[Path], int]


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        run: Runs it into a folder and returns its exit code.
        left: What it leaves there that another one must leave too.
        processes: How many processes it has.
    """

    run: Run
    left: Callable[[Path], Any]
    processes: int = 1


def kinds(inputs: Path, hub: LoopbackHub) -> dict[str, Kind]:
    """All kinds of runs, on inputs that are written to a folder; one pushes to a Hub."""
    data = write_pair_files(inputs, {"train": 120, "validation": 40, "test": 30}, 12)
    options = data | SMALL_SIZES | {"setting": "dsa-single-snli", "num_train_epochs": 2, "evaluations_per_epoch": 2}
    options |= {"per_device_train_batch_size": 16, "report_to": "none", "cpu": True, "average_decay": 0.9}
    model = save_system(inputs, "nli").folder
    (inputs / "sentences.txt").write_text("\n".join(many_sentences(400)) + "\n")
    sentences, texts = str(inputs / "sentences.txt"), inputs / "texts.txt"
    texts.write_text("A man sleeps.\tHe is awake.\n" * 500)

    def train(folder: Path) -> int:
        return run_main(run_nli, "run_nli.py", options | {"output_dir": folder / "run"})

    def command(*argv: str) -> Run:
        return lambda folder: dsa([word.replace("OUT", str(folder)) for word in argv])

    encode = ("encode", sentences, "OUT/vectors", "--model", str(model))
    return {
        "training": Kind(train, trained),
        "training in two processes": Kind(train, trained, processes=2),
        "encoding to shards": Kind(command(*encode, "--shard_size", "50"), files),
        "encoding to one file": Kind(command(*encode[:2], "OUT/vectors.npy", *encode[3:], "--overwrite"), files),
        "distilling": Kind(_distil(inputs), distilled),
        "pushing": Kind(_push(model, hub), lambda folder: pushed(hub, folder)),
        "predicting": Kind(command("predict", str(model), str(texts), "--output", "OUT/answers.jsonl"), files),
    }


def _distil(inputs: Path) -> Run:
    """A run that also writes its teacher's vectors, in six shards."""
    teacher_cache.SHARD_ROWS = 64
    distinct = list(dict.fromkeys(row[column] for row in pairs("train") for column in ("premise", "hypothesis")))
    (inputs / "distinct.txt").write_text("\n".join(distinct[:360]) + "\n")
    save_teacher(inputs / "teacher", 24)
    sizes = {name: size for name, size in SMALL_SIZES.items() if name != "classifier_hidden_sizes"}
    options = sizes | {"setting": "dsa-small", "embedding_size": 24, "teacher": inputs / "teacher"}
    options |= {"num_train_epochs": 2, "per_device_train_batch_size": 32, "validation_sentences": 40}
    options |= {"report_to": "none", "cpu": True, "texts": inputs / "distinct.txt"}

    def run(folder: Path) -> int:
        places = {"output_dir": folder / "run", "cache_dir": folder / "teacher"}
        return run_main(run_distillation, "run_distillation.py", options | places)

    return run


def _push(model: Path, hub: LoopbackHub) -> Run:
    hub.add_user("ada", "hf_of-a-test")

    def run(folder: Path) -> int:
        with hub.connected("hf_of-a-test"), pytest.MonkeyPatch.context() as patch:
            patch.setattr(constants, "HF_HUB_OFFLINE", False)
            return dsa(["push", str(model), _repository(folder)])

    return run


def _repository(folder: Path) -> str:
    return f"ada/{folder.parent.name}"


def pushed(hub: LoopbackHub, folder: Path) -> str:
    """Names and hashes of all files on the Hub."""
    command = ["git", "-C", str(hub.git_folder(_repository(folder))), "ls-tree", "-r", "main"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def distilled(folder: Path) -> dict[str, Any]:
    """What a run leaves, and the teacher's vectors."""
    return trained(folder) | {"teacher": files(folder / "teacher")}


def files(folder: Path) -> dict[str, bytes]:
    """All files by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def trained(folder: Path) -> dict[str, Any]:
    """Names of all files, the weights and the results without times."""
    results = json.loads((folder / "run" / "all_results.json").read_text(encoding="utf-8"))
    found = files(folder / "run")
    return {
        "names": sorted(found),
        "weights": found["model.safetensors"],
        "results": {name: value for name, value in results.items() if name not in VARYING},
    }


def start(kind: Kind, folder: Path, log: Path, kill_at: int | None = None) -> list[int]:
    """Start the processes of a run; each is a fork of this one, which has imported all that takes long."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    processes = []
    for rank in range(kind.processes):
        process = os.fork()
        if process == 0:
            _run_child(kind, folder, log, rank, port, kill_at)
        processes.append(process)
    return processes


def _run_child(kind: Kind, folder: Path, log: Path, rank: int, port: int, kill_at: int | None) -> None:
    code = 70
    os.closerange(3, 1 << 16)  # the Hub's git waits for the end of its pipes, which this copy would hold open
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(target, 1)
        os.dup2(target, 2)
        faulthandler.register(signal.SIGUSR2, file=target)
        datasets.config.HF_DATASETS_CACHE = folder.with_name("cache")  # each run's own, which is killed with it
        if kind.processes > 1:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(kind.processes)}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "true"}
        if rank == 0 and kill_at is not None:
            sys.addaudithook(_killer(folder.parent, kill_at))
        code = kind.run(folder)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _killer(folder: Path, kill_at: int) -> Callable[[str, tuple[Any, ...]], None]:
    """What kills this process before its change number `kill_at`; of 0 it writes how many there are to a file."""
    count, prefix = 0, str(folder)
    counter = os.open(folder.with_suffix(".count"), os.O_WRONLY | os.O_CREAT)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in CHANGES or not str(arguments[0]).startswith(prefix):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if not kill_at:
            os.pwrite(counter, str(count).encode(), 0)

    return hook


def wait(processes: Sequence[int], seconds: float = LONGEST) -> list[int] | None:
    """The exit codes, negative after a signal; None where a process had to be killed as it hung."""
    codes: dict[int, int] = {}
    until = time.monotonic() + seconds
    while len(codes) < len(processes):
        for process in set(processes) - codes.keys():
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                codes[process] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            for process in set(processes) - codes.keys():
                os.kill(process, signal.SIGUSR2)  # it writes where its threads are
                time.sleep(1)
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            return None
        time.sleep(0.01)
    return [codes[process] for process in processes]


def kill_once(
    kind: Kind, folder: Path, log: Path, moments: int, seconds: float, draw: random.Random
) -> tuple[str, str | None]:
    """Start a run and kill it; tells how, and what is wrong with how its other processes end, if anything is."""
    if kind.processes == 1 and moments and draw.random() < 0.5:
        wait(start(kind, folder, log, kill_at=draw.randint(1, moments)))
        return "aimed", None
    number = draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
    processes = start(kind, folder, log)
    time.sleep(draw.uniform(0, seconds))
    with suppress(ProcessLookupError):
        os.kill(draw.choice(processes), number)
    if wait(processes, 60) is not None:
        return number.name, None
    return number.name, "a process went on for a minute after another one had died"


def fault_of(kind: Kind, whole: Any, folder: Path, log: Path) -> str | None:
    """Start a killed run again: what is wrong with its end, if anything is."""
    codes = wait(start(kind, folder, log))
    if codes is None:
        return "it hangs"
    finished = "holds a finished run" in log.read_text(errors="replace")
    if any(codes) and not finished:
        return f"its exit codes are {codes}"
    if "Traceback" in log.read_text(errors="replace") and kind.processes == 1:
        return "there is a traceback"
    try:
        left = kind.left(folder)
    except (OSError, ValueError, KeyError) as error:
        return f"it left no whole folder ({error})"
    return None if left == whole else "it left something else"


def measure(kind: Kind, folder: Path, log: Path) -> tuple[Any, int, float]:
    """What a run leaves that nothing stops, how often it changes the file system, and how long it takes."""
    started = time.monotonic()
    if wait(start(kind, folder, log, kill_at=0)) != [0] * kind.processes:
        raise SystemExit(log.read_text())
    count = int(folder.parent.with_suffix(".count").read_text() or 0)
    return kind.left(folder), count, time.monotonic() - started


def main() -> int:
    """Kill as often as the command line says; 1 where a run ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    draw, counts, faults = random.Random(arguments.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="dsa-kill-") as temporary, LoopbackHub(Path(temporary, "hub")) as hub:
        base = Path(temporary)
        (base / "inputs").mkdir()
        measured: dict[str, tuple[Any, int, float]] = {}
        all_kinds = kinds(base / "inputs", hub)
        for number in range(arguments.kills):
            name = list(all_kinds)[number % len(all_kinds)]
            kind = all_kinds[name]
            if name not in measured:
                place = base / f"whole-{len(measured)}"
                (place / "out").mkdir(parents=True)
                measured[name] = measure(kind, place / "out", place / "log")
            whole, moments, seconds = measured[name]
            place = base / f"kill-{number}"
            (place / "out").mkdir(parents=True)
            how, fault = kill_once(kind, place / "out", place / "log", moments, seconds, draw)
            if fault is None:
                (place / "log").write_text("")  # what a killed process says is not looked at
                fault = fault_of(kind, whole, place / "out", place / "log")
            counts[f"{name}: {how}"] += 1
            if fault is not None:
                faults += 1
                log = (place / "log").read_text(errors="replace")
                sys.stdout.write(f"FAULT {number}, {name}, {how}: {fault}\n{log[-8000:]}\n")
                sys.stdout.flush()
            shutil.rmtree(place)
            sys.stderr.write(f"{number + 1}: {name}: {how}\n")
    for what, count in sorted(counts.items()):
        sys.stdout.write(f"{count:4} {what}\n")
    sys.stdout.write(f"{arguments.kills} kills, {faults} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
