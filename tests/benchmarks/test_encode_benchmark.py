import json
from pathlib import Path

import encode
import pytest
from benchmark_runs import BENCHMARKS, run_quick
from lib.records import read_record


@pytest.mark.slow
def test_everyone_is_there_with_the_accuracy_of_its_own_record(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    record = run_quick(encode.main, output, "--threads", "1", pictures=["speed.png"])
    by_name = {result["name"]: result for result in record.results}
    ours, trained = {"single DSA", "single DSA, folded"}, {"dsa-single-snli", "dsa-multiple-snli", "static-cnn-snli"}
    peers = {"mean of GloVe", "all-MiniLM-L6-v2", "WordLlama 256"} - record.setup["missing"].keys()
    as_onnx = {"dsa-small-snli, ONNX", "dsa-small-snli, ONNX int8"}
    assert by_name.keys() == ours | peers | trained | {"BiLSTM-max 128D", "dsa-small-snli"} | as_onnx
    for name, result in by_name.items():
        rates, accuracy = result["sentences_per_second"], result["accuracy"]
        assert rates["bulk"] > 0
        assert (rates["single"] is None) == (name in trained | {"dsa-small-snli"})
        assert (accuracy is None) == (name in ours | {"BiLSTM-max 128D"})
    for way in ("bulk", "single"):
        assert min(by_name[name]["ratio"][way] for name in ours) == 1
    frozen = {result["name"]: result["seeds"] for result in read_record(BENCHMARKS / "peer_accuracy.json").results}
    assert {name: by_name[name]["accuracy"]["seeds"] for name in peers} == {name: frozen[name] for name in peers}
    for name in trained:
        files = sorted((BENCHMARKS.parent / "results" / "snli-balanced" / name).glob("*.json"))
        records = [json.loads(path.read_text(encoding="utf-8")) for path in files]
        accuracy = by_name[name]["accuracy"]
        assert accuracy["source"] == f"results/snli-balanced/{name}"
        assert accuracy["seeds"] == [found["metrics"]["validation"]["accuracy"] for found in records]


def test_too_few_sentences_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        encode.main(["--rounds", "1000"])
    assert "the sample has 101,436 sentences" in capsys.readouterr().err.splitlines()[-1].lower()
