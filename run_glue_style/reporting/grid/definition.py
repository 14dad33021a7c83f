"""An ablation as a YAML file: a base, one change each or a product of values, and seeds."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modeling_dsa.command.messages import suggestion
from modeling_dsa.files.yaml_text import YamlText

Options = dict[str, str | list[str]]

BASE = "base"
SCRIPTS = ("run_nli", "run_sst", "run_stance", "run_classification", "run_distillation")
_KEYS = ("title", "script", "options", "base", "changes", "product", "comparisons", "metrics", "seeds")
_NEEDED = ("title", "script", "base", "metrics", "seeds")
# Options of the scripts that a study does not pass on, and why.
LEFT_OUT = {
    **dict.fromkeys(("seed", "output_dir", "save_example_scores"), "the study sets it"),
    "overwrite_output_dir": "delete the runs that are to be made again",
    **dict.fromkeys(  # each run would take the last one's place
        ("push_to_hub", "hub_model_id", "hub_private", "hub_strategy", "hub_revision"),
        "push a finished run by `dsa push OUTPUT_DIR/ROW/seed-N ORG/NAME`",
    ),
}
_FILE_NAME = re.compile(r"[\w+=,][\w.+=,-]*")


@dataclass(frozen=True)
class Row:
    """A row of a grid's table.

    Attributes:
        name: Also the name of its folder.
        options: What it sets, those of the base included.
        line: Where it stands in the file, counted from 1.
    """

    name: str
    options: Options
    line: int


@dataclass(frozen=True)
class Grid:
    """An ablation.

    Attributes:
        path: Its file.
        title: What it asks.
        script: Module of `run_glue_style` that trains a row.
        options: Options of the script that all rows share.
        rows: By name, the base first.
        comparisons: Names of rows that are compared with each other, beside each with the base.
        metrics: Where the figures stand in a run's metrics, such as "validation.accuracy", each with its line in the
            file; the first one is tested.
        seeds: Of each row's runs.
    """

    path: Path
    title: str
    script: str
    options: Options
    rows: Mapping[str, Row]
    comparisons: Sequence[tuple[str, str]]
    metrics: Mapping[str, int]
    seeds: Sequence[int]


def read_grid(path: Path) -> Grid:
    """The ablation in this file.

    Raises:
        ValueError: It has a mistake; the message names the line.
    """
    file = YamlText(path)
    root = file.read(", ".join(_NEEDED))
    entries = file.mapping(root, "a grid")
    for name, (key, _) in entries.items():
        if name not in _KEYS:
            file.refuse(key, f"a grid has no '{name}'. {suggestion(name, _KEYS)}")
    for name in _NEEDED:
        if name not in entries:
            file.refuse(root, f"a grid needs '{name}'.")
    if ("changes" in entries) == ("product" in entries):
        file.refuse(root, "a grid needs either 'changes' or 'product'.")
    values: dict[str, Any] = {name: value for name, (_, value) in entries.items()}
    script = file.text(values["script"], "'script'")
    if script not in SCRIPTS:
        file.refuse(values["script"], f"there is no script '{script}'. {suggestion(script, SCRIPTS)}")
    shared = _options(file, values["options"], "'options'") if "options" in values else {}
    base = Row(BASE, _options(file, values["base"], "'base'"), entries[BASE][0].start_mark.line + 1)
    changed = (
        _changes(file, values["changes"], base) if "changes" in values else _product(file, values["product"], base)
    )
    rows = {row.name: row for row in (base, *changed)}
    for row in rows.values():
        if both := sorted(shared.keys() & row.options.keys()):
            file.refuse(values["options"], f"'{both[0]}' is also set by the row '{row.name}': leave it out of one.")
    return Grid(
        path=path,
        title=file.text(values["title"], "'title'"),
        script=script,
        options=shared,
        rows=rows,
        comparisons=_comparisons(file, values["comparisons"], rows) if "comparisons" in values else [],
        metrics=dict(_metric(file, node) for node in file.sequence(values["metrics"], "'metrics'")),
        seeds=_seeds(file, values["seeds"]),
    )


def _options(file: YamlText, node: yaml.Node, what: str) -> Options:
    options: Options = {}
    for name, (key, value) in file.mapping(node, what).items():
        if name in LEFT_OUT:
            file.refuse(key, f"leave out '{name}': {LEFT_OUT[name]}.")
        if "-" in name:  # the scripts would take it for another option than the same one with _
            file.refuse(key, f"write '{name.replace('-', '_')}' in place of '{name}'.")
        options[name] = file.value(value, name)
    return options


def _changes(file: YamlText, node: yaml.Node, base: Row) -> list[Row]:
    """The base with each of these changes."""
    rows = []
    for name, (key, value) in file.mapping(node, "'changes'").items():
        _check_name(file, key, name)
        change = _options(file, value, f"the change '{name}'")
        if not change:
            file.refuse(key, f"the change '{name}' changes nothing.")
        rows.append(Row(name, base.options | change, key.start_mark.line + 1))
    return rows


def _product(file: YamlText, node: yaml.Node, base: Row) -> list[Row]:
    """All combinations of these values but the base's own."""
    choices: dict[str, list[str | list[str]]] = {}
    for name, (key, value) in file.mapping(node, "'product'").items():
        choices[name] = [file.value(item, name) for item in file.sequence(value, f"'{name}'")]
        if base.options.get(name) not in choices[name]:
            file.refuse(key, f"one of the values of '{name}' must be the base's, which 'base' must set.")
    rows = []
    for combination in itertools.product(*choices.values()):
        change = dict(zip(choices, combination, strict=True))
        if base.options | change != base.options:
            name = ",".join(f"{option}={_as_text(value)}" for option, value in change.items())
            _check_name(file, node, name)
            rows.append(Row(name, base.options | change, node.start_mark.line + 1))
    return rows


def _as_text(value: str | list[str]) -> str:
    return "-".join(value) if isinstance(value, list) else value


def _check_name(file: YamlText, node: yaml.Node, name: str) -> None:
    if name == BASE or not _FILE_NAME.fullmatch(name):
        file.refuse(node, f"'{name}' cannot name a row: a row is a folder, and '{BASE}' the one that is changed.")


def _comparisons(file: YamlText, node: yaml.Node, rows: Mapping[str, Row]) -> list[tuple[str, str]]:
    comparisons = []
    for item in file.sequence(node, "'comparisons'"):
        names = [file.text(name, "a row's name") for name in file.sequence(item, "a comparison")]
        for name in names:
            if name not in rows:
                file.refuse(item, f"there is no row '{name}'. {suggestion(name, rows)}")
        if len(set(names)) != 2 or len(names) != 2:
            file.refuse(item, "a comparison is of two rows, such as [static, dynamic].")
        comparisons.append((names[0], names[1]))
    return comparisons


def _metric(file: YamlText, node: yaml.Node) -> tuple[str, int]:
    metric = file.text(node, "a metric")
    if "." not in metric:
        file.refuse(node, f"the metric '{metric}' must say of which split it is, such as validation.accuracy.")
    return metric, node.start_mark.line + 1


def _seeds(file: YamlText, node: yaml.Node) -> list[int]:
    seeds = [file.text(item, "a seed") for item in file.sequence(node, "'seeds'")]
    if not all(seed.isdecimal() for seed in seeds) or len(set(seeds)) < len(seeds):
        file.refuse(node, "the seeds must be different whole numbers, such as [0, 1, 2].")
    return [int(seed) for seed in seeds]
