"""The studies in `results`: the command of each page is the one that its runs were made with."""

import re
import shlex
from pathlib import Path

import pytest

from modeling_dsa.shipped.settings import grid_path
from run_glue_style.reporting.grid.definition import read_grid
from run_glue_style.studies.grid_plan import plan_run
from run_glue_style.studies.runs import refuse_other_options

RESULTS = Path(__file__).parents[1] / "results"
GRIDS = sorted(path.parent.name for path in RESULTS.glob("*/grid.yaml"))


@pytest.mark.parametrize("study", GRIDS)
def test_a_page_gives_the_command_of_its_runs(study: str) -> None:
    page = (RESULTS / study / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^python -m run_glue_style\.run_grid (.*?[^\\])$", page, re.MULTILINE | re.DOTALL)
    assert found is not None, "the page names no command"
    name, *options = shlex.split(found[1].replace("\\\n", ""))
    at = options.index("--output_dir")
    assert options[at + 1] == f"results/{study}"
    del options[at : at + 2]
    if "--seeds" in options:  # how many, and not how: they stand last
        del options[options.index("--seeds") :]
    grid = read_grid(grid_path(name))
    records = [(row, path) for row in grid.rows.values() for path in (RESULTS / study / row.name).glob("seed-*.json")]
    assert len(records) >= len(grid.rows)
    for row, path in records:
        refuse_other_options(plan_run(grid, row, int(path.stem.removeprefix("seed-")), RESULTS / study, options))
