import importlib
import re

import pytest
from benchmark_runs import BENCHMARKS
from lib.records import read_record

README = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
TABLES = dict(re.findall(r"<!-- table: (\w+)\.json -->\n(.*?)<!-- end of table -->", README, flags=re.S))


def test_every_benchmark_has_a_section_for_its_table() -> None:
    assert TABLES.keys() == {path.stem for path in BENCHMARKS.glob("*.py")}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_records(name: str) -> None:
    path = BENCHMARKS / f"{name}.json"
    table = importlib.import_module(name).TABLE
    assert TABLES[name] == (f"{table.as_markdown(read_record(path))}\n" if path.is_file() else "")
