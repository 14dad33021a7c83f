"""Our runs beside a paper's figures."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_results import results, write_results

from run_glue_style.reporting.paper_comparison import Comparison
from run_glue_style.reporting.published import read_published
from run_glue_style.reporting.rows import read_rows
from run_glue_style.reporting.tabulate import read_comparison, write_comparison
from run_glue_style.reporting.units import mean_and_spread


def compare(name: str, *runs: dict[str, Any], quick: bool = False) -> Comparison:
    by_setting: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        by_setting.setdefault(run["setting"], []).append(run)
    return Comparison(read_published(name), by_setting, quick)


def lines(comparison: Comparison) -> list[str]:
    return [line for line in comparison.as_markdown().splitlines() if line.startswith("| ")]


def seeds(setting: str, accuracies: Sequence[float]) -> list[dict[str, Any]]:
    return [results(setting, seed, accuracy) for seed, accuracy in enumerate(accuracies)]


def test_one_run_has_no_spread() -> None:
    assert mean_and_spread([0.5], "test.accuracy") == "50.00"


def test_rows_of_snli_have_mean_spread_and_the_published_figure_or_a_dash() -> None:
    runs = (*seeds("dsa-single-snli", (0.61, 0.62, 0.63)), *seeds("bilstm-structured-5-snli", [0.6]))
    table = lines(compare("snli", *runs))
    columns = (
        "validation accuracy | test accuracy | published | train accuracy | published | seeds | parameters | published "
        "| s an epoch | published"
    )
    assert table[:2] == [
        f"| system | {columns} |",
        "| bilstm-inner-attention | – | – | 84.2 | – | 84.5 | 0 | – | 2.8 M | – | – |",
    ]
    assert table[-4:] == [
        "| bilstm-structured-5 | 60.00 | 59.00 | – | – | – | 1 | 2,078,703 | – | 15 | – |",
        "| static-cnn | – | – | 84.6 | – | 88.7 | 0 | – | 2.4 M | – | 121 |",
        "| dsa-single | 62.00 ± 1.00 | 61.00 ± 1.00 | 86.8 | – | 87.3 | 3 | 2,078,703 | 2.1 M | 15 | 135 |",
        "| dsa-multiple | – | – | 87.4 | – | 89.0 | 0 | – | 7 M | – | 198 |",
    ]


def test_measured_seconds_stand_in_the_place_of_the_runs_own_also_when_the_table_is_made_again(tmp_path: Path) -> None:
    write_results(tmp_path, "dsa-single-snli", 0, 0.6)
    epochs = {"dsa-single-snli": 1187.2, "disan-snli": 2898.0}
    write_comparison(Comparison(read_published("snli"), read_rows(tmp_path), quick=False, epochs=epochs), tmp_path)
    table = (tmp_path / "table.md").read_text("utf-8")
    assert "| 2.1 M | 1,187 | 135 |" in table
    assert "| disan | – | – | 85.6 | – | 91.1 | 0 | – | 2.4 M | 2,898 | 587 |" in table
    assert "Seconds were measured side by side" in table
    again = read_comparison(tmp_path)
    assert again is not None
    assert again.as_markdown() == table


def test_a_row_of_sst_has_runs_of_two_settings() -> None:
    fine = results("kim-cnn-sst5", 0, 0.41, trained_parameters=7)
    table = lines(compare("sst", *seeds("kim-cnn-sst2", (0.81, 0.83)), fine, *seeds("bilstm-sst5", [0.43])))
    assert table[0] == "| system | SST-2 accuracy | published | SST-5 accuracy | published | seeds | parameters |"
    assert table[1] == "| bilstm | – | 87.5 | 42.00 | 49.5 | 0 / 1 | – / 2,078,703 |"
    assert table[2] == "| kim-cnn | 81.00 ± 1.41 | 87.2 | 40.00 | 48.0 | 2 / 1 | 2,078,703 / 7 |"


def test_a_row_of_fnc_has_all_figures() -> None:
    table = lines(compare("fnc1", *seeds("vsam-fnc1", [0.81])))
    assert table[0].split(" | ")[1:6] == ["accuracy", "published", "macro F1", "agree recall", "published"]
    assert table[5] == (
        "| vsam | 80.00 | 83.54 | 25.00 | 50.00 | 28.53 | 12.50 | 10.43 | 75.00 | 65.43 | 100.00 | 82.43 | 80.00 "
        "| 1 | 2,078,703 |"
    )


def test_notes_say_how_both_were_made() -> None:
    notes = compare("snli", *seeds("dsa-single-snli", [0.6])).as_markdown().splitlines()[-1]
    for text in (
        "Data: some.jsonl, 9,000 train, 1,000 test examples.",
        "Word vectors: glove.6B.zip, 100 numbers a word.",
        "Recipe: modern, 6 epochs.",
        "Options: `--cpu`.",
        "Table 1 (lin: Lin et al. 2017, bilstm-max: Conneau et al. 2017), with GloVe 840B",
        "with GloVe 840B 300d (disan: GloVe 6B 300d, resan: GloVe 6B 300d) and 549,367 training examples.",
        "Ours have other word vectors and training examples, so",
    ):
        assert text in notes


def test_notes_say_nothing_of_differences_that_are_none() -> None:
    like_the_paper = {"vectors": "glove.840B.300d.zip", "data": {"train": {"examples": 549367}}}
    notes = compare("snli", results("dsa-single-snli", 0, 0.6, **like_the_paper)).notes()
    assert "comparable" not in notes
    other_examples = results("dsa-single-snli", 0, 0.6, vectors="glove.840B.300d.zip")
    assert "Ours have other training examples, so" in compare("snli", other_examples).notes()
    assert "Ours have other word vectors, so" in compare("sst", *seeds("bilstm-sst2", [0.8])).notes()


def test_notes_name_the_settings_where_they_differ() -> None:
    recipe = {"num_train_epochs": 6.0, "max_train_steps": 4}
    other = results("static-cnn-snli", 0, 0.6, recipe_name="static-cnn-snli", recipe=recipe)
    notes = compare("snli", *seeds("dsa-single-snli", [0.6]), other).notes()
    assert "modern, 6 epochs (dsa-single-snli); each setting has its own, 4 updates (static-cnn-snli)." in notes


def test_title_of_a_quick_trial_says_so() -> None:
    run = results("dsa-single-snli", 0, 0.6)
    assert "quick trial" in compare("snli", run, quick=True).as_markdown().splitlines()[0]
    assert "trial" not in compare("snli", run).as_markdown()


def test_json_has_the_same_figures() -> None:
    written = compare("sst", *seeds("dsa-single-sst5", (0.41, 0.43))).as_json()
    row = written["rows"]["dsa-single"]
    assert row["seeds"] == {"dsa-single-sst5": [0, 1]}
    assert row["figures"]["SST-5 accuracy"] == {
        "ours": pytest.approx([40, 42]),
        "mean": pytest.approx(41),
        "standard_deviation": pytest.approx(2**0.5),
        "published": 50.6,
    }
    empty: dict[str, Any] = {"ours": [], "mean": None, "standard_deviation": None, "published": 88.5}
    assert row["figures"]["SST-2 accuracy"] == empty
    assert (written["table"], written["quick"]) == ("sst", False)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (results("vsam-fnc1", 0, 0.6), "runs of 'vsam-fnc1', which is no setting of the table 'snli'"),
        (
            results("static-cnn-snli", 0, 0.6, data={"train": {"examples": 9000, "sha256": "c"}}),
            "dsa-single-snli and static-cnn-snli have different data",
        ),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(second: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        compare("snli", results("dsa-single-snli", 0, 0.6), second)


def test_parts_may_have_different_data() -> None:
    command = ["run_sst.py", "--classes", "5", "--cpu"]
    fine = results("bilstm-sst5", 0, 0.4, data={"train": {"examples": 8544}}, command=command)
    notes = compare("sst", results("bilstm-sst2", 0, 0.8), fine).notes()
    assert "Options: `--cpu`." in notes  # the columns say the number of classes
    assert "8,544 train examples (bilstm-sst5)" in notes
