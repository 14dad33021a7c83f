"""Tables of the papers (configuration/tables): what they published, and which settings of ours belong beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from modeling_dsa.shipped.settings import table_path


@dataclass(frozen=True)
class Column:
    """A column of figures.

    Attributes:
        part: The part of the table that its runs belong to.
        metric: Where the figure stands in a run's metrics, such as "test.per_class.agree.recall".
    """

    part: str
    metric: str


@dataclass(frozen=True)
class System:
    """A row.

    Attributes:
        called: Its name in the paper; None where the paper does not have it.
        published: Published figures in percent, by column.
        source: The paper that has the figures; None where it is the table's.
        vectors: Word vectors that its figures were made with; None where they are the table's.
    """

    called: str | None = None
    published: Mapping[str, float] = field(default_factory=dict)
    source: str | None = None
    vectors: str | None = None


@dataclass(frozen=True)
class PublishedWith:
    """What the published figures were made with.

    Attributes:
        vectors: Word vectors, in words.
        vectors_file: A pattern that the name of their file matches, in lower or upper case.
        train_examples: Examples of the training split; None where the paper does not say.
    """

    vectors: str
    vectors_file: str
    train_examples: int | None = None


@dataclass(frozen=True)
class Cost:
    """What a paper says of a system's accuracy and cost.

    Attributes:
        accuracy: On the test split, in percent.
        parameters: Trained ones, in millions.
        epoch_seconds: Of an epoch of training; None where the paper does not say.
    """

    accuracy: float
    parameters: float
    epoch_seconds: float | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A paper's table, and how to make it again.

    Attributes:
        name: Such as "snli".
        title: What is measured.
        source: Paper and table.
        script: Module of `run_glue_style` that trains a row.
        parts: Options of the script for each part, a group of columns that one run fills.
        files: Options of the script that name the data, and their files in one folder.
        data_ship: Whether the package has data and vectors of its own for it.
        quick: Options for a trial of a few updates.
        published_with: What the published figures were made with.
        decimals: Digits of its figures behind the point.
        columns: Columns by name, in order.
        systems: Rows by name, in order; the setting of a row and a part is called `<system>-<part>`.
        note: What else a reader must know.
        costs: Of the paper's systems, by their names there; also of those that have no row here.
    """

    name: str
    title: str
    source: str
    script: str
    parts: Mapping[str, Mapping[str, str | int]]
    files: Mapping[str, str]
    data_ship: bool
    quick: Mapping[str, str | int]
    published_with: PublishedWith
    decimals: int
    columns: Mapping[str, Column]
    systems: Mapping[str, System]
    note: str = ""
    costs: Mapping[str, Cost] = field(default_factory=dict)

    def parts_of_settings(self) -> dict[str, str]:
        """The part of each setting, system by system."""
        return {f"{system}-{part}": part for system in self.systems for part in self.parts}


def read_published(name: str) -> PublishedTable:
    """The table of this name.

    Raises:
        ValueError: There is no such table.
    """
    entries = yaml.safe_load(table_path(name).read_text(encoding="utf-8"))
    entries["published_with"] = PublishedWith(**entries["published_with"])
    entries["columns"] = {column: Column(**values) for column, values in entries["columns"].items()}
    entries["systems"] = {system: System(**values) for system, values in entries["systems"].items()}
    entries["costs"] = {called: Cost(**values) for called, values in entries.get("costs", {}).items()}
    return PublishedTable(name=name, **entries)
