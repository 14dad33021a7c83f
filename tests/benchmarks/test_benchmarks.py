"""The benchmarks run: their quick modes print a table and write what they measured. Their README shows their files."""

import argparse
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from small_models import small_config
from torch._dynamo.utils import counters
from torch.utils.flop_counter import FlopCounterMode

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.packing_dsa import pack, split_pairs
from modeling_dsa.text.tokenization import build_tokenizer
from run_glue_style.training.collation import PadRows

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
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


def check_encode(record: dict[str, Any]) -> None:
    """Everyone is there, in bulk and where it counts one at a time, and accuracies are those of the repository."""
    by_name = {result["name"]: result for result in record["results"]}
    ours, trained = {"single DSA", "single DSA, folded"}, {"dsa-single-snli", "dsa-multiple-snli", "static-cnn-snli"}
    peers = {"BiLSTM-max 128D", "mean of GloVe", "all-MiniLM-L6-v2", "WordLlama 256"} - record["missing"].keys()
    as_onnx = {"dsa-small-snli, ONNX", "dsa-small-snli, ONNX int8"}
    assert by_name.keys() == ours | peers | trained | {"dsa-small-snli"} | as_onnx
    for name, result in by_name.items():
        ways = {"bulk", "single"} if name in ours | peers | as_onnx else {"bulk"}
        assert result["sentences_per_second"].keys() == ways
        assert min(result["sentences_per_second"].values()) > 0
        assert bool(result["accuracy"]) == bool(result["source"]) == (name not in ours | {"BiLSTM-max 128D"})
    frozen = json.loads((BENCHMARKS / "peer_accuracy.json").read_text(encoding="utf-8"))["accuracies"]
    for name in peers - {"BiLSTM-max 128D"}:
        assert by_name[name]["accuracy"] == frozen[name]
    for name in trained:
        assert by_name[name]["source"] == f"results/snli/{name}"
        files = sorted((BENCHMARKS.parent / "results" / "snli" / name).glob("*.json"))
        records = [json.loads(path.read_text(encoding="utf-8")) for path in files]
        assert by_name[name]["accuracy"] == [found["metrics"]["validation"]["accuracy"] for found in records]


def check_peer_accuracy(record: dict[str, Any]) -> None:
    """Vectors that were trained on the pairs are worth more than bare ones."""
    accuracies = {name: values[0] for name, values in record["accuracies"].items()}
    assert record["pairs"] == record["dev_pairs"] == 200
    assert 0.3 < accuracies["mean of GloVe"] < accuracies["dsa-small-snli"] < 0.8


def check_bulk_memory(record: dict[str, Any]) -> None:
    """More lines, and the memory of a process that has loaded torch and the model."""
    first, second = record["results"]
    assert (first["lines"], second["lines"]) == (100, 200)
    for result in (first, second):
        assert 5 < result["words"] / result["lines"] < 12
        assert 2e8 < result["peak"] < 2e9


def check_training_epoch(record: dict[str, Any]) -> None:
    """All five train, and single DSA is what the others are compared with."""
    results = record["results"]
    assert len(results) == 5
    assert [result["name"] for result in results if result["ratio"] == 1] == ["single DSA"]
    assert results[0]["parameters"] == results[1]["parameters"] == 2_078_703
    for result in results:
        ratio = result["seconds_per_million_words"] / results[0]["seconds_per_million_words"]
        assert result["ratio"] == pytest.approx(ratio)
        assert 0 < result["fastest"] <= result["seconds_per_million_words"] <= result["slowest"]


def check_growth(record: dict[str, Any]) -> None:
    """Every sweep is there in both forms; a call costs something, whatever its size."""
    found = {(result["sweep"], result["form"]): result for result in record["results"]}
    sweeps = ("words", "words, full batch", "sentences", "heads", "vocabulary")
    assert set(found) == {(sweep, form) for sweep in sweeps for form in ("plain", "folded")}
    for form in ("plain", "folded"):
        first, *_, last = (point["microseconds_per_word"] for point in found["words", form]["points"])
        assert first > last > 0
        assert {point["words"] for point in found["words, full batch", form]["points"]} == {2048}


def check_snli_epoch(record: dict[str, Any]) -> None:
    """Each variant ran its whole epoch; figures fit together."""
    results = record["results"]
    assert [(result["precision"], result["compiled"]) for result in results] == [("fp32", False), ("bf16", False)]
    assert record["product_teraflops"].keys() == {"fp32", "bf16"}
    for result in results:
        took = result["epoch_seconds"]
        assert result["steps"] == result["timed_steps"] == 7
        assert result["pairs_per_second"] * took == pytest.approx(record["pairs"])
        assert result["words_per_second"] * took == pytest.approx(record["words"])
        of_product = result["teraflops"] / record["product_teraflops"][result["precision"]]
        assert result["product_share"] == pytest.approx(of_product)


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "encode.py": check_encode,
    "bulk_memory.py": check_bulk_memory,
    "peer_accuracy.py": check_peer_accuracy,
    "training_epoch.py": check_training_epoch,
    "growth.py": check_growth,
    "snli_epoch.py": check_snli_epoch,
}


@pytest.mark.parametrize(
    ("name", "arguments", "entries", "files"),
    [
        ("read_vectors.py", ["--dimension", "5"], {"rows", "results"}, {"speed.json"}),
        pytest.param(
            "training_step.py",
            ["--threads", "1", "--embedding_size", "10"],
            {"step_ratio", "product_share", "random_to_sorted"},
            {"speed.json"},
            marks=pytest.mark.slow,
        ),
        (
            "snli_epoch.py",
            ["--threads", "1", "--no_compile", "--seconds", "250"],
            {"pairs", "words", "product_teraflops"},
            {"speed.json"},
        ),
        (
            "stance_epoch.py",
            ["--threads", "1", "--setting", "mean-fnc1", "self-attention-fnc1"],
            {"pairs", "settings"},
            {"speed.json"},
        ),
        pytest.param("peer_accuracy.py", [], {"accuracies"}, {"speed.json"}, marks=pytest.mark.slow),
        pytest.param("bulk_memory.py", ["--threads", "1"], {"results"}, {"speed.json"}, marks=pytest.mark.slow),
        *(
            pytest.param(
                name, ["--threads", "1"], {"results"}, {"speed.json", "speed.png"}, marks=pytest.mark.slow, id=name
            )
            for name in ("long_texts.py", "encode.py", "training_epoch.py", "growth.py")
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
    exponents = {"time_exponent", "memory_exponent", "exponent"}  # of two small sizes: noise may turn them below 0
    for result in results["results"] if name in ("long_texts.py", "growth.py") else []:
        assert all(math.isfinite(result.pop(exponent)) for exponent in exponents & result.keys())
    if name in CHECKS:
        CHECKS[name](results)
    assert all(math.isfinite(number) and number >= 0 for number in numbers(results))
    assert {path.name for path in output.parent.iterdir()} == files


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("stance_epoch", ["--setting", "dsa-single-fnc2"], "Did you mean 'dsa-single-fnc1'?"),
        ("stance_epoch", ["--data_dir", "nowhere"], "there is no such file"),
        ("long_texts", ["--longest", "10"], "a longest text of 100 words"),
        ("encode", ["--single", "0"], "1 sentence"),
        ("encode", ["--rounds", "1000"], "the sample has 101,436 sentences"),
        ("training_epoch", ["--batch_size", "1"], "2 pairs in a batch"),
        ("training_epoch", ["--batch_size", "40000"], "the sample has 57,840 pairs"),
        ("growth", ["--rounds", "0"], "1 round"),
        ("snli_epoch", ["--seconds", "0"], "more than 0 seconds"),
        ("snli_epoch", ["--pairs", "100", "--batch_size", "16", "101"], "100 pairs cannot make batches of [16, 101]"),
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
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - {"measuring", "operations", "peers"}
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
def test_exponents_start_where_they_are_told(module: Any) -> None:
    sizes = [1, 2, 4, 8]
    assert module.exponent(sizes, [9.0, 2.0, 4.0, 8.0], 2) == pytest.approx(1)
    assert module.exponent(sizes, [9.0, 2.0, 4.0, 8.0], 8) is None


@pytest.mark.parametrize("kind", ["max", "attention", "transformer"])
@pytest.mark.parametrize("module", ["peers"], indirect=True)
def test_padding_does_not_change_what_a_peer_makes_of_a_sentence(module: Any, kind: str) -> None:
    torch.manual_seed(0)
    table = module.random_table(50, 12)
    encoder = {
        "max": lambda: module.BiLSTMMax(table, 5),
        "attention": lambda: module.BiLSTMAttention(table, 5, 7),
        "transformer": lambda: module.TransformerMean(table, 3, 2, longest=9),
    }[kind]().eval()
    ids = torch.tensor([[4, 5, 6, 0, 0], [7, 8, 9, 10, 11], [12, 0, 0, 0, 0]])
    together = encoder(ids, (ids != 0).long())
    assert together.shape == (3, encoder.width)
    alone = [encoder(row[row != 0][None], torch.ones(1, int((row != 0).sum()), dtype=torch.int64))[0] for row in ids]
    torch.testing.assert_close(together, torch.stack(alone))
    assert not torch.allclose(together[0], together[1], atol=1e-3)


@pytest.mark.parametrize("module", ["peers"], indirect=True)
def test_padded_batches_keep_the_order(module: Any) -> None:
    tokenizer = build_tokenizer(["a", "man", "is", "asleep"], lowercase=True)
    encode = module.in_padded_batches(module.BiLSTMMax(module.random_table(len(tokenizer), 6), 4), tokenizer, 2)
    sentences = ["a", "a man is asleep", "man", "a man", "a man is a man"]
    np.testing.assert_allclose(encode(sentences), np.concatenate([encode([text]) for text in sentences]), atol=1e-6)


@pytest.mark.parametrize("module", ["peers"], indirect=True)
def test_packages_that_are_absent_are_named(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"there": ("json", "json", lambda: "loaded"), "absent": ("no_such_module", "no-such-package", None)}
    monkeypatch.setattr(module, "PACKAGES", packages)
    assert module.installed_packages() == ({"there": "loaded"}, {"absent": "pip install no-such-package"})


@pytest.mark.parametrize("module", ["encode"], indirect=True)
def test_forms_of_a_model_that_differ_are_refused(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = build_tokenizer(["a", "man", "is", "asleep"], lowercase=True)
    forms = module.single_dsa(tokenizer, ["a man", "asleep"], 1, with_onnx=False)
    assert [form.encode(["a man"]).shape for form in forms] == [(1, 600), (1, 600)]
    monkeypatch.setattr(module, "TOLERANCE", -1.0)
    with pytest.raises(RuntimeError, match="The vectors of single DSA differ"):
        module.single_dsa(tokenizer, ["a man", "asleep"], 1, with_onnx=False)


@pytest.mark.parametrize("module", ["encode"], indirect=True)
def test_sentences_are_distinct_and_the_same_each_time(module: Any) -> None:
    sentences = module.draw_sentences(500)
    assert len(set(sentences)) == 500
    assert module.draw_sentences(100) == sentences[:100]
    assert sentences != sorted(sentences)


@pytest.mark.parametrize("module", ["training_step"], indirect=True)
def test_operations_are_those_that_torch_counts(module: Any) -> None:
    words = 2000  # the windows over a sentence's ends, which are not counted, are few
    settings: dict[str, Any] = {"vocab_size": 50, "sentences_per_row": 2, "num_labels": 3}
    config = DSAConfig(**settings)
    padded = module.PaddedDSA(DSAForNLI(config))
    side = torch.randint(3, 50, (1, words)), torch.ones(1, words)
    lengths = torch.tensor([words])
    with FlopCounterMode(display=False) as forward:
        vectors = padded.encode(*side)
    assert forward.get_total_flops() == pytest.approx(module.count_operations(lengths, config), rel=0.005)
    with FlopCounterMode(display=False) as backward:
        vectors.sum().backward()
    # autograd computes the gradient of all that the compression reads, the frozen words too; it need not
    needless = 2 * words * config.embedding_size * config.hidden_size
    counted = module.count_training_operations(lengths, config) + needless
    assert forward.get_total_flops() + backward.get_total_flops() == pytest.approx(counted, rel=0.005)


@pytest.mark.parametrize("module", ["training_step"], indirect=True)
def test_pairs_are_sorted_as_whole_rows(module: Any) -> None:
    pairs = module.draw_pairs(50)
    in_order = module.sort_pairs(pairs)
    rows = [list(zip(*columns.values(), strict=True)) for columns in (pairs, in_order)]
    assert sorted(rows[0]) == sorted(rows[1])
    words = [len(premise.split()) + len(hypothesis.split()) for premise, hypothesis, *_ in rows[1]]
    assert words == sorted(words)


@pytest.mark.parametrize("module", ["snli_epoch"], indirect=True)
def test_lengths_of_made_up_pairs_are_those_of_the_sample(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = importlib.import_module("training_step").draw_pairs(100_000)
    tokenizer = build_tokenizer([], lowercase=True)
    for side, counts in (("premise", module.PREMISES_BY_WORDS), ("hypothesis", module.HYPOTHESES_BY_WORDS)):
        assert np.bincount([len(ids) for ids in tokenizer(sample[side])["input_ids"]]).tolist() == list(counts)


@pytest.mark.parametrize("module", ["snli_epoch"], indirect=True)
def test_made_up_pairs_are_like_those_of_snli(module: Any) -> None:
    config = DSAConfig(vocab_size=36_003)
    pairs = module.make_pairs(30_000, config)
    assert len(pairs.labels) == len(pairs.lengths) == 30_000
    assert len(pairs.ids) == pairs.lengths.sum()
    for words, counts in (
        (pairs.premise_words[::3], module.PREMISES_BY_WORDS),
        (pairs.hypothesis_words, module.HYPOTHESES_BY_WORDS),
    ):
        shares = np.bincount(words, minlength=len(counts)) / len(words)
        np.testing.assert_allclose(shares, np.array(counts) / sum(counts), atol=0.01)
    rows = np.split(pairs.ids, pairs.starts[1:])
    split = [np.split(row, [words]) for row, words in zip(rows, pairs.premise_words, strict=True)]
    assert {int(second[0]) for _, second in split} == {config.sep_token_id}
    assert all(np.array_equal(split[number][0], split[number - number % 3][0]) for number in range(3000))
    assert len({first.tobytes() for first, _ in split}) == pytest.approx(10_000, rel=0.02)
    words = np.concatenate([first for first, _ in split[::3]] + [second[1:] for _, second in split])
    assert (words.min(), words.max() < 36_003) == (3, True)
    one, two, four = np.bincount(words)[[3, 4, 6]]  # Zipf's law
    assert (one / two, one / four) == (pytest.approx(2, rel=0.05), pytest.approx(4, rel=0.05))
    assert np.bincount(pairs.labels).tolist() == [pytest.approx(10_000, rel=0.03)] * 3
    assert np.array_equal(module.make_pairs(30_000, config).ids, pairs.ids)


@pytest.mark.parametrize(("count", "batches"), [(500, 16), (481, 15)])
@pytest.mark.parametrize("module", ["snli_epoch"], indirect=True)
def test_batches_made_on_the_device_are_those_of_the_collator(module: Any, count: int, batches: int) -> None:
    config = DSAConfig(vocab_size=300)
    assert config.pad_token_id is not None
    pairs = module.make_pairs(count, config)
    load, epoch = module.Loader(pairs, torch.device("cpu"), config), module.Epoch(pairs, 32, 5, config)
    assert len(set(epoch.order.tolist())) == len(epoch.order) == (500 if count == 500 else 480)
    assert len(epoch.cuts) == batches
    ids, words, operations = np.split(pairs.ids, pairs.starts[1:]), 0, 0
    for cut in epoch.cuts:
        order = epoch.order[cut.start : cut.end]
        rows = [
            {
                "input_ids": ids[row],
                "attention_mask": np.ones(len(ids[row])),
                "token_type_ids": np.arange(len(ids[row])) > pairs.premise_words[row],
                "labels": pairs.labels[row],
            }
            for row in order
        ]
        expected = PadRows(config.pad_token_id)(rows)
        batch = load(torch.from_numpy(order), cut.width)
        assert batch.keys() == expected.keys()
        longest = expected["input_ids"].shape[1]
        assert cut.width % 32 == 0
        assert longest <= cut.width < longest + 32
        for name, value in batch.items():
            kept = value if name == "labels" else value[:, :longest]
            torch.testing.assert_close(kept, expected[name])
            assert name == "labels" or not value[:, longest:].any()
        rows_of_ids, mask, types = (batch[name] for name in ("input_ids", "attention_mask", "token_type_ids"))
        is_word, is_second = split_pairs(rows_of_ids, mask, types, config.pad_token_id, config.sep_token_id)
        words += int(is_word.sum())
        premises = pack(rows_of_ids, is_word & ~is_second, None, deduplicate=True)[1].lengths
        hypotheses = pack(rows_of_ids, is_second, None, deduplicate=False)[1].lengths
        operations += module.count_training_operations(torch.cat([premises, hypotheses]), config)
    assert epoch.words == words
    assert epoch.training_operations == pytest.approx(operations, rel=1e-3)  # premises of a few words may be equal
    shapes = {(cut.end - cut.start, cut.width) for cut in epoch.cuts}
    assert sorted(shapes) == sorted((cut.end - cut.start, cut.width) for cut in epoch.shapes())


BARE = """
import runpy, sys
for name in ("accelerate", "datasets", "evaluate", "matplotlib", "pandas", "pyarrow", "scipy", "sklearn"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
sys.path.insert(0, str(__import__("pathlib").Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_an_epoch_of_snli_is_extrapolated_where_time_is_short_without_the_train_extra(tmp_path: Path) -> None:
    output = tmp_path / "speed.json"
    options = ["--quick", "--no_compile", "--threads", "1", "--seconds", "0.001", "--output", str(output)]
    command = [sys.executable, "-c", BARE, str(BENCHMARKS / "snli_epoch.py"), *options]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    results = json.loads(output.read_text(encoding="utf-8"))["results"]
    assert [(result["timed_steps"], result["steps"]) for result in results] == [(1, 7), (1, 7)]
    rows = [line for line in finished.stdout.splitlines() if line.startswith("|")][2:]
    for result, row in zip(results, rows, strict=True):
        assert f"| ~{result['epoch_seconds']:,.3g} (1 of 7 steps) |" in row


@pytest.mark.slow
def test_a_variant_that_fails_has_its_error_in_the_table(tmp_path: Path) -> None:
    absent = {"CXX": str(tmp_path / "no compiler"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(BENCHMARKS / "snli_epoch.py"), "--quick", "--threads", "1"]
    command += ["--output", str(tmp_path / "speed.json")]
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **absent}
    )
    assert finished.returncode == 0, finished.stderr
    results = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))["results"]
    assert [("error" in result, result["compiled"]) for result in results] == [(False, False), (True, True)] * 2
    rows = [line for line in finished.stdout.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert [" | failed: " in row for row in rows[2:]] == [False, True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["snli_epoch"], indirect=True)
def test_a_compiled_variant_compiles_nothing_inside_the_time(module: Any) -> None:
    small: dict[str, Any] = {"kernel_sizes": [3], "num_hidden_layers": 1, "problem_type": "single_label_classification"}
    config, device = small_config(**small, sentences_per_row=2), torch.device("cpu")
    pairs = module.make_pairs(40, config)
    load, epoch = module.Loader(pairs, device, config), module.Epoch(pairs, 16, 0, config)
    step = module.make_step("fp32", True, device, config)
    counters.clear()
    first = module.time_epochs(step, load, [epoch], device, 300, "compiled")
    graphs = counters["stats"]["unique_graphs"]
    assert 1 <= graphs <= len(epoch.shapes())
    assert (first["timed_steps"], first["steps"]) == (3, 3)
    assert 0 < first["epoch_seconds"] < first["warm_up_seconds"] / 10
    module.time_epochs(step, load, [epoch], device, 300, "compiled")
    assert counters["stats"]["unique_graphs"] == graphs
    torch.compiler.reset()


@pytest.mark.parametrize("module", ["long_texts"], indirect=True)
def test_memory_tells_what_the_process_holds(module: Any) -> None:
    before = module.memory("VmRSS")
    held = torch.ones(10_000_000)
    assert module.memory("VmRSS") - before == pytest.approx(held.nbytes / 1e6, abs=5)
    assert module.memory("VmHWM") >= module.memory("VmRSS") - 1
