"""The benchmarks run: their quick modes print a table and write what they measured. Their README shows their files."""

import argparse
import importlib
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from modeling_dsa.packing_dsa import pack, split_pairs

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
README = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
TABLES = re.findall(r"<!-- table: (\w+)\.json -->\n(.*?)<!-- end of table -->", README, flags=re.S)


@pytest.fixture
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the folder, which is no package, by its name."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module(request.param)


def numbers(value: object) -> Iterator[float]:
    """All numbers of a JSON value."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float):
        yield value


@pytest.mark.parametrize(
    ("name", "arguments", "entries", "files"),
    [
        ("read_vectors.py", ["--dimension", "5"], {"rows", "results"}, {"speed.json"}),
        (
            "training_step.py",
            ["--threads", "1", "--embedding_size", "10"],
            {"step_ratio", "product_share"},
            {"speed.json"},
        ),
        (
            "stance_epoch.py",
            ["--threads", "1", "--setting", "mean-fnc1", "self-attention-fnc1"],
            {"pairs", "settings"},
            {"speed.json"},
        ),
        pytest.param(
            "long_texts.py", ["--threads", "1"], {"results"}, {"speed.json", "speed.png"}, marks=pytest.mark.slow
        ),
    ],
)
def test_a_benchmark_prints_a_table_and_writes_its_results(
    name: str, arguments: list[str], entries: set[str], files: set[str], tmp_path: Path
) -> None:
    output = tmp_path / "results" / "speed.json"
    command = [sys.executable, str(BENCHMARKS / name), "--quick", *arguments, "--output", str(output)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    table = [line for line in finished.stdout.splitlines() if line.startswith("|")]
    assert len(table) >= 4
    assert len({line.count("|") for line in table}) == 1
    results = json.loads(output.read_text(encoding="utf-8"))
    assert {"environment", "load_before"} | entries <= results.keys()
    exponents = {"time_exponent", "memory_exponent"}  # of two short texts: noise may turn them below 0
    for result in results["results"] if name == "long_texts.py" else []:
        assert all(math.isfinite(result.pop(exponent)) for exponent in exponents)
    assert all(math.isfinite(number) and number >= 0 for number in numbers(results))
    assert {path.name for path in output.parent.iterdir()} == files


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("stance_epoch", ["--setting", "dsa-single-fnc2"], "Did you mean 'dsa-single-fnc1'?"),
        ("stance_epoch", ["--data_dir", "nowhere"], "there is no such file"),
        ("long_texts", ["--longest", "10"], "a longest text of 100 words"),
    ],
    indirect=["module"],
)
def test_a_mistake_is_one_sentence(
    module: Any,
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{module.__name__}.py", "--threads", "1", *arguments])
    with pytest.raises(SystemExit) as stopped:
        module.main()
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("module", "table"), TABLES, indirect=["module"])
def test_tables_of_the_readme_are_those_of_the_files(module: Any, table: str) -> None:
    path = BENCHMARKS / f"{module.__name__}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    assert table == ("" if record is None else f"{module.as_markdown(record)}\n")


def test_every_benchmark_has_a_place_for_its_table() -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - {"measuring"}
    assert {name for name, _ in TABLES} == scripts


@pytest.mark.parametrize("module", ["measuring"], indirect=True)
def test_competitors_take_turns_and_warm_ups_do_not_count(module: Any) -> None:
    done: list[tuple[str, int]] = []

    def competitor(name: str, pause: float) -> Any:
        def work(turn: int) -> None:
            done.append((name, turn))
            time.sleep(pause if turn else 10 * pause)

        return work

    competitors = {"slow": competitor("slow", 0.02), "quick": competitor("quick", 0.0)}
    seconds = module.alternate(competitors, range(3), "Sleeping", warm_up=1)
    assert done == [(name, turn) for turn in range(3) for name in ("slow", "quick")]
    assert [len(taken) for taken in seconds.values()] == [2, 2]
    assert min(seconds["slow"]) >= 0.02


@pytest.mark.parametrize("old", ["", "| old |\n"])
@pytest.mark.parametrize("module", ["measuring"], indirect=True)
def test_a_table_goes_to_its_own_place_in_the_readme(module: Any, old: str, tmp_path: Path) -> None:
    text = "# Speed\n<!-- table: {} -->\n{}<!-- end of table -->\nthe end\n"
    readme = tmp_path / "README.md"
    readme.write_text(text.format("a.json", old) + text.format("b.json", ""), encoding="utf-8")
    module.keep({"speed": 1.5}, "| \\1 new |", tmp_path / "a.json")
    expected = text.format("a.json", "| \\1 new |\n") + text.format("b.json", "")
    assert readme.read_text(encoding="utf-8") == expected
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"speed": 1.5}
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "a.json"}


@pytest.mark.parametrize("module", ["measuring"], indirect=True)
def test_all_have_the_same_options(module: Any) -> None:
    parser: argparse.ArgumentParser = module.make_parser("What it does.", 7, "timed runs", "little")
    options = parser.parse_args(["--output", "x.json"])
    assert (options.rounds, options.quick, options.output) == (7, False, Path("x.json"))


@pytest.mark.parametrize("module", ["stance_epoch"], indirect=True)
def test_synthetic_texts_have_the_counts_and_lengths_of_the_challenge(module: Any) -> None:
    lengths = module.body_lengths(module.Size())
    assert (len(lengths), lengths.max()) == (1683, 5650)
    assert np.median(lengths) == pytest.approx(365, rel=0.01)
    assert lengths.mean() == pytest.approx(443, rel=0.01)
    assert np.quantile(lengths, 0.99) == pytest.approx(1790, rel=0.01)

    pairs = module.synthetic_pairs(module.QUICK)
    assert len(pairs) == module.QUICK.pairs
    assert len(set(pairs["headline"])) == module.QUICK.headlines
    assert len(set(pairs["body"])) == module.QUICK.bodies
    assert sorted(len(text.split()) for text in set(pairs["body"])) == sorted(module.body_lengths(module.QUICK))


@pytest.mark.parametrize("limit", [None, 9])
@pytest.mark.parametrize("module", ["stance_epoch"], indirect=True)
def test_the_words_of_an_epoch_are_those_that_the_model_packs(module: Any, limit: int | None) -> None:
    pairs = module.Pairs(module.synthetic_pairs(module.QUICK))
    epoch = pairs.epoch(0, batch_size=64, sample=3, limit=limit)

    def packed(way: str) -> int:
        words = 0
        for batch in epoch[way].measured:
            rows = [epoch[way].rows[row] for row in batch.tolist()]
            padded = pairs.tokenizer.pad(
                [{name: row[name] for name in ("input_ids", "token_type_ids", "attention_mask")} for row in rows],
                return_tensors="pt",
            )
            is_word, is_second = split_pairs(
                padded["input_ids"], padded["attention_mask"], padded["token_type_ids"], 0, 2
            )
            places, _ = pack(
                padded["input_ids"], is_word, is_second, deduplicate=way != "every pair", max_sentence_words=limit
            )
            words += len(places)
        return words

    assert {way: packed(way) for way in module.WAYS} == {way: epoch[way].measured_words for way in module.WAYS}
    assert epoch["texts once"].words == int(pairs.tokenized.lengths.clip(max=limit or 10**9).sum())
    assert epoch["texts once"].words < epoch["grouped"].words < epoch["random"].words < epoch["every pair"].words
    assert len(epoch["grouped"].measured) == epoch["grouped"].batches == 10
    assert [len(epoch[way].measured) for way in ("random", "every pair")] == [3, 3]


@pytest.mark.parametrize("module", ["stance_epoch"], indirect=True)
def test_texts_are_encoded_once_in_batches_of_as_many_words_as_grouped_ones(module: Any) -> None:
    pairs = module.Pairs(module.synthetic_pairs(module.QUICK))
    epoch = pairs.epoch(1, batch_size=64, sample=3, limit=None)
    once = epoch["texts once"]
    rows = np.concatenate(once.measured)
    texts = np.concatenate([column[rows] for column in once.rows.numbers])
    assert sorted(texts) == list(range(100))
    mean = epoch["grouped"].words / epoch["grouped"].batches
    assert once.batches == pytest.approx(once.words / mean, abs=1)


@pytest.mark.parametrize("module", ["long_texts"], indirect=True)
def test_exponents_are_those_of_long_texts(module: Any) -> None:
    words = [100, 1000, 3000, 10_000]
    assert module.exponent(words, [5.0, *(3 * count**2 for count in words[1:])]) == pytest.approx(2)
    assert module.exponent(words, [5.0, *(0.1 * count for count in words[1:])]) == pytest.approx(1)
    assert module.exponent(words, [1.0, 2.0, 0.0, 0.0]) is None


@pytest.mark.parametrize("module", ["long_texts"], indirect=True)
def test_memory_tells_what_the_process_holds(module: Any) -> None:
    before = module.memory("VmRSS")
    held = torch.ones(10_000_000)
    assert module.memory("VmRSS") - before == pytest.approx(held.nbytes / 1e6, abs=5)
    assert module.memory("VmHWM") >= module.memory("VmRSS") - 1
