"""What the labels of examples are: classes that a task fixes, classes that were found in the data, or numbers."""

from dataclasses import dataclass
from typing import Any, Protocol

from datasets import ClassLabel, Value

from modeling_dsa.files.label_values import as_number, class_index, class_name, plain_label


class Labels(Protocol):
    """The labels of one task. Instances can be pickled: the cache of `datasets` knows examples by them."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, by index; empty where labels are numbers."""

    @property
    def feature(self) -> Any:
        """The type of their column."""

    def read(self, value: object, location: str) -> int | float | None:
        """The index of a class or the number that a value in the data stands for; None where it is no label.

        Raises:
            ValueError: The value is unknown. The message begins with `location`.
        """


@dataclass(frozen=True)
class _Classes:
    class_names: tuple[str, ...]

    @property
    def feature(self) -> Any:
        """A `ClassLabel`."""
        return ClassLabel(names=list(self.class_names))


class KnownClasses(_Classes):
    """Classes that a task fixes: a label is a name in any case, its index, or `-` or -1 for no label."""

    def read(self, value: object, location: str) -> int | None:
        """As in `Labels`."""
        return class_index(value, self.class_names, location)


class FoundClasses(_Classes):
    """Classes that were found in the data: a label is a name, letter by letter; -1 is no label where no class is."""

    def read(self, value: object, location: str) -> int | None:
        """As in `Labels`."""
        label = plain_label(value, location)
        name = None if label is None else class_name(label)
        if name in self.class_names:
            return self.class_names.index(name)
        if name in (None, "-1"):
            return None
        raise ValueError(f"{location}: the label {value!r:.80} is none of the {len(self.class_names)} classes")


@dataclass(frozen=True)
class Numbers:
    """Numbers, for a regression.

    Attributes:
        unlabelled: The number that stands for no label, if one does.
    """

    unlabelled: float | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """There are no classes."""
        return ()

    @property
    def feature(self) -> Any:
        """A floating-point number."""
        return Value("float64")

    def read(self, value: object, location: str) -> float | None:
        """As in `Labels`."""
        number = as_number(value)
        if number is None:
            raise ValueError(f"{location}: the label {value!r:.80} is no number; fix or remove this row")
        return None if number == self.unlabelled else float(number)
