"""Ablations as YAML files."""

import re
from pathlib import Path

import pytest
from small_grids import write_grid

from run_glue_style.reporting.grid.definition import read_grid


def test_rows_are_the_base_with_one_change_each(tmp_path: Path) -> None:
    grid = read_grid(write_grid(tmp_path))
    assert {name: row.options for name, row in grid.rows.items()} == {
        "base": {"routing_scale": "8"},
        "static": {"routing_scale": "8", "pooling": "static"},
        "two-heads": {"routing_scale": "8", "num_attention_heads": "2"},
    }
    assert [row.line for row in grid.rows.values()] == [4, 7, 8]
    assert grid.seeds == [0, 1, 2]


def test_rows_are_a_product_and_the_base_is_one_of_them(tmp_path: Path) -> None:
    product = "product:\n  routing_scale: [1, 8]\n  kernel_sizes: [[3, 5], [3]]\n"
    path = write_grid(
        tmp_path,
        ("changes:\n  static: {pooling: static}\n  two-heads:\n    num_attention_heads: 2\n", product),
        ("routing_scale: 8", "{routing_scale: 8, kernel_sizes: [3, 5]}"),
    )
    rows = read_grid(path).rows
    assert list(rows) == [
        "base",
        "routing_scale=1,kernel_sizes=3-5",
        "routing_scale=1,kernel_sizes=3",
        "routing_scale=8,kernel_sizes=3",
    ]
    assert rows["routing_scale=1,kernel_sizes=3"].options == {"routing_scale": "1", "kernel_sizes": ["3"]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds:", "seed:", "line 11: a grid has no 'seed'. Did you mean 'seeds'?"),
        ("script: run_nli", "script: run_nil", "line 2: there is no script 'run_nil'. Did you mean 'run_nli'?"),
        ("title: Does it matter?\n", "", "line 1: a grid needs 'title'."),
        ("changes:", "changes: 3\nproduct:", "line 1: a grid needs either 'changes' or 'product'."),
        ("changes:", "product:", "line 7: 'static' must be a list, such as [1, 2]."),
        (
            "{pooling: static}",
            "{pooling: static, pooling: mean}",
            "line 7: 'pooling' stands twice in the change 'static'",
        ),
        ("{pooling: static}", "{}", "line 7: the change 'static' changes nothing."),
        ("{pooling: static}", "{pooling: }", "line 7: 'pooling' must be a single value."),
        ("{pooling: static}", "{seed: 3}", "line 7: leave out 'seed': the study sets it."),
        ("{pooling: static}", "{push_to_hub: true}", "line 7: leave out 'push_to_hub': push a finished run by"),
        ("{pooling: static}", "{num-heads: 3}", "line 7: write 'num_heads' in place of 'num-heads'."),
        ("  static:", "  a/b:", "line 7: 'a/b' cannot name a row"),
        ("  static:", "  base:", "line 7: 'base' cannot name a row"),
        ("routing_scale: 8", "setting: x", "line 3: 'setting' is also set by the row 'base': leave it out of one."),
        ("[0, 1, 2]", "[0, 1, 1]", "line 11: the seeds must be different whole numbers, such as [0, 1, 2]."),
        ("[0, 1, 2]", "3", "line 11: 'seeds' must be a list, such as [1, 2]."),
        ("seeds:", "comparisons: [[static, bas]]\nseeds:", "line 11: there is no row 'bas'. Did you mean 'base'?"),
        ("test.macro_f1", "macro_f1", "line 10: the metric 'macro_f1' must say of which split it is"),
        ("metrics: [", "metrics: [[", "this is not valid YAML"),
    ],
)
def test_a_mistake_gets_one_sentence_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read_grid(write_grid(tmp_path, (old, new)))
    assert str(error.value).startswith(f"{tmp_path / 'small.yaml'}, line ")
    assert "\n" not in str(error.value)
