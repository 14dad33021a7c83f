"""The table of several runs."""

import json
from pathlib import Path

import pytest
from small_results import write_results

from run_glue_style.reporting.paper_comparison import Comparison
from run_glue_style.reporting.plain_table import plain_table
from run_glue_style.reporting.published import read_published
from run_glue_style.reporting.rows import read_rows
from run_glue_style.reporting.tabulate import main, table_and_writer, write_comparison


def test_the_command_writes_the_table(tmp_path: Path) -> None:
    write_results(tmp_path, "static", 0, 0.60)
    assert main([str(tmp_path)]) == 0
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == plain_table(read_rows(tmp_path))


def test_a_folder_of_a_paper_s_table_is_written_again_from_its_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_results(tmp_path, "dsa-single-sst2", 0, 0.80)
    write_comparison(Comparison(read_published("sst"), read_rows(tmp_path), quick=True), tmp_path)
    first = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert first == table_and_writer(tmp_path)[0]
    write_results(tmp_path, "dsa-single-sst2", 1, 0.82)
    (tmp_path / "plot.png").unlink()
    assert main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    second = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert second == table_and_writer(tmp_path)[0] == printed.removesuffix("\n")
    assert "| 79.00 |" in first
    assert "| 80.00 ± 1.41 |" in second
    assert "quick trial" in second
    written = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert written["rows"]["dsa-single"]["seeds"] == {"dsa-single-sst2": [0, 1]}
    assert {path.name for path in tmp_path.iterdir()} == {
        *("dsa-single-sst2", "plot.png", "plot.svg", "table.json", "table.md")
    }


def test_runs_that_do_not_fit_into_one_table_are_a_mistake(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refused(sentence: str) -> None:
        assert main([str(tmp_path)]) == 2
        assert sentence in caplog.messages[-1]

    write_results(tmp_path, "dynamic", 0, 0.61)
    write_results(tmp_path, "static", 0, 0.60, metrics={"validation": {"loss": 0.5}, "test": {"accuracy": 0.6}})
    refused("A run of the row 'static' has no accuracy on 'validation', and others have one.")
    write_results(tmp_path, "static", 0, 0.60, data={"test": {"examples": 9, "sha256": "c"}})
    refused("The rows 'dynamic' and 'static' have other examples in 'test': put them apart.")
    write_results(tmp_path, "static", 0, 0.60, processes=1)
    write_results(tmp_path, "static", 1, 0.60, processes=4)
    refused("The runs of the row 'static' with the seeds 0 and 1 differ in their processes, so they have no mean")


def test_an_empty_folder_is_a_mistake_with_one_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main([str(tmp_path)]) == 2
    assert f"{tmp_path} has no runs: put each all_results.json at " in caplog.messages[-1]


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("entropy.json", "{}", "is damaged (it has no 'systems'): make it again."),
        ("overlap.json", '{"rows": {"a": {}}}', "is damaged (it has no 'hops'): make it again."),
        ("table.json", "{}", "is damaged (it has no 'table'): make it again."),
        ("table.json", "[", "is damaged (Expecting value: line 1 column 2 (char 1)): make it again."),
        (
            "static/seed-0.json",
            "{}",
            "holds no results of a run, which have a 'setting': take it",
        ),
    ],
)
def test_a_damaged_record_is_named(
    file: str, content: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")
    assert main([str(tmp_path)]) == 2
    (message,) = caplog.messages
    assert message.startswith(f"error: {path} {reason}")
