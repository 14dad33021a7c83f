from pathlib import Path

import pytest
import stance_epoch
from benchmark_runs import run_quick


def test_every_way_is_compared_with_grouped_batches(tmp_path: Path) -> None:
    record = run_quick(stance_epoch.main, tmp_path / "results" / "speed.json", "--setting", "mean-fnc1")
    results = {result["way"]: result for result in record.results}
    assert list(results) == ["texts once", "pairs alone", "grouped", "random", "every pair"]
    assert results.pop("pairs alone")["tokens"] == 0
    tokens = [results[way]["tokens"] for way in results]
    assert tokens == sorted(tokens)
    assert results["grouped"]["seconds_to_grouped"] == results["grouped"]["tokens_to_grouped"] == 1
    assert results["texts once"]["tokens_to_grouped"] < 1 < results["every pair"]["tokens_to_grouped"]
    assert (results["grouped"]["measured_batches"], results["random"]["measured_batches"]) == (10, 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--setting", "dsa-single-fnc2"], "Did you mean 'dsa-single-fnc1'?"),
        (["--data_dir", "nowhere"], "there is no such file"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        stance_epoch.main(["--threads", "1", *arguments])
    assert said in capsys.readouterr().err.splitlines()[-1]
