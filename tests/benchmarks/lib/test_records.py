from pathlib import Path

import pytest
from lib.records import Column, Record, Table, keep, read_record
from matplotlib.figure import Figure

RECORD = Record(
    options={"rounds": 2},
    machine={"load_before": 0.5},
    setup={"tokens": 20},
    results=[{"name": "a|b", "time": {"ms": 1234.5}, "share": 0.5}, {"name": "c", "time": None, "share": None}],
)
TABLE = Table(
    (Column("name", "{name}", is_text=True), Column("ms", "{time[ms]:,.0f}"), Column("share", "{share:.0%} of 1"))
)
MARKDOWN = "| name | ms | share |\n| --- | ---: | ---: |\n| a\\|b | 1,234 | 50% of 1 |\n| c |  |  |"


def test_a_cell_is_empty_where_a_figure_was_not_measured() -> None:
    assert TABLE.as_markdown(RECORD) == MARKDOWN


def test_a_figure_that_no_row_has_is_a_mistake_of_the_table() -> None:
    with pytest.raises(KeyError, match="speed"):
        Table((Column("speed", "{speed}"),)).as_markdown(RECORD)


def test_a_table_may_make_rows_of_its_own() -> None:
    table = Table((Column("sum", "{sum}"),), rows=lambda record: [{"sum": len(record.results)}])
    assert table.as_markdown(RECORD).splitlines()[2:] == ["| 2 |"]


@pytest.mark.parametrize("old", ["", "| old |\n"])
def test_what_is_kept_goes_to_its_own_section_of_the_readme(
    old: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# Speed\n<!-- table: {} -->\n{}<!-- end of table -->\nthe end\n"
    readme = tmp_path / "README.md"
    readme.write_text(text.format("a.json", old) + text.format("b.json", ""), encoding="utf-8")
    keep(RECORD, TABLE, tmp_path / "a.json", lambda _record: Figure())
    expected = text.format("a.json", f"{MARKDOWN}\n") + text.format("b.json", "")
    assert readme.read_text(encoding="utf-8") == expected
    assert read_record(tmp_path / "a.json") == RECORD
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "a.json", "a.png"}
    assert capsys.readouterr().out == f"rounds: 2\ntokens: 20\nload_before: 0.5\n\n{MARKDOWN}\n"
