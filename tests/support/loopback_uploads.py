"""The HTTP side of a loopback Hub: requests that change something."""

import base64
import codecs
import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from loopback_cards import check_card
from loopback_git import SHA256, Entry, GitRepository, MissingEntryError, MissingRevisionError, Pointer
from loopback_routes import Json, KnownCaller, Quoted, Readable, UsedCdn, UsedStore, Writable
from loopback_store import KINDS, Caller, HubError, Repository, Store, lfs_line

LARGEST_TEXT = 10 * 1024 * 1024  # bytes that git may hold itself
LARGEST_PREUPLOAD = 256  # files

uploads = APIRouter()


def named(body: Json, caller: Caller) -> tuple[str, str]:
    """The kind and id of the repository that a body names."""
    kind = f"{body.get('type') or 'model'}s"
    if kind not in KINDS:
        raise HubError(400, f"Invalid repo type: {body['type']}")
    name = str(body["name"])
    return kind, name if "/" in name else f"{body.get('organization') or caller.name}/{name}"


def endpoint(request: Request) -> str:
    return str(request.base_url).rstrip("/")


@uploads.post("/api/repos/create")
async def create(request: Request, store: UsedStore, caller: KnownCaller, body: Json) -> JSONResponse:
    kind, repo_id = named(body, caller)
    if kind == "spaces" and not body.get("sdk"):
        raise HubError(400, "A Space needs an sdk")
    private = body.get("visibility") == "private" or bool(body.get("private"))
    answer = {"url": f"{endpoint(request)}/{'' if kind == 'models' else f'{kind}/'}{repo_id}", "name": repo_id}
    try:
        store.create(kind, repo_id, caller, private=private, sdk=body.get("sdk"))
    except HubError as error:
        if error.status != 409:
            raise
        return JSONResponse({"error": str(error), **answer}, 409, {"X-Error-Message": str(error)})
    return JSONResponse({**answer, "id": repo_id})


@uploads.delete("/api/repos/delete")
async def delete(store: UsedStore, caller: KnownCaller, body: Json) -> None:
    store.delete(store.writable(*named(body, caller), caller))


@uploads.post("/api/repos/move")
async def move(store: UsedStore, caller: KnownCaller, body: Json) -> None:
    kind, _ = named({"type": body.get("type"), "name": body["fromRepo"]}, caller)
    store.move(store.writable(kind, body["fromRepo"], caller), body["toRepo"], caller)


@uploads.put("/api/{kind}/{namespace}/{name}/settings")
async def settings(repository: Writable, body: Json) -> Json:
    if "visibility" in body:
        repository.private = body["visibility"] == "private"
    elif "private" in body:
        repository.private = bool(body["private"])
    return {"private": repository.private}


@uploads.post("/api/validate-yaml")
async def validate_yaml(body: Json) -> JSONResponse:
    errors, warnings = check_card(body["content"], body.get("repoType") or "model")
    messages = {"errors": errors, "warnings": warnings}
    rows = {key: [{"message": message} for message in found] for key, found in messages.items()}
    return JSONResponse(rows, 400 if errors else 200)


@uploads.post("/api/{kind}/{namespace}/{name}/branch/{branch}")
async def create_branch(repository: Writable, branch: Quoted, body: Json) -> None:
    git, ref = repository.git, f"refs/heads/{branch}"
    if not git.is_name(ref):
        raise HubError(400, f"Invalid branch name: {branch}")
    if ref in git.refs():
        raise HubError(409, f"Reference already exists: {ref}")
    git.create_branch(ref, git.commit_id(body.get("startingPoint") or "main"))


@uploads.delete("/api/{kind}/{namespace}/{name}/branch/{branch}")
async def delete_branch(repository: Writable, branch: Quoted) -> None:
    if branch == "main":
        raise HubError(403, "The main branch cannot be deleted")
    repository.git.delete_ref(f"refs/heads/{branch}")


@uploads.post("/api/{kind}/{namespace}/{name}/tag/{revision}")
async def create_tag(repository: Writable, caller: KnownCaller, revision: Quoted, body: Json) -> None:
    git, name = repository.git, str(body["tag"])
    commit = git.commit_id(revision)
    if not git.is_name(f"refs/tags/{name}"):
        raise HubError(400, f"Invalid tag name: {name}")
    if f"refs/tags/{name}" in git.refs():
        raise HubError(409, f"Tag reference exists already: {name}")
    git.create_tag(name, commit, author=caller.name, message=body.get("message") or "")


@uploads.delete("/api/{kind}/{namespace}/{name}/tag/{tag}")
async def delete_tag(repository: Writable, tag: Quoted) -> None:
    repository.git.delete_ref(f"refs/tags/{tag}")


@uploads.post("/api/{kind}/{namespace}/{name}/preupload/{revision}")
async def preupload(
    store: UsedStore, repository: Readable, caller: KnownCaller, revision: Quoted, body: Json, create_pr: bool = False
) -> Json:
    check_contributor(store, repository, caller, create_pr=create_pr)
    git, files = repository.git, body["files"]
    if len(files) > LARGEST_PREUPLOAD:
        raise HubError(400, f'"files" must contain less than or equal to {LARGEST_PREUPLOAD} items')
    commit = git.commit_id(revision)
    paths = [file["path"] for file in files]
    large = git.large_paths(git.content(commit, ".gitattributes"), paths)
    rules = body["gitIgnore"].encode() if "gitIgnore" in body else git.content(commit, ".gitignore")
    ignored = git.ignored_paths(rules, paths)
    entries = git.entries(commit)

    def answer(file: Json) -> Json:
        path = file["path"]
        is_large = path in large or file["size"] > LARGEST_TEXT or is_binary(base64.b64decode(file["sample"]))
        row = {"path": path, "uploadMode": "lfs" if is_large else "regular", "shouldIgnore": path in ignored}
        if (entry := entries.get(path)) and entry.is_file:
            row["oid"] = entry.pointer.sha256 if entry.pointer else entry.oid
        return row

    return {"files": [answer(file) for file in files], "commitOid": commit}


def check_contributor(store: Store, repository: Repository, caller: Caller, *, create_pr: bool) -> None:
    """Everybody who can read may propose a change; raises HubError for others who may not write."""
    store.allow(caller, caller.name if create_pr else repository.namespace)


def is_binary(sample: bytes) -> bool:
    """Whether a file's first bytes are no text; they may end within a letter."""
    try:
        return "\0" in codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return True


@uploads.post("/{namespace}/{name}.git/info/lfs/objects/{action}")
@uploads.post("/{kind}/{namespace}/{name}.git/info/lfs/objects/{action}")
async def large_files(
    request: Request,
    store: UsedStore,
    repository: Readable,
    caller: KnownCaller,
    cdn: UsedCdn,
    action: str,
    body: Json,
) -> Json:
    """git-lfs's batch and verify. Whoever can read may need them, for a pull request."""
    check_contributor(store, repository, caller, create_pr=True)
    if action == "verify":
        if repository.git.large_size(body["oid"]) != body["size"]:
            raise HubError(404, f"Object {body['oid']} of {body['size']} bytes was not uploaded")
        return {}
    if action != "batch" or body["operation"] != "upload":
        raise HubError(422, "Only uploads are served")
    here = f"{endpoint(request)}{request.url.path.removesuffix('batch')}verify"

    def answer(wanted: Json) -> Json:
        row = {"oid": wanted["oid"], "size": wanted["size"]}
        if not SHA256.fullmatch(wanted["oid"]):
            row["error"] = {"code": 422, "message": "The oid is no sha256"}
        elif repository.git.large_size(wanted["oid"]) is None:
            upload = {"href": cdn.address("PUT", repository.kind, repository.id, wanted["oid"]), "header": {}}
            row["actions"] = {"upload": upload, "verify": {"href": here}}
        return row

    return {"transfer": "basic", "objects": [answer(wanted) for wanted in body["objects"]]}


@uploads.get("/api/{kind}/{namespace}/{name}/xet-write-token/{revision}")
async def xet_token(repository: Readable) -> None:
    raise HubError(404, "This Hub has no Xet storage")


@uploads.post("/api/{kind}/{namespace}/{name}/commit/{revision}")
async def commit(
    request: Request,
    store: UsedStore,
    repository: Readable,
    caller: KnownCaller,
    revision: Quoted,
    create_pr: bool = False,
) -> Json:
    check_contributor(store, repository, caller, create_pr=create_pr)
    lines = [json.loads(line) for line in (await request.body()).splitlines() if line.strip()]
    if not lines or lines[0]["key"] != "header":
        raise HubError(400, "The first line of a commit is its header")
    header, *rest = lines
    git, summary, wanted = repository.git, header["value"]["summary"], header["value"].get("parentCommit")
    pull_request = 1 + sum(ref.startswith("refs/pr/") for ref in git.refs())
    if create_pr:
        ref, parent = f"refs/pr/{pull_request}", git.commit_id(wanted or revision)
    else:
        ref = revision if revision.startswith("refs/pr/") else f"refs/heads/{revision}"
        if ref not in git.refs():
            raise MissingRevisionError(f"Invalid rev id: {revision}")
        parent = git.commit_id(ref)
        if wanted and not parent.startswith(wanted):
            raise HubError(412, "A commit has happened since. Please refresh and try again.")
    message = "\n\n".join(text for text in (summary, header["value"].get("description")) if text)
    changes = read_changes(repository, parent, rest)
    oid = git.commit(ref, changes, author=caller.name, message=message, parent=parent)
    page = f"{endpoint(request)}{repository.page}"
    answer = {"success": True, "commitOid": oid, "commitUrl": f"{page}/commit/{oid}", "hookOutput": ""}
    return answer | ({"pullRequestUrl": f"{page}/discussions/{pull_request}"} if create_pr else {})


def read_changes(repository: Repository, parent: str, lines: Sequence[Json]) -> list[tuple[str, bytes | None]]:
    """What a commit's lines do to git's files; raises HubError or MissingEntryError where one cannot be done."""
    git = repository.git
    entries = git.entries(parent)
    changes: list[tuple[str, bytes | None]] = []
    large = []
    for line in lines:
        key, value = line["key"], line["value"]
        path = checked_path(value["path"])
        if key == "file":
            text = value["content"]
            changes.append((path, base64.b64decode(text) if value.get("encoding") == "base64" else text.encode()))
        elif key == "lfsFile":
            changes.append((path, uploaded_pointer(git, value).encode()))
            large.append(path)
        elif key in ("deletedFile", "deletedFolder"):
            check_deleted(entries.get(path), path, parent, is_file=key == "deletedFile")
            changes.append((path, None))
        else:
            raise HubError(400, f"Unknown operation: {key}")
    for path, content in changes:
        if path == "README.md" and content is not None:
            errors, _ = check_card(content.decode(errors="replace"), KINDS[repository.kind])
            if errors:
                raise HubError(400, "\n".join(errors))
    return changes + tracked(git, parent, changes, large)


def checked_path(path: str) -> str:
    parts = path.rstrip("/").split("/")
    if any(part in ("", ".", "..", ".git") for part in parts) or any(letter in path for letter in "\n\0"):
        raise HubError(400, f"Invalid path: {path!r}")
    return "/".join(parts)


def uploaded_pointer(git: GitRepository, value: Any) -> Pointer:
    """A copy of a file within a repository comes without its size."""
    oid, size = value["oid"], git.large_size(value["oid"])
    if value.get("algo") != "sha256" or size is None or value.get("size", size) != size:
        raise HubError(400, f"LFS pointer of {value['path']} points to an object that was not uploaded: {oid}")
    return Pointer(oid, size)


def check_deleted(entry: Entry | None, path: str, parent: str, *, is_file: bool) -> None:
    if entry is None or entry.is_file != is_file:
        raise MissingEntryError(f"A {'file' if is_file else 'folder'} with this name doesn't exist: {path}", parent)


def tracked(
    git: GitRepository, parent: str, changes: Sequence[tuple[str, bytes | None]], large: Sequence[str]
) -> list[tuple[str, bytes | None]]:
    """The change of .gitattributes that gives large files of other names to LFS, too."""
    rules = git.content(parent, ".gitattributes")
    for path, content in changes:
        if path == ".gitattributes":
            rules = content or b""
    new = sorted(set(large) - git.large_paths(rules, large))
    return [(".gitattributes", rules + "".join(map(lfs_line, new)).encode())] if new else []
