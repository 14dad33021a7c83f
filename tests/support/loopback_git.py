"""Bare git repositories as a Hub keeps them: real git does the work, large files are git-lfs pointers, and their
objects lie beside git's own in git-lfs's layout."""

import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MAIN = "refs/heads/main"
POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d+)\n")
LARGEST_POINTER = 200  # bytes
SHA256 = re.compile(r"[0-9a-f]{64}")
REVISION = re.compile(r"\w[\w./+#-]*")
COMMIT = re.compile(r"[0-9a-f]{4,40}")


class MissingRevisionError(LookupError):
    """No branch, tag or commit of this name."""


class MissingEntryError(LookupError):
    """No file or folder of this name in a commit.

    Attributes:
        commit: The commit that was searched.
    """

    def __init__(self, message: str, commit: str):
        super().__init__(message)
        self.commit = commit


@dataclass(frozen=True)
class Pointer:
    """What git holds of a large file."""

    sha256: str
    size: int

    def encode(self) -> bytes:
        """The pointer file as git-lfs writes it."""
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()


@dataclass(frozen=True)
class Entry:
    """A file or folder of a commit: `size` is in bytes as git holds it, 0 for a folder."""

    path: str
    is_file: bool
    oid: str
    size: int
    pointer: Pointer | None


@dataclass(frozen=True)
class Commit:
    """One line of the history; `date` as the Hub writes it."""

    id: str
    author: str
    date: str
    title: str
    message: str


class GitRepository:
    """A bare repository in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._entries: dict[str, dict[str, Entry]] = {}

    def git(self, *words: str, data: bytes = b"", accepted: Collection[int] = (0,)) -> bytes:
        """What a git command prints.

        Raises:
            RuntimeError: git failed.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC", "LC_ALL": "C"}
        command = ["git", f"--git-dir={self.folder}", *words]
        done = subprocess.run(command, input=data, capture_output=True, env=own | settings)
        if done.returncode not in accepted:
            raise RuntimeError(f"git {' '.join(words)}: {done.stderr.decode()}")
        return done.stdout

    def create(self) -> None:
        """Make the empty repository."""
        self.git("init", "--quiet", "--bare", "--initial-branch=main")

    def commit_id(self, revision: str) -> str:
        """The full commit of a branch, tag, pull request's ref, commit (also short) or HEAD.

        Raises:
            MissingRevisionError: There is none.
        """
        names = [f"refs/heads/{revision}", f"refs/tags/{revision}"]
        if revision == "HEAD" or revision.startswith("refs/") or COMMIT.fullmatch(revision):
            names.insert(0, revision)
        if REVISION.fullmatch(revision) and ".." not in revision:
            for name in names:
                words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
                if found := self.git(*words, accepted=(0, 1, 128)).decode().strip():
                    return found
        raise MissingRevisionError(f"Invalid rev id: {revision}")

    def entries(self, commit: str) -> dict[str, Entry]:
        """All files and folders of a commit, by path."""
        if commit not in self._entries:
            self._entries[commit] = self._read_entries(commit)
        return self._entries[commit]

    def _read_entries(self, commit: str) -> dict[str, Entry]:
        listing = self.git("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit).decode()
        rows = [(*line.split("\t", 1)[0].split(), line.split("\t", 1)[1]) for line in listing.split("\0") if line]
        small = [oid for _, kind, oid, size, _ in rows if kind == "blob" and int(size) <= LARGEST_POINTER]
        pointers = {oid: POINTER.fullmatch(content) for oid, content in self._blobs(small).items()}
        entries = {}
        for _, kind, oid, size, path in rows:
            match = pointers.get(oid)
            pointer = Pointer(match[1].decode(), int(match[2])) if match else None
            entries[path] = Entry(path, kind == "blob", oid, int(size) if kind == "blob" else 0, pointer)
        return entries

    def _blobs(self, oids: Sequence[str]) -> dict[str, bytes]:
        stream = self.git("cat-file", "--batch", data="".join(f"{oid}\n" for oid in oids).encode())
        blobs = {}
        for oid in oids:
            header, stream = stream.split(b"\n", 1)
            size = int(header.split()[2])
            blobs[oid], stream = stream[:size], stream[size + 1 :]
        return blobs

    def entry(self, commit: str, path: str) -> Entry:
        """One file or folder.

        Raises:
            MissingEntryError: The commit has none of this path.
        """
        try:
            return self.entries(commit)[path]
        except KeyError:
            raise MissingEntryError(f"Entry not found: {path}", commit) from None

    def content(self, commit: str, path: str) -> bytes:
        """What git holds of a file; nothing where there is no such file."""
        entry = self.entries(commit).get(path)
        return self.git("cat-file", "blob", entry.oid) if entry and entry.is_file else b""

    def file(self, entry: Entry) -> Path:
        """A file on disk with the bytes of a git blob, to be sent from."""
        file = self.folder / "served" / entry.oid
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(self.git("cat-file", "blob", entry.oid))
        return file

    def large_file(self, sha256: str) -> Path:
        """Where an LFS object lies or will lie."""
        return self.folder / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256

    def large_size(self, sha256: str) -> int | None:
        """The size of an LFS object in bytes; None where it was not uploaded."""
        file = self.large_file(sha256)
        return file.stat().st_size if SHA256.fullmatch(sha256) and file.exists() else None

    def commit(
        self, ref: str, changes: Iterable[tuple[str, bytes | None]], *, author: str, message: str, parent: str | None
    ) -> str:
        """Add a commit to a ref, all or nothing.

        Args:
            ref: The full name of the ref; a new one where there is none.
            changes: Paths with their new bytes, None where the file or folder goes, in order.
            author: A user's name.
            message: Title, blank line, description.
            parent: The commit before; None for the first one.

        Returns:
            The new commit.
        """

        def quoted(path: str) -> bytes:
            return b'"' + path.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'

        def data(content: bytes) -> bytes:
            return b"data %d\n%b\n" % (len(content), content)

        lines = [f"commit {ref}\ncommitter {author} <{author}@users.noreply.localhost> now\n".encode()]
        lines.append(data(message.encode()))
        lines += [f"from {parent}\n".encode()] if parent else []
        for path, content in changes:
            if content is None:
                lines.append(b"D %b\n" % quoted(path))
            else:
                lines.append(b"M 100644 inline %b\n%b" % (quoted(path), data(content)))
        self.git("fast-import", "--quiet", "--done", "--date-format=now", data=b"".join([*lines, b"done\n"]))
        return self.commit_id(ref)

    def history(self, revision: str, path: str = "", *, count: int | None = None) -> list[Commit]:
        """The commits behind a revision, newest first; only those that touched `path`, if given."""
        words = ["log", "-z", "--format=%H%x1f%an%x1f%cd%x1f%s%x1f%b", "--date=format-local:%Y-%m-%dT%H:%M:%S.000Z"]
        words += [] if count is None else [f"--max-count={count}"]
        words += [revision, "--", *([f":(top,literal){path}"] if path else [])]
        lines = self.git(*words).decode().split("\0")
        return [Commit(*line.rstrip("\n").split("\x1f", 4)) for line in lines if line]

    def refs(self) -> dict[str, str]:
        """Full names of all refs with their commits."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname) %(*objectname)").decode().splitlines()
        return {words[0]: words[-1] for words in map(str.split, lines)}

    def is_name(self, ref: str) -> bool:
        """Whether git takes this name for a ref."""
        return bool(self.git("check-ref-format", "--normalize", ref, accepted=(0, 1)))

    def create_branch(self, ref: str, commit: str) -> None:
        self.git("update-ref", ref, commit, "")

    def create_tag(self, name: str, commit: str, *, author: str, message: str) -> None:
        """A tag; an annotated one where there is a message."""
        identity = ("-c", f"user.name={author}", "-c", f"user.email={author}@users.noreply.localhost")
        self.git(*identity, "tag", *(["-a", "-m", message] if message else []), "--", name, commit)

    def delete_ref(self, ref: str) -> None:
        """Raises MissingRevisionError where there is none."""
        if ref not in self.refs():
            raise MissingRevisionError(f"Invalid rev id: {ref}")
        self.git("update-ref", "-d", ref)

    def large_paths(self, attributes: bytes, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that a .gitattributes file gives to LFS."""
        words = ("check-attr", "--stdin", "-z", "filter")
        fields = self._ask_rules(".gitattributes", attributes, words, paths)
        return {path for path, value in zip(fields[::3], fields[2::3], strict=True) if value == "lfs"}

    def ignored_paths(self, rules: bytes, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that a .gitignore file leaves out."""
        return set(self._ask_rules(".gitignore", rules, ("check-ignore", "--no-index", "--stdin", "-z"), paths))

    def _ask_rules(self, name: str, rules: bytes, words: Sequence[str], paths: Iterable[str]) -> list[str]:
        # git reads such files from a work tree only: one that holds nothing else.
        with tempfile.TemporaryDirectory() as tree:
            Path(tree, name).write_bytes(rules)
            question = "".join(f"{path}\0" for path in paths).encode()
            answer = self.git(f"--work-tree={tree}", *words, data=question, accepted=(0, 1))
        return answer.decode().split("\0")[:-1]
