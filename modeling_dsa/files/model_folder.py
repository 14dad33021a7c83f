"""Whether a folder or a repository of the Hub holds a model of this family, told from its config.json alone."""

import json
import os
from os import PathLike
from pathlib import Path
from typing import Any, cast

from modeling_dsa.command.messages import cause_of

CONFIG = "config.json"
MODEL_TYPE = "dsa"
_MOST_LABELS = 1_000_000


class OtherFamilyError(ValueError):
    """A config is that of a model of another family."""


def read_config(source: str | PathLike[str]) -> dict[str, Any]:
    """Read the config of a model of this family; neither torch nor transformers is imported for it.

    Args:
        source: The folder of a saved model, its config.json, or its id on the Hub.

    Raises:
        OSError: There is no such file, or the Hub cannot be reached.
        OtherFamilyError: It is that of a model of another family.
        ValueError: The file is not JSON, or the model's weights are said to lie outside its folder.
    """
    path = _find_config(source)
    _refuse_files_outside(path.with_name("model.safetensors.index.json"))
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        reason = str(error).partition(";")[0]
        raise ValueError(f"{path} is not JSON ({reason}): give the folder or Hub id of a saved model.") from error
    found = config.get("model_type") if isinstance(config, dict) else None
    if found != MODEL_TYPE:
        raise OtherFamilyError(f"{source} is a model of type {found!r}: give one of type {MODEL_TYPE!r}.")
    if isinstance(config.get("num_labels"), int) and config["num_labels"] > _MOST_LABELS:  # transformers names each
        raise ValueError(f"{path}: num_labels is {config['num_labels']:,}: {_MOST_LABELS:,} is the most.")
    return cast(dict[str, Any], config)


def holds_model(folder: Path) -> bool:
    """Whether a folder here holds a model of this family, be it whole or not."""
    try:
        return bool(json.loads((folder / CONFIG).read_bytes())["model_type"] == MODEL_TYPE)
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return False


def _refuse_files_outside(index: Path) -> None:
    """Refuse the index of weights in several files where it leads out of its folder."""
    try:
        names = json.loads(index.read_bytes())["weight_map"].values() if index.is_file() else ()
        outside = [name for name in names if Path(name).is_absolute() or ".." in Path(name).parts]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{index} is no index of weights: save or download the model again.") from error
    if outside:
        raise ValueError(f"{index} names the file {outside[0]!r:.80}, which is outside the model's folder.")


def find_file(source: str | PathLike[str], name: str) -> Path | None:
    """A file of a folder or of a repository of the Hub; None where it has none, or cannot be reached."""
    if os.path.isdir(source):  # noqa: PTH112  (as in `_find_config`)
        path = Path(source, name)
        return path if path.is_file() else None
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(hf_hub_download(str(source), name))
    except (OSError, HFValidationError):
        return None


def _find_config(source: str | PathLike[str]) -> Path:
    path = Path(source)
    # pathlib's fails for what is too long for a name, such as a text in the wrong place.
    if os.path.isfile(path):  # noqa: PTH113
        return path
    if os.path.isdir(path):  # noqa: PTH112
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(f"{path} has no {CONFIG}: give the folder of a saved model.")
        return path / CONFIG
    if "/" not in str(source):  # the Hub has such models of others, and where it cannot be reached it is asked for long
        raise FileNotFoundError(f"{source} is no folder here and no id of the Hub, such as org/{source}: give either.")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(hf_hub_download(str(source), CONFIG))
    except (OSError, HFValidationError) as error:
        raise FileNotFoundError(
            f"{source} is no folder here, and on the Hub its {CONFIG} cannot be read ({cause_of(error)}): give a "
            "folder or Hub id of a saved model."
        ) from error
