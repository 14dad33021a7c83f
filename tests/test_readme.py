"""The README tells the truth: its tables are the files', its snippets run, its commands name what exists."""

import re
from pathlib import Path

import pytest

from run_glue_style.tabulate import as_markdown, read_rows

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLES = re.findall(r"<!-- table: (\S+) -->\n(.*?)<!-- end of table -->", README, flags=re.S)


def block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", README, flags=re.S)
    assert found, f"README.md has no block '{name}'"
    return found.group(1)


@pytest.mark.parametrize(("path", "table"), TABLES)
def test_tables_are_those_of_the_results(path: str, table: str) -> None:
    assert table == (ROOT / path).read_text(encoding="utf-8")
    assert table == as_markdown(read_rows((ROOT / path).parent))


def test_there_is_a_table() -> None:
    assert TABLES


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert links
    missing = [link for link in links if not (ROOT / link).exists()]
    assert not missing


@pytest.mark.parametrize("name", ["command: main", "command: tests"])
def test_commands_name_what_exists(name: str) -> None:
    command = block(name)
    files = re.findall(r"\S+\.(?:py|yaml|txt)\b", command)
    assert files
    assert all((ROOT / file).is_file() for file in files)
