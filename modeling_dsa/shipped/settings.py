"""Published settings and recipes, found by name from a checkout and from an installed package alike."""

from pathlib import Path

from modeling_dsa.command.messages import suggestion
from modeling_dsa.files.yaml_text import YamlText, is_null

from .files import CONFIGURATION


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
    for folder in _candidates(CONFIGURATION, name):
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
    return _yaml_file("recipe", recipe)


def table_path(name: str) -> Path:
    """File of a paper's table, in `configuration/tables`.

    Raises:
        ValueError: There is no such table.
    """
    return _yaml_file("table", name, takes_path=False)


def grid_path(name: str) -> Path:
    """File of an ablation.

    Args:
        name: A grid's name in `configuration/grids`, or a path.

    Raises:
        ValueError: There is no such grid.
    """
    return _yaml_file("grid", name)


def _yaml_file(kind: str, name: str, takes_path: bool = True) -> Path:
    folder = CONFIGURATION / f"{kind}s"
    paths = _candidates(folder, name, ".yaml") if takes_path else [folder / f"{name}.yaml"]
    for path in paths:
        if path.is_file():
            return path
    raise ValueError(f"There is no {kind} '{name}'. {suggestion(name, (path.stem for path in folder.glob('*.yaml')))}")


def _candidates(shipped: Path, name: str, extension: str = "") -> list[Path]:
    """What a name may stand for: what ships, where it is no path such as `./dsa-small`, and what is here."""
    return [*([shipped / f"{name}{extension}"] if Path(name).name == name else []), Path(name)]


def read_recipe(path: Path) -> dict[str, str | list[str] | None]:
    """Options of a recipe file: names of command-line options and their values as texts, None for `null`.

    Raises:
        ValueError: The file is not a YAML mapping of names to values or lists of values, or a name stands twice.
    """
    file = YamlText(path)
    entries = file.mapping(file.read("options, such as 'learning_rate: 0.001'"), "a recipe")
    return {name: None if is_null(value) else file.value(value, name) for name, (_, value) in entries.items()}
