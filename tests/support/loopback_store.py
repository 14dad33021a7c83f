"""Users, their tokens, and the repositories of a loopback Hub: who may read and write what."""

import re
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from loopback_git import MAIN, GitRepository

Role = Literal["read", "write"]
KINDS = {"models": "model", "datasets": "dataset", "spaces": "space"}
NAME = re.compile(r"(?!.*(--|\.\.))\w[\w.-]{0,95}(?<![.-])(?<!\.git)", re.ASCII)
# As lists, these would take a line for every word.
LARGE_FILES = (  # noqa: SIM905
    "*.7z *.arrow *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.mlmodel *.model *.msgpack *.npy *.npz *.onnx "
    "*.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar *.safetensors saved_model/**/* *.tar.* *.tar *.tflite *.tgz "
    "*.wasm *.xz *.zip *.zst *tfevents*"
).split()
MORE_LARGE_FILES_OF_DATASETS = (  # noqa: SIM905
    "*.avro *.lz4 *.mds *.pcm *.sam *.raw *.aac *.flac *.mp3 *.ogg *.wav *.bmp *.gif *.png *.tiff *.jpg *.jpeg *.webp "
    "*.mp4 *.webm"
).split()


class HubError(Exception):
    """An answer that is no success.

    Attributes:
        status: The HTTP status.
        code: X-Error-Code, where the Hub sends one.
    """

    def __init__(self, status: int, message: str, code: str | None = None):
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Caller:
    """Who sent a request, by the token."""

    name: str
    orgs: frozenset[str]
    role: Role

    def owns(self, namespace: str) -> bool:
        return namespace == self.name or namespace in self.orgs


@dataclass
class Repository:
    """A model, data set or Space; `kind` as in the API's paths."""

    kind: str
    id: str
    private: bool
    git: GitRepository
    sdk: str | None = None
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def namespace(self) -> str:
        return self.id.partition("/")[0]

    @property
    def page(self) -> str:
        """The path of its page, from the host on."""
        return f"/{self.id}" if self.kind == "models" else f"/{self.kind}/{self.id}"


def lfs_line(pattern: str) -> str:
    """A line of .gitattributes that gives files to LFS."""
    return f"{pattern.replace(' ', '[[:space:]]')} filter=lfs diff=lfs merge=lfs -text\n"


class Store:
    """All of a Hub's users and repositories; the repositories lie in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.callers: dict[str, Caller] = {}
        self.repositories: dict[tuple[str, str], Repository] = {}

    def caller(self, authorization: str | None) -> Caller | None:
        """Who a request comes from; None without a token.

        Raises:
            HubError: The token is nobody's.
        """
        if authorization is None:
            return None
        try:
            return self.callers[authorization.removeprefix("Bearer ")]
        except KeyError:
            raise HubError(401, "Invalid credentials in Authorization header") from None

    def known(self, caller: Caller | None) -> Caller:
        """Raises HubError where nobody has signed in."""
        if caller is None:
            raise HubError(401, "Invalid username or password.")
        return caller

    def readable(self, kind: str, repo_id: str, caller: Caller | None) -> Repository:
        """A repository that this caller may read.

        Raises:
            HubError: There is none, or it is private: the answer is the same.
        """
        repository = self.repositories.get((kind, repo_id))
        if repository and (not repository.private or (caller and caller.owns(repository.namespace))):
            return repository
        if caller is None:
            raise HubError(401, "Invalid username or password.", "RepoNotFound")
        raise HubError(404, "Repository not found", "RepoNotFound")

    def writable(self, kind: str, repo_id: str, caller: Caller | None) -> Repository:
        """A repository that this caller may change; raises HubError as `readable` does, or with 403."""
        repository = self.readable(kind, repo_id, caller)
        self.allow(self.known(caller), repository.namespace)
        return repository

    def allow(self, caller: Caller, namespace: str) -> None:
        """Raises HubError where a caller may not write to a namespace."""
        if caller.role != "write":
            raise HubError(403, "Forbidden: you must use a write token to upload to a repository.")
        if not caller.owns(namespace):
            raise HubError(403, f'You don\'t have the rights for the namespace "{namespace}"')

    def create(self, kind: str, repo_id: str, caller: Caller, *, private: bool, sdk: str | None) -> Repository:
        """A new repository with the Hub's first commit.

        Raises:
            HubError: The name is no name, is taken, or is not the caller's to take.
        """
        self._check_new(kind, repo_id, caller)
        repository = Repository(kind, repo_id, private, GitRepository(self._folder(kind, repo_id)), sdk)
        repository.git.create()
        patterns = [*LARGE_FILES, *(MORE_LARGE_FILES_OF_DATASETS if kind == "datasets" else [])]
        files: dict[str, bytes | None] = {".gitattributes": "".join(map(lfs_line, patterns)).encode()}
        if kind == "spaces":
            title = repo_id.partition("/")[2]
            files["README.md"] = f"---\ntitle: {title}\nsdk: {sdk}\napp_file: app.py\npinned: false\n---\n".encode()
        repository.git.commit(MAIN, files.items(), author=caller.name, message="initial commit", parent=None)
        self.repositories[kind, repo_id] = repository
        return repository

    def _check_new(self, kind: str, repo_id: str, caller: Caller) -> None:
        if not all(NAME.fullmatch(part) for part in repo_id.split("/")):
            raise HubError(400, f"Invalid repo name: {repo_id}")
        self.allow(caller, repo_id.partition("/")[0])
        if (kind, repo_id) in self.repositories:
            raise HubError(409, f"You already created this {KINDS[kind]} repo: {repo_id}")

    def _folder(self, kind: str, repo_id: str) -> Path:
        folder = self.folder / kind / f"{repo_id}.git"
        folder.parent.mkdir(parents=True, exist_ok=True)
        return folder

    def delete(self, repository: Repository) -> None:
        del self.repositories[repository.kind, repository.id]
        shutil.rmtree(repository.git.folder)

    def move(self, repository: Repository, repo_id: str, caller: Caller) -> None:
        """Give a repository another name; raises HubError as `create` does."""
        self._check_new(repository.kind, repo_id, caller)
        folder = self._folder(repository.kind, repo_id)
        repository.git.folder.rename(folder)
        del self.repositories[repository.kind, repository.id]
        repository.id, repository.git = repo_id, GitRepository(folder)
        self.repositories[repository.kind, repo_id] = repository
