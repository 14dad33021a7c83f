"""YAML files of names and values: each value is the text that stands there, and a mistake is told with its line."""

from pathlib import Path
from typing import NoReturn

import yaml

from modeling_dsa.command.messages import one_line

_MOST_BRACKETS = 500


class YamlText:
    """A YAML file, and what its parts must be.

    Args:
        path: Its file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, needed: str) -> yaml.Node:
        """The file's contents.

        Args:
            needed: What the file must have, for the message about an empty one.

        Raises:
            OSError: It cannot be read.
            ValueError: It is empty, not UTF-8, no YAML, or nested deeper than anybody writes.
        """
        try:
            node = yaml.compose(self._text(), yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
            raise ValueError(f"{self.path}{line}: this is not valid YAML: {error.problem}.") from error
        except yaml.YAMLError as error:
            raise ValueError(f"{self.path} is not valid YAML: {one_line(error)}") from error
        except RecursionError as error:
            raise ValueError(f"{self.path} is nested too deeply: it must have {needed}.") from error
        if node is None:
            raise ValueError(f"{self.path} is empty: it must have {needed}.")
        return node

    def _text(self) -> str:
        try:
            text = self.path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not valid YAML: it is not UTF-8.") from error
        if text.count("[") + text.count("{") > _MOST_BRACKETS:  # PyYAML's time grows with their square
            raise ValueError(f"{self.path} is nested too deeply, in more than {_MOST_BRACKETS} brackets: write fewer.")
        return text

    def refuse(self, node: yaml.Node, message: str) -> NoReturn:
        """Say what is wrong with a part of the file.

        Raises:
            ValueError: Always; the message has the line.
        """
        raise ValueError(f"{self.path}, line {node.start_mark.line + 1}: {message:.500}")

    def mapping(self, node: yaml.Node, what: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Key and value by name.

        Raises:
            ValueError: It is no mapping, or a name stands twice.
        """
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node, f"{what} must be a mapping, 'name: value' on each line.")
        entries: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            name = self.text(key, f"a name in {what}")
            if name in entries:
                self.refuse(key, f"'{name}' stands twice in {what}.")
            entries[name] = key, value
        return entries

    def text(self, node: yaml.Node, what: str) -> str:
        """A value as the text that it is: the option knows its type, and `no` or `1:30` mean what they say.

        Raises:
            ValueError: It is empty, null, or several values.
        """
        if not isinstance(node, yaml.ScalarNode) or is_null(node) or not node.value:
            self.refuse(node, f"{what} must be a single value.")
        return str(node.value)

    def sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        """The values of a list.

        Raises:
            ValueError: It is no list, or empty.
        """
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.refuse(node, f"{what} must be a list, such as [1, 2].")
        return list(node.value)

    def value(self, node: yaml.Node, name: str) -> str | list[str]:
        """The text or texts of an option.

        Raises:
            ValueError: It is neither a value nor a list of values.
        """
        if isinstance(node, yaml.SequenceNode):
            return [self.text(item, f"each value of '{name}'") for item in self.sequence(node, f"'{name}'")]
        return self.text(node, f"'{name}'")


def is_null(node: yaml.Node) -> bool:
    """Whether a value is `null`, or not there."""
    return bool(node.tag == "tag:yaml.org,2002:null")
