from pathlib import Path

import attention_cost
import pytest
from benchmark_runs import run_quick


@pytest.mark.slow
def test_a_student_of_the_study_has_points_and_time(tmp_path: Path) -> None:
    record = run_quick(attention_cost.main, tmp_path / "results" / "cost.json")
    assert [result["name"] for result in record.results] == ["mean-of-words"]
    assert all(80 < result["points"] < 100 and result["bulk_us"] > 0 for result in record.results)
