"""The table of a grid from the records of its runs."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_grids import write_grid, write_run

from run_glue_style.reporting.grid.definition import read_grid
from run_glue_style.reporting.grid.differences import OTHER_EXAMPLES
from run_glue_style.reporting.grid.table import GridTable
from run_glue_style.reporting.tabulate import table_and_writer


@pytest.fixture
def table(tmp_path: Path) -> GridTable:
    """Two of the three rows are finished, one of them with two seeds."""
    generator = np.random.default_rng(0)
    base = generator.random((2, 200)) < 0.6
    for seed in range(2):
        write_run(tmp_path, "base", seed, base[seed])
    write_run(tmp_path, "static", 1, base[1] | (generator.random(200) < 0.2))
    return GridTable(read_grid(write_grid(tmp_path)), tmp_path)


def test_rows_are_compared_with_the_base(table: GridTable, tmp_path: Path) -> None:
    table.write()
    written = json.loads((tmp_path / "table.json").read_text("utf-8"))
    base, static = (list(table.values(row, "validation.accuracy").values()) for row in ("base", "static"))
    of_base = written["rows"]["base"]["metrics"]["validation.accuracy"]
    assert of_base["mean"] == pytest.approx(np.mean(base))
    assert of_base["standard_deviation"] == pytest.approx(np.std(base, ddof=1))
    accuracy, macro_f1 = written["differences"]
    assert (accuracy["row"], accuracy["against"], accuracy["seeds"]) == ("static", "base", 1)
    assert accuracy["mean"] == pytest.approx(static[0] - base[1])
    assert accuracy["p_examples"] < 0.001
    assert 0 < accuracy["interval"][0] < accuracy["mean"] < accuracy["interval"][1]
    assert (macro_f1["metric"], macro_f1["p_examples"]) == ("test.macro_f1", None)
    markdown = (tmp_path / "table.md").read_text("utf-8")
    assert f"| base | {100 * np.mean(base):.2f} ± {100 * np.std(base, ddof=1):.2f} |" in markdown
    assert markdown == table_and_writer(tmp_path)[0]  # the folder holds all that it is made from
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "plot.svg").read_bytes()


@pytest.mark.parametrize(
    ("part", "changes", "told"),
    [
        ("data", {"train": {"examples": 20, "sha256": "b"}}, "rows static and base were trained on other data, which"),
        ("recipe", {"learning_rate": 0.1}, "recipes of the rows static and base differ in learning_rate, which no opt"),
    ],
)
def test_a_row_that_was_trained_otherwise_than_the_grid_says_is_refused(
    part: str, changes: dict[str, object], told: str, table: GridTable, tmp_path: Path
) -> None:
    path = tmp_path / "static" / "seed-1.json"
    record = json.loads(path.read_text("utf-8"))
    record[part] |= changes
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        GridTable(table.grid, tmp_path)


def test_rows_that_began_with_other_word_vectors_are_refused(table: GridTable, tmp_path: Path) -> None:
    for row, seed, digest in (("base", 0, "a"), ("base", 1, "a"), ("static", 1, "b")):
        path = tmp_path / row / f"seed-{seed}.json"
        record = json.loads(path.read_text("utf-8")) | {"vectors_sha256": digest}
        path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match="rows static and base began with other word vectors, which no option of"):
        GridTable(table.grid, tmp_path)


def test_an_error_is_not_a_percentage(tmp_path: Path) -> None:
    for seed, (base, static) in enumerate([(0.51, 0.61), (0.53, 0.65)]):
        for row, error in (("base", base), ("static", static)):
            write_run(tmp_path, row, seed, np.ones(4, bool))
            path = tmp_path / row / f"seed-{seed}.json"
            record = json.loads(path.read_text("utf-8"))
            record["metrics"]["validation"] = {"mean_absolute_error": error}
            path.write_text(json.dumps(record), encoding="utf-8")
    path = write_grid(tmp_path, ("[validation.accuracy, test.macro_f1]", "[validation.mean_absolute_error]"))
    table = GridTable(read_grid(path), tmp_path).as_markdown()
    assert "| base | 0.52 ± 0.01414 |" in table
    assert "| static | 0.63 ± 0.02828 | +0.11 [" in table


def test_rows_that_were_measured_on_other_examples_are_not_compared(table: GridTable, tmp_path: Path) -> None:
    path = tmp_path / "static" / "seed-1.json"
    path.write_text(path.read_text("utf-8").replace('"sha256": "a"', '"sha256": "b"'), encoding="utf-8")
    found = GridTable(table.grid, tmp_path)
    assert found.differences["static", "base"]["validation.accuracy"] == OTHER_EXAMPLES
    assert [one["metric"] for one in found.as_json()["differences"]] == ["test.macro_f1"]
    assert "| other examples | – | – |" in found.as_markdown()
