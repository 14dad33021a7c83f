"""Push the folder of a finished model, or of a static Space, to the Hub, in one commit."""

import itertools
import logging
import re
import shlex
import time
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from huggingface_hub import CommitInfo, CommitOperationAdd, CommitOperationDelete, HfApi, constants
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is that of the client's HTTP library
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    OfflineModeIsEnabled,
)
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # public, but not in an __all__
    filter_repo_objects,
    validate_repo_id,
)

from modeling_dsa.command.messages import one_line
from modeling_dsa.files.card_sections import CARD
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.files.model_replacing import belongs_to_model

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

WAITS = (1, 2, 4, 8, 16)  # seconds before each new attempt
PLACEHOLDER = "your-org/"  # before a model's name in a card that was written before anybody knew where it would go
_LONGEST_ID = 96  # characters, by the Hub's rule
# What a run, of this package's scripts or of a Trainer, keeps beside its model.
_OF_RUNS = ("checkpoints/*", "tracker/*", "checkpoint-*/*", "runs/*", "training_args.bin")
LEFT_OUT = (*_OF_RUNS, ".*", "*/.*", "*/__pycache__/*", "__pycache__/*")
_UNREACHABLE = (HTTPError, ConnectionError, TimeoutError)


class NotPushedError(Exception):
    """The Hub did not get a model or its widget. The message says why, where the model is, and how to push it later.

    Attributes:
        reason: Why, alone.
    """

    def __init__(self, reason: str, what: str, repo_id: str, remedy: str) -> None:
        super().__init__(f"{what} was not pushed to {repo_id}: {reason} {remedy}")
        self.reason = reason


def open_repository(
    repo_id: str, *, private: bool | None, revision: str | None = None, static_space: bool = False
) -> str:
    """Make a model's repository, and a branch of it, where they do not exist yet.

    Args:
        repo_id: `org/name`, or `name` for one of the user's own.
        private: Whether a new repository is private; None leaves it to the organisation. An old one stays as it is.
        revision: The branch; None is `main`.
        static_space: Make a static Space instead of a model.

    Returns:
        The full id, `org/name`.

    Raises:
        ValueError: The id cannot be one.
        OSError: The Hub refuses, or cannot be reached (some errors are of the HTTP library's own kind).
    """
    check_repo_id(repo_id)
    api = HfApi()
    kind, sdk = ("space", "static") if static_space else ("model", None)
    found = _retried(
        lambda: api.create_repo(repo_id, private=private, exist_ok=True, repo_type=kind, space_sdk=sdk)
    ).repo_id
    if revision is not None:
        _retried(lambda: api.create_branch(found, branch=revision, exist_ok=True))
    return found


def push_folder(
    folder: Path,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    commit_message: str = "Upload the model",
    widget: str | None = None,
    command: str | None = None,
) -> CommitInfo:
    """Push a model's folder: weights, code, tokenizer, card and results go up in one commit.

    Where the card has only a placeholder for the repository's name, the pushed copy has the name; the folder stays as
    it is. What the repository has of an earlier model and this one has not, such as ONNX files, goes in the same
    commit. A lost connection and an overloaded Hub are tried again, for about half a minute. The token is that of
    `HF_TOKEN` or of `hf auth login`.

    Args:
        folder: A folder with a saved model. Checkpoints, trackers and hidden files in it are left out.
        repo_id: `org/name`, or `name` for one of the user's own. The repository is made where it does not exist.
        private: Whether a new repository is private; None leaves it to the organisation. An old one stays as it is.
        revision: The branch; None is `main`.
        commit_message: The commit's title.
        widget: Id of the model's static Space, which the pushed card then leads to.
        command: What to say again after an error; default: the `dsa push` that does the same.

    Raises:
        ValueError: The folder holds no model of this family, no tokenizer, a link that leads out of it, or what is no
            file, or `repo_id` cannot be one.
        FileNotFoundError: The folder has no config.json.
        NotPushedError: The Hub refused or could not be reached, or this machine failed, with a full disk for instance.
    """
    if not folder.is_dir() or not any(path.is_file() for path in folder.glob("model*.safetensors")):
        raise ValueError(f"{folder} holds no saved model: give a folder with config.json and model.safetensors.")
    read_config(folder)
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"{folder} has no tokenizer.json: save the model's tokenizer there, too.")
    check_repo_id(repo_id)
    names = _names(folder)
    try:
        full_id = open_repository(repo_id, private=private, revision=revision)
        there = _retried(lambda: HfApi().list_repo_files(full_id, revision=revision))
        gone = [name for name in there if name not in names and name != CARD and belongs_to_model(name)]
        # Not upload_folder, which makes several commits of many or large files.
        return _retried(
            lambda: HfApi().create_commit(
                full_id,
                [*_additions(folder, names, full_id, widget), *map(CommitOperationDelete, gone)],
                commit_message=commit_message,
                revision=revision,
            )
        )
    # ValueError: README.md has metadata that the Hub refuses; RuntimeError: an upload of weights failed.
    except (HTTPError, OSError, ValueError, RuntimeError) as error:
        options = [*(["--private"] if private else []), *(["--revision", revision] if revision else [])]
        again = command or shlex.join(["dsa", "push", str(folder), repo_id, *options])
        remedy = f"It is complete in {folder}; push it later with: {again}"
        raise NotPushedError(hub_error_sentence(error), "The model", repo_id, remedy) from error


def push_static_space(folder: Path, repo_id: str, *, private: bool | None, command: str) -> CommitInfo:
    """Push the folder of a static Space in one commit, in which files go that the folder does not have.

    Args:
        folder: What [`write_static_space`] has written.
        repo_id: `org/name`, or `name` for one of the user's own. The Space is made where it does not exist.
        private: Whether a new Space is private; None leaves it to the organisation. An old one stays as it is.
        command: What to say again after an error.

    Raises:
        ValueError: `repo_id` cannot be one.
        NotPushedError: The Hub refused or could not be reached.
    """
    check_repo_id(repo_id)
    names = sorted(path.name for path in folder.iterdir())
    try:
        full_id = open_repository(repo_id, private=private, static_space=True)
        there = _retried(lambda: HfApi().list_repo_files(full_id, repo_type="space"))
        gone = [name for name in there if name not in names and name != ".gitattributes"]
        changes = [CommitOperationAdd(name, folder / name) for name in names]
        return _retried(
            lambda: HfApi().create_commit(
                full_id,
                [*changes, *map(CommitOperationDelete, gone)],
                commit_message="Upload the widget",
                repo_type="space",
            )
        )
    except (HTTPError, OSError, ValueError, RuntimeError) as error:
        remedy = f"The model is on the Hub; push both again with: {command}"
        raise NotPushedError(hub_error_sentence(error), "The widget", repo_id, remedy) from error


def _names(folder: Path) -> list[str]:
    """The files that go to the Hub.

    Raises:
        ValueError: One of them lies outside the folder, or is a pipe, a device or nothing.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not _is_real_folder(path)}
    names: list[str] = sorted(filter_repo_objects(paths, ignore_patterns=list(LEFT_OUT)))
    root = folder.resolve()
    homes = (root, root.parents[1] / "blobs") if len(root.parents) > 1 else (root,)  # as the Hub's cache links
    for name in names:
        target = paths[name].resolve()
        if not any(target.is_relative_to(home) for home in homes):
            raise ValueError(f"{paths[name]} is a link to {target}, outside the model's folder: copy it there.")
        if not target.is_file():
            raise ValueError(f"{paths[name]} is no regular file: remove it.")
    return names


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _additions(folder: Path, names: Sequence[str], repo_id: str, widget: str | None) -> list[CommitOperationAdd]:
    return [
        CommitOperationAdd(name, _named_card(folder / name, repo_id, widget) if name == CARD else folder / name)
        for name in names
    ]


def _named_card(card: Path, repo_id: str, widget: str | None) -> bytes:
    """A card with the repository's name instead of its placeholder, and with a link to its widget."""
    named = re.sub(rf"{PLACEHOLDER}[\w-]+(?:\.[\w-]+)*", lambda _: repo_id, card.read_bytes().decode(), flags=re.ASCII)
    if widget is None:
        return named.encode()
    link = (
        f"**[Try it in your browser]({constants.ENDPOINT}/spaces/{widget})**: the model runs in the page, and what you "
        "type stays on your device.\n"
    )
    metadata = REGEX_YAML_BLOCK.match(named)
    start = metadata.end() if metadata else 0
    lines = named[start:].splitlines(keepends=True)
    # A title behind a block of code is none, as a line of that may look like one.
    opening = itertools.takewhile(lambda line: not line.startswith(("```", "~~~")), lines)
    title = next((number for number, line in enumerate(opening, 1) if line.startswith("# ")), 0)
    before = start + sum(map(len, lines[:title]))
    return f"{named[:before].rstrip()}\n\n{link}\n{named[before:].lstrip()}".encode()


def placeholder_id(name: str) -> str:
    """An id of a repository for a model that is called so: the name without what the Hub takes in none."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    known = re.sub(r"([-.])[-.]+", r"\1", re.sub(r"[^\w.-]+", "-", plain))
    return PLACEHOLDER + (known[: _LONGEST_ID - len(PLACEHOLDER)].strip("-.").removesuffix(".git") or "model")


def check_repo_id(repo_id: str) -> None:
    """Refuse what cannot be the id of a repository.

    Raises:
        ValueError: It cannot.
    """
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise ValueError(f"'{repo_id}' cannot name a repository ({one_line(error)}): give org/name.") from error


def hub_error_sentence(error: BaseException) -> str:
    """Why the Hub did not do something, in one sentence that says what to do about it."""
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set."
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        said = f"the Hub answers {status}" + (f" ({one_line(error.server_message)})" if error.server_message else "")
        if status in (401, 403):
            return f"{said}: log in with `hf auth login`, or set HF_TOKEN to a token that may write there."
        return f"{said}."
    if isinstance(error, _UNREACHABLE):
        return f"the Hub cannot be reached ({one_line(error)})."
    if isinstance(error, RuntimeError) and error.__cause__ is not None:
        return f"{one_line(error).rstrip('.')}: {hub_error_sentence(error.__cause__)}"
    return f"{one_line(error).rstrip('.')}."


def _retried(call: Callable[[], Result]) -> Result:
    for wait in WAITS:
        try:
            return call()
        except (HTTPError, OSError, RuntimeError) as error:
            if not _is_transient(error):
                raise
            said = hub_error_sentence(error)
            logger.warning(f"{said[0].upper()}{said[1:]} Trying again in {wait} s.")
            time.sleep(wait)
    return call()


def _is_transient(error: BaseException | None) -> bool:
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code == 429 or error.response.status_code >= 500
    if isinstance(error, RuntimeError):  # huggingface_hub's, around what an upload of weights failed with
        return _is_transient(error.__cause__)
    return isinstance(error, _UNREACHABLE) and not isinstance(error, OfflineModeIsEnabled)
