"""modeling_dsa.files.markdown."""

from modeling_dsa.files.markdown import markdown_table


def test_a_bar_in_a_cell_ends_no_cell() -> None:
    table = markdown_table(["row", "a|b"], [["x", "|"], ["", "1"]])
    assert table.splitlines() == ["| row | a\\|b |", "|---|---|", "| x | \\| |", "|  | 1 |"]
    assert markdown_table(["n"], [["1"]], ["---:"]).splitlines()[1] == "| ---: |"
