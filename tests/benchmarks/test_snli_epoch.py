import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import snli_epoch
import torch
from benchmark_runs import BENCHMARKS, run_quick
from lib.snli_like_pairs import Epoch, Loader, make_pairs
from small_models import small_config
from torch._dynamo.utils import counters

from modeling_dsa import DSAConfig

EAGER = ("--threads", "1", "--no_compile")


@pytest.mark.slow
def test_each_variant_runs_its_whole_epoch(tmp_path: Path) -> None:
    record = run_quick(snli_epoch.main, tmp_path / "results" / "speed.json", *EAGER, "--seconds", "250")
    assert [(result["precision"], result["compiled"]) for result in record.results] == [
        ("fp32", False),
        ("bf16", False),
    ]
    for result in record.results:
        took = result["epoch_seconds"]
        assert (result["steps"], result["timed_steps"], result["error"]) == (3, 3, None)
        assert result["pairs_per_second"] * took == pytest.approx(40)
        assert result["tokens_per_second"] * took == pytest.approx(record.setup["tokens"])
        of_product = result["teraflops"] / record.setup["product_teraflops"][result["precision"]]
        assert result["product_share"] == pytest.approx(of_product)


@pytest.mark.slow
def test_an_epoch_is_extrapolated_where_time_is_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = run_quick(snli_epoch.main, tmp_path / "results" / "speed.json", *EAGER, "--seconds", "0.001")
    assert [(result["timed_steps"], result["steps"]) for result in record.results] == [(1, 3), (1, 3)]
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")][2:]
    for result, line in zip(record.results, lines, strict=True):
        assert f"| ~{result['epoch_seconds']:,.3g} (1 of 3 steps) |" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seconds", "0"], "--seconds: give more than 0 seconds"),
        (["--pairs", "100", "--batch_size", "16", "101"], "100 pairs cannot make batches of 101"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        snli_epoch.main(arguments)
    assert said in capsys.readouterr().err.splitlines()[-1]


BARE = """
import runpy, sys
for name in ("accelerate", "datasets", "evaluate", "matplotlib", "pandas", "pyarrow", "scipy", "sklearn"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
sys.path.insert(0, str(__import__("pathlib").Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_it_runs_without_the_train_extra() -> None:
    command = [sys.executable, "-c", BARE, str(BENCHMARKS / "snli_epoch.py"), "--quick", *EAGER, "--seconds", "0.001"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.slow
def test_a_compiled_variant_compiles_nothing_inside_the_time() -> None:
    small: dict[str, Any] = {"encoder": "none", "problem_type": "single_label_classification"}
    config: DSAConfig = small_config(**small, sentences_per_example=2)
    device = torch.device("cpu")
    pairs = make_pairs(32, config)
    load, epoch = Loader(pairs, device, config), Epoch(pairs, 16, 0, config)
    step = snli_epoch.make_step(snli_epoch.Variant("fp32", True, 16), device, config)
    counters.clear()
    first = snli_epoch.time_epochs(step, load, [epoch], device, 300, "compiled")
    graphs = counters["stats"]["unique_graphs"]
    assert 1 <= graphs <= len(epoch.shapes())
    assert (first["timed_steps"], first["steps"]) == (2, 2)
    assert 0 < first["epoch_seconds"] < first["warm_up_seconds"] / 10
    snli_epoch.time_epochs(step, load, [epoch], device, 300, "compiled")
    assert counters["stats"]["unique_graphs"] == graphs
    torch.compiler.reset()
