from pathlib import Path

import pytest
import training_waits
from benchmark_runs import run_quick


@pytest.mark.slow
def test_the_engine_makes_the_steps_and_a_cpu_counts_nothing(tmp_path: Path) -> None:
    (result,) = run_quick(training_waits.main, tmp_path / "results" / "waits.json", "--threads", "1").results
    assert (result["setting"], result["precision"]) == ("dsa-single-snli", "fp32")
    assert 0 < result["loading_milliseconds"] < result["milliseconds"]
    assert {result[name] for name in training_waits.COUNTED} == {None}


def test_a_setting_that_is_none_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        training_waits.main(["--setting", "dsa-singel-snli"])
    assert "There is no setting 'dsa-singel-snli'. Did you mean" in capsys.readouterr().err.splitlines()[-1]
