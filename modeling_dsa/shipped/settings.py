"""Published settings and recipes, found by name from a checkout and from an installed package alike."""

from pathlib import Path
from typing import Any

import yaml

from modeling_dsa.files.messages import one_line, suggestion

from .files import CONFIGURATION

_MOST_BRACKETS = 500
_NULL = ("", "~", "null", "Null", "NULL")


def setting_names() -> list[str]:
    """Names of all settings, in alphabetical order."""
    return sorted(path.parent.name for path in CONFIGURATION.glob("*/config.json"))


def setting_folder(name: str) -> Path:
    """Folder of a setting: `config.json`, which `DSAConfig.from_pretrained` reads, and `recipe.yaml`.

    Args:
        name: A setting's name, or the path of a folder with the same two files.

    Raises:
        ValueError: There is no such setting.
    """
    for folder in (CONFIGURATION / name, Path(name)):
        if (folder / "config.json").is_file():
            return folder
    raise ValueError(f"There is no setting '{name}'. {suggestion(name, setting_names())}")


def recipe_path(recipe: str | None, setting: Path | None) -> Path | None:
    """File of a training recipe.

    Args:
        recipe: A recipe's name in `configuration/recipes`, a path, or None for the setting's own.
        setting: The setting's folder.

    Raises:
        ValueError: There is no such recipe.
    """
    if recipe is None:
        return setting / "recipe.yaml" if setting is not None and (setting / "recipe.yaml").is_file() else None
    for path in (CONFIGURATION / "recipes" / f"{recipe}.yaml", Path(recipe)):
        if path.is_file():
            return path
    names = (path.stem for path in (CONFIGURATION / "recipes").glob("*.yaml"))
    raise ValueError(f"There is no recipe '{recipe}'. {suggestion(recipe, names)}")


def table_path(name: str) -> Path:
    """File of a paper's table, in `configuration/tables`.

    Raises:
        ValueError: There is no such table.
    """
    path = CONFIGURATION / "tables" / f"{name}.yaml"
    if not path.is_file():
        names = (path.stem for path in path.parent.glob("*.yaml"))
        raise ValueError(f"There is no table '{name}'. {suggestion(name, names)}")
    return path


def grid_path(name: str) -> Path:
    """File of an ablation.

    Args:
        name: A grid's name in `configuration/grids`, or a path.

    Raises:
        ValueError: There is no such grid.
    """
    for path in (CONFIGURATION / "grids" / f"{name}.yaml", Path(name)):
        if path.is_file():
            return path
    names = (path.stem for path in (CONFIGURATION / "grids").glob("*.yaml"))
    raise ValueError(f"There is no grid '{name}'. {suggestion(name, names)}")


class _RecipeLoader(yaml.BaseLoader):
    """Reads every value as the text that it is: the option knows its type, and `no` or `1:30` mean what they say."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping, in which no key may stand twice."""
        keys = [key.value for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise yaml.YAMLError(f"'{key}' stands twice")
        return super().construct_mapping(node, deep)


def read_yaml_text(path: Path) -> str:
    """The text of a YAML file.

    Raises:
        ValueError: It is not UTF-8, or has more brackets than anybody writes: PyYAML's time grows with their square.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid YAML: it is not UTF-8.") from error
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise ValueError(f"{path} is nested too deeply, in more than {_MOST_BRACKETS} brackets: write fewer.")
    return text


def read_recipe(path: Path) -> dict[str, str | list[str] | None]:
    """Options of a recipe file: names of command-line options and their values as texts, None for `null`.

    Raises:
        ValueError: The file is not a YAML mapping of names to values or lists of values, or a name stands twice.
    """
    try:
        recipe = yaml.load(read_yaml_text(path), _RecipeLoader)
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deeply: it must map option names to values.") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {one_line(error)}") from error
    if not isinstance(recipe, dict):
        raise ValueError(f"{path} must map option names to values, such as 'learning_rate: 0.001'.")
    for name, value in recipe.items():
        if not _is_value(value):
            raise ValueError(f"{path}: {name} must be a value or a list of values, got {value!r:.80}.")
    return {name: None if value in _NULL else value for name, value in recipe.items()}


def _is_value(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))
