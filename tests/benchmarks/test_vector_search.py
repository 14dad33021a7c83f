from pathlib import Path

import vector_search
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_MODEL


def test_recall_falls_with_the_numbers_and_hardly_with_their_type(tmp_path: Path) -> None:
    results = run_quick(vector_search.main, tmp_path / "vector_search.json", "--model", str(SHIPPED_MODEL)).results
    recalls = {(result["width"], result["dtype"]): result["recall_at_10"] for result in results}
    assert recalls[600, "float32"] == 1
    assert 0.95 < recalls[600, "int8"] <= 1
    assert 0.1 < recalls[100, "float32"] < recalls[300, "float32"] < 1
    assert {result["bytes"] for result in results if result["width"] == 300} == {300, 1200}
