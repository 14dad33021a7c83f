"""Several processes over loopback, as nodes or with weights that are shared out, train what one process trains."""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from safetensors.torch import load_file
from small_runs import SMALL_SIZES, as_arguments, read_results, run_main, same_tensors, write_pair_files

from run_glue_style.run_nli import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("datasets_cache")]
REPOSITORY = Path(__file__).parents[3]
SCRIPT = REPOSITORY / "run_glue_style" / "run_nli.py"
CONFIGURATION = REPOSITORY / "configuration"
SUPPORT = REPOSITORY / "tests" / "support"
# 5 batches of 32 rows and one of 11, which two processes share as 6 and 5; two batches make an update.
COUNTS = {"train": 171, "validation": 60, "test": 50}
GLOBAL_BATCH, STEPS = 32, 24
# Each process draws its own masks of dropout, so noise is the one thing that cannot be the same.
NO_NOISE: dict[str, Any] = {"embedding_dropout": 0, "hidden_dropout": 0, "classifier_dropout": 0}
RECIPE: dict[str, Any] = {
    "setting": "dsa-single-snli",
    **SMALL_SIZES,
    **NO_NOISE,
    "num_train_epochs": 8,
    "evaluations_per_epoch": 1,
    "optimizer": "adamw",
    "schedule": "cosine",
    "learning_rate": 0.002,
    "gradient_accumulation_steps": 2,
    "average_decay": 0.9,
    "batch_norm_batches": 2,
    "mixed_precision": "no",
    "report_to": "tensorboard",
}

Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Pairs cut from the sample and vectors of their words, as options. The best weights are those that fit best."""
    options = write_pair_files(tmp_path_factory.mktemp("data"), COUNTS, 12)
    validation = options["train_file"].with_name("validation.jsonl")
    # One more, as the training data themselves are refused.
    validation.write_text(options["train_file"].read_text() + options["test_file"].read_text().splitlines()[0] + "\n")
    return options | {"validation_file": validation}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """That of a process of its own, with a cache of its own."""
    changes = {"HF_HUB_OFFLINE": "1"}
    changes["HF_DATASETS_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    changes["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | changes


def options_of(files: dict[str, Any], folder: Path, processes: int) -> dict[str, Any]:
    """Options of the script, with the same global batch for any number of processes."""
    return RECIPE | files | {"per_device_train_batch_size": GLOBAL_BATCH // processes, "output_dir": folder}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def start_nodes(environment: dict[str, str], script: list[str]) -> list[Process]:
    """A launcher for each of two nodes, by the launch file for several nodes."""
    file = CONFIGURATION / "accelerate" / "several_nodes.yaml"
    launch = ["-m", "accelerate.commands.launch", "--config_file", file, "--num_processes", 2]
    launch += ["--main_process_port", free_port()]
    return [
        subprocess.Popen(
            [*map(str, [sys.executable, *launch, "--machine_rank", rank]), *script],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for rank in (0, 1)
    ]


def weights(folder: Path) -> dict[str, Any]:
    return load_file(folder / "model.safetensors")


def wait_for_checkpoints(folder: Path, count: int, processes: list[Process]) -> None:
    """Wait until processes have written so many."""
    seen: set[str] = set()
    while len(seen) < count:
        for process in processes:
            assert process.poll() is None, process.communicate()[1]
        seen |= {path.name for path in (folder / "checkpoints").glob("step-*")}
        time.sleep(0.02)


def assert_same_training(first: Path, second: Path) -> None:
    """Two runs whose sums have another order: the same updates of the same rows, to 1e-6."""
    results = [read_results(folder) for folder in (first, second)]
    assert results[0]["best_step"] == results[1]["best_step"] > results[0]["steps"] / 2
    for ours, theirs in zip(results[0]["history"], results[1]["history"], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)
    saved = [weights(folder) for folder in (first, second)]
    assert saved[0].keys() == saved[1].keys()
    differences = {
        name: (tensor.double() - saved[1][name].double()).abs().max().item() for name, tensor in saved[0].items()
    }
    assert max(differences.values()) <= 1e-6, differences
    assert not same_tensors(saved[0]["classifier.1.weight"], saved[1]["classifier.1.weight"].zero_())


SRUN = """#!/bin/bash
# SLURM's part: the command once on each node, with the number of the node in the environment.
[[ $1 == --kill-on-bad-exit=1 ]] || exit 3
shift
for ((node = 0; node < SLURM_JOB_NUM_NODES; node++)); do
    SLURM_NODEID=$node "$@" &
    tasks+=($!)
done
trap 'kill -TERM "${tasks[@]}"' TERM
for task in "${tasks[@]}"; do
    wait "$task" || status=$?
done
exit "${status:-0}"
"""


def slurm(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment of a job on two nodes, this machine both of them."""
    folder.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", "#!/bin/sh\necho 127.0.0.1\necho 127.0.0.2\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    number = next(number for number in range(os.getpid() % 10000, 20000) if is_free(20000 + number))  # gives the port
    job = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_ID": str(number)}
    return environment | job | {"PATH": os.pathsep.join([str(folder), environment["PATH"]])}


def test_two_nodes_one_of_which_dies_train_to_the_weights_of_one_process_with_the_same_global_batch(
    tmp_path: Path, files: dict[str, Any], environment: dict[str, str]
) -> None:
    """Accumulated gradients, averaged weights, batch normalisation and an epoch's last, unequal shares included.

    The node that is left ends with an error, and a SLURM job goes on.
    """
    run = tmp_path / "run"
    script = [str(SCRIPT), "--cpu", *as_arguments(options_of(files, run, 2)), "--checkpointing_steps", "1"]
    nodes = start_nodes(environment, script)
    wait_for_checkpoints(run, 3, nodes)
    launcher = psutil.Process(nodes[0].pid)
    for process in [launcher, *launcher.children(recursive=True)]:
        process.kill()
    # gloo sees a closed connection at once, and the launcher ends within half a minute.
    written = nodes[1].communicate(timeout=60)[1]
    assert nodes[1].returncode == 1
    assert re.search("Connection (closed|reset) by peer", written)
    assert not (run / "all_results.json").exists()
    command = ["bash", str(CONFIGURATION / "slurm" / "train.sbatch"), *script]
    job = slurm(environment, tmp_path / "bin")
    done = subprocess.run(command, cwd=REPOSITORY, env=job, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Resuming from" in done.stderr
    results = read_results(run)
    assert results["processes"] == 2
    assert results["steps"] == STEPS
    one_process = tmp_path / "one"
    assert run_main(main, "run_nli.py", options_of(files, one_process, 1), "--cpu") == 0
    assert_same_training(one_process, run)
    # Only the first node writes.
    assert "training: " not in written
    assert "training: 100%" in done.stderr
    assert done.stderr.count("The model is in") == 1
    assert len(list(run.rglob("*tfevents*"))) == 2  # of the job, and of the nodes before it
    assert not list(run.rglob(".*"))
    assert not (run / "checkpoints").exists()


def test_processes_that_share_out_a_trained_word_table_are_stopped_and_train_to_the_weights_of_one(
    tmp_path: Path, files: dict[str, Any], environment: dict[str, str]
) -> None:
    run, table = tmp_path / "run", {"freeze_embeddings": "false"}
    launch = ["-m", "accelerate.commands.launch", "--config_file", CONFIGURATION / "accelerate" / "shared_weights.yaml"]
    launch += ["--num_processes", 2, "--main_process_port", free_port(), SUPPORT / "share_out_on_cpu.py", "--cpu"]
    words = [*map(str, [sys.executable, *launch]), *as_arguments(options_of(files, run, 2) | table)]
    environment = environment | {"PYTHONPATH": str(REPOSITORY)}
    stopped = [*words, "--checkpointing_steps", "1"]
    process = subprocess.Popen(stopped, env=environment, stderr=subprocess.PIPE, text=True)
    wait_for_checkpoints(run, 3, [process])
    process.terminate()
    assert "Stopped; the checkpoint is written." in process.communicate(timeout=60)[1]
    assert list(run.glob("checkpoints/step-*/pytorch_model_fsdp_0"))  # in parts
    assert not (run / "all_results.json").exists()
    # Without a checkpoint, which puts the parts together, between an evaluation and the next update.
    words += ["--checkpointing_steps", "1000"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Resuming from" in done.stderr
    assert read_results(run)["processes"] == 2
    one_process = tmp_path / "one"
    assert run_main(main, "run_nli.py", options_of(files, one_process, 1) | table, "--cpu") == 0
    assert_same_training(one_process, run)


def test_slurm_job_without_a_script_says_what_is_missing(tmp_path: Path, environment: dict[str, str]) -> None:
    job = slurm(environment, tmp_path / "bin")
    command = ["bash", str(CONFIGURATION / "slurm" / "train.sbatch")]
    done = subprocess.run(command, cwd=REPOSITORY, env=job, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: say what to train")
