import csv
from pathlib import Path

import encoders_table
import pytest
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_MODEL, read_pairs

from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.evaluation.similarity import evaluate_similarity, read_similarity


@pytest.mark.slow
def test_accuracy_and_speed_of_everyone_in_one_run(tmp_path: Path) -> None:
    pairs, file = read_pairs("validation", 60), tmp_path / "scores.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(("sentence1", "sentence2", "score"))
        writer.writerows(zip(pairs["premise"], pairs["hypothesis"], [-label for label in pairs["label"]], strict=True))
    output = tmp_path / "results" / "table.json"
    record = run_quick(encoders_table.main, output, "--similarity", str(file), "--threads", "1", pictures=["table.png"])
    by_name = {result["name"]: result for result in record.results}
    own = {"dsa-snli", "dsa-snli, ONNX", "dsa-snli, ONNX int8"}
    peers = {"all-MiniLM-L6-v2", "WordLlama 256"} - record.setup["missing"].keys()
    optional = {name for name in by_name if name.startswith(("all-MiniLM-L6-v2, ", "model2vec "))}
    assert by_name.keys() - optional == own | peers | {"mean of GloVe"}
    encoder = SentenceEncoder.from_pretrained(SHIPPED_MODEL, device="cpu")
    expected = evaluate_similarity(encoder.encode, read_similarity(file)).spearman
    assert by_name["dsa-snli"]["similarity"]["scores"] == pytest.approx(expected, abs=1e-3)
    assert all(rate > 0 for result in record.results for rate in result["sentences_per_second"].values())


def test_the_front_has_those_that_no_other_one_surpasses_in_both() -> None:
    points = [(100.0, 90.0), (400.0, 70.0), (300.0, 80.0), (200.0, 80.0), (150.0, 75.0), (400.0, 60.0)]
    assert encoders_table.pareto_front(points) == [(400.0, 70.0), (300.0, 80.0), (100.0, 90.0)]
