"""The HTTP side of a loopback Hub: requests that concern accounts and the reading of repositories.

Writing is in `loopback_uploads`.
"""

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote

import yaml
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from loopback_cards import library_of, page_tags, read_card
from loopback_cdn import Cdn
from loopback_git import Commit, Entry, GitRepository, MissingEntryError
from loopback_store import KINDS, Caller, HubError, Repository, Store
from pydantic import AfterValidator

PAGE_SIZE = 1000
EXPANDED_PAGE_SIZE = 50
SHOWN_CONFIG = ("architectures", "auto_map", "model_type", "quantization_config")

# Paths are matched as they were sent, so that "refs%2Fpr%2F1" is one part.
Quoted = Annotated[str, AfterValidator(unquote)]
Json = dict[str, Any]
Item = TypeVar("Item")

routes = APIRouter()


def get_store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def get_cdn(request: Request) -> Cdn:
    cdn: Cdn = request.app.state.cdn
    return cdn


def get_caller(request: Request, store: Annotated[Store, Depends(get_store)]) -> Caller | None:
    return store.caller(request.headers.get("authorization"))


UsedStore = Annotated[Store, Depends(get_store)]
UsedCdn = Annotated[Cdn, Depends(get_cdn)]
MaybeCaller = Annotated[Caller | None, Depends(get_caller)]


def get_known(store: UsedStore, caller: MaybeCaller) -> Caller:
    return store.known(caller)


def get_readable(
    store: UsedStore, caller: MaybeCaller, namespace: Quoted, name: Quoted, kind: str = "models"
) -> Repository:
    return store.readable(kind, f"{namespace}/{name}", caller)


def get_writable(
    store: UsedStore, caller: MaybeCaller, namespace: Quoted, name: Quoted, kind: str = "models"
) -> Repository:
    return store.writable(kind, f"{namespace}/{name}", caller)


KnownCaller = Annotated[Caller, Depends(get_known)]
Readable = Annotated[Repository, Depends(get_readable)]
Writable = Annotated[Repository, Depends(get_writable)]


def one_page(request: Request, items: Sequence[Item], size: int, show: Callable[[Item], Json]) -> JSONResponse:
    """The rows from the request's cursor on, and the address of the next page in the Link header."""
    start = int(request.query_params.get("cursor", "0"))
    headers = {}
    if start + size < len(items):
        headers["Link"] = f'<{request.url.include_query_params(cursor=start + size)}>; rel="next"'
    return JSONResponse([show(item) for item in items[start : start + size]], headers=headers)


@routes.get("/api/whoami-v2")
async def whoami(caller: KnownCaller) -> Json:
    return {
        "type": "user",
        "id": caller.name,
        "name": caller.name,
        "fullname": caller.name,
        "orgs": [{"type": "org", "name": name} for name in sorted(caller.orgs)],
        "auth": {"type": "access_token", "accessToken": {"displayName": "tests", "role": caller.role}},
    }


@routes.get("/api/{kind}")
async def listing(
    request: Request,
    store: UsedStore,
    caller: MaybeCaller,
    kind: str,
    filter: Annotated[list[str], Query(default_factory=list)],
    author: str = "",
    search: str = "",
    limit: int = PAGE_SIZE,
) -> JSONResponse:
    if kind not in KINDS:
        raise HubError(404, f"Cannot GET /api/{kind}")
    found = []
    for (other, repo_id), repository in store.repositories.items():
        shown = not repository.private or (caller and caller.owns(repository.namespace))
        if other == kind and shown and search.lower() in repo_id.lower() and author in ("", repository.namespace):
            row = describe(repository, "main", blobs=False)
            del row["siblings"]
            if set(filter) <= set(row["tags"]):
                found.append(row)
    newest_first = sorted(found, key=lambda row: str(row["lastModified"]), reverse=True)
    return one_page(request, newest_first, limit, lambda row: row)


def describe(repository: Repository, revision: str, *, blobs: bool) -> Json:
    """All that the Hub says about a repository at a revision."""
    git = repository.git
    commit = git.commit_id(revision)
    files = [entry for entry in git.entries(commit).values() if entry.is_file]
    names = [entry.path for entry in files]
    card = read_card(git.content(commit, "README.md").decode(errors="replace"))
    config = read_json(git, commit, "config.json") if repository.kind == "models" else {}
    row: Json = {
        "_id": repository.id,
        "id": repository.id,
        "author": repository.namespace,
        "sha": commit,
        "lastModified": git.history(commit, count=1)[0].date,
        "createdAt": repository.created.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "private": repository.private,
        "gated": False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": page_tags(card, config, names),
        "cardData": card,
        "usedStorage": sum(real_size(entry) for entry in files),
        "siblings": [sibling(entry, blobs=blobs) for entry in files],
    }
    if repository.kind == "spaces":
        row["sdk"] = card.get("sdk", repository.sdk)
    if repository.kind == "models":
        row["modelId"] = repository.id
        row["config"] = {key: config[key] for key in SHOWN_CONFIG if key in config}
        row["pipeline_tag"] = card.get("pipeline_tag")
        row["library_name"] = library_of(card, config)
        row["model-index"] = card.get("model-index")
        row["widgetData"] = card.get("widget")
        row["evalResults"] = eval_results(git, commit, names)
    return row


def read_json(git: GitRepository, commit: str, path: str) -> Json:
    try:
        found = json.loads(git.content(commit, path) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def eval_results(git: GitRepository, commit: str, names: Sequence[str]) -> list[Json]:
    """The entries of `.eval_results/*.yaml`."""
    files = [name for name in names if name.startswith(".eval_results/") and name.endswith((".yaml", ".yml"))]
    return list(itertools.chain.from_iterable(yaml.safe_load(git.content(commit, name)) for name in files))


def real_size(entry: Entry) -> int:
    return entry.pointer.size if entry.pointer else entry.size


def sibling(entry: Entry, *, blobs: bool) -> Json:
    row: Json = {"rfilename": entry.path}
    if blobs:
        row |= {"size": real_size(entry), "blobId": entry.oid}
        if entry.pointer:
            sizes = {"size": entry.pointer.size, "pointerSize": entry.size}
            row["lfs"] = {"sha256": entry.pointer.sha256, **sizes}
    return row


@routes.get("/api/{kind}/{namespace}/{name}")
@routes.get("/api/{kind}/{namespace}/{name}/revision/{revision}")
async def info(
    repository: Readable,
    expand: Annotated[list[str], Query(default_factory=list)],
    revision: Quoted = "main",
    blobs: bool = False,
) -> Json:
    row = describe(repository, revision, blobs=blobs)
    return {key: row[key] for key in ("_id", "id", *expand) if key in row} if expand else row


@routes.get("/api/{kind}/{name}")
@routes.get("/api/{kind}/{name}/revision/{revision}")
@routes.get("/{name}/resolve/{revision}/{path:path}")
async def info_without_namespace(store: UsedStore, caller: MaybeCaller, name: Quoted, kind: str = "models") -> None:
    """The Hub's oldest models have such names; nobody can make a new one."""
    store.readable(kind, name, caller)


@routes.get("/api/{kind}/{namespace}/{name}/auth-check")
async def check_reading(repository: Readable) -> None:
    """The dependency answers."""


@routes.get("/api/{kind}/{namespace}/{name}/auth-check/write")
async def check_writing(repository: Writable) -> None:
    """The dependency answers."""


def tree_row(git: GitRepository, commit: str, entry: Entry, *, expand: bool) -> Json:
    row: Json = {"type": "directory", "oid": entry.oid, "size": 0, "path": entry.path}
    if entry.is_file:
        row |= {"type": "file", "size": real_size(entry)}
    if entry.pointer:
        row["lfs"] = {"oid": entry.pointer.sha256, "size": entry.pointer.size, "pointerSize": entry.size}
    if expand:
        last = git.history(commit, entry.path, count=1)[0]
        row["lastCommit"] = {"id": last.id, "title": last.title, "date": last.date}
    return row


@routes.get("/api/{kind}/{namespace}/{name}/tree/{revision}")
@routes.get("/api/{kind}/{namespace}/{name}/tree/{revision}/{path:path}")
async def tree(
    request: Request,
    repository: Readable,
    revision: Quoted,
    path: Quoted = "",
    recursive: bool = False,
    expand: bool = False,
) -> JSONResponse:
    git = repository.git
    commit = git.commit_id(revision)
    folder = path.strip("/")
    if folder and git.entry(commit, folder).is_file:
        raise MissingEntryError(f"{folder} is not a folder", commit)
    start = f"{folder}/" if folder else ""
    inside = [entry for name, entry in git.entries(commit).items() if name.startswith(start)]
    shown = [entry for entry in inside if recursive or "/" not in entry.path[len(start) :]]
    size = EXPANDED_PAGE_SIZE if expand else PAGE_SIZE
    return one_page(request, shown, size, lambda entry: tree_row(git, commit, entry, expand=expand))


@routes.post("/api/{kind}/{namespace}/{name}/paths-info/{revision}")
async def paths_info(request: Request, repository: Readable, revision: Quoted) -> list[Json]:
    """Python's client sends a form, JavaScript's sends JSON."""
    if "json" in request.headers.get("content-type", ""):
        body = await request.json()
        paths, expand = body["paths"], bool(body.get("expand"))
    else:
        form = await request.form()
        paths, expand = form.getlist("paths"), form.get("expand") == "true"
    git = repository.git
    commit = git.commit_id(revision)
    found = [git.entries(commit).get(str(path).strip("/")) for path in paths]
    return [tree_row(git, commit, entry, expand=expand) for entry in found if entry]


@routes.get("/api/{kind}/{namespace}/{name}/refs")
async def refs(repository: Readable, include_prs: bool = False) -> Json:
    groups = {"branches": "refs/heads/", "converts": "refs/convert/", "tags": "refs/tags/", "pullRequests": "refs/pr/"}
    known = repository.git.refs()

    def group(prefix: str) -> list[Json]:
        return [
            {"name": ref.removeprefix(prefix), "ref": ref, "targetCommit": commit}
            for ref, commit in known.items()
            if ref.startswith(prefix)
        ]

    return {key: group(prefix) for key, prefix in groups.items() if key != "pullRequests" or include_prs}


@routes.get("/api/{kind}/{namespace}/{name}/commits/{revision}")
async def commits(request: Request, repository: Readable, revision: Quoted) -> JSONResponse:
    def show(commit: Commit) -> Json:
        row = {"id": commit.id, "title": commit.title, "message": commit.message, "date": commit.date}
        return {**row, "authors": [{"user": commit.author}]}

    history = repository.git.history(repository.git.commit_id(revision))
    return one_page(request, history, EXPANDED_PAGE_SIZE, show)


@routes.get("/{namespace}/{name}/resolve/{revision}/{path:path}")
@routes.get("/{kind}/{namespace}/{name}/resolve/{revision}/{path:path}")
async def resolve(repository: Readable, cdn: UsedCdn, revision: Quoted, path: Quoted) -> Response:
    """A file's bytes, or where the CDN has them."""
    commit, entry = found_file(repository, revision, path)
    if entry.pointer is None:
        return git_file(repository, commit, entry)
    pointer = entry.pointer
    headers = {"X-Repo-Commit": commit, "X-Linked-Etag": f'"{pointer.sha256}"', "X-Linked-Size": str(pointer.size)}
    return RedirectResponse(cdn.address("GET", repository.kind, repository.id, pointer.sha256), 302, headers)


@routes.get("/{namespace}/{name}/raw/{revision}/{path:path}")
@routes.get("/{kind}/{namespace}/{name}/raw/{revision}/{path:path}")
async def raw(repository: Readable, revision: Quoted, path: Quoted) -> FileResponse:
    """What git holds of a file; JavaScript's client asks so whether there is one."""
    return git_file(repository, *found_file(repository, revision, path))


def found_file(repository: Repository, revision: str, path: str) -> tuple[str, Entry]:
    """The commit of a revision, and its file; raises MissingEntryError where there is none."""
    commit = repository.git.commit_id(revision)
    entry = repository.git.entry(commit, path)
    if not entry.is_file:
        raise MissingEntryError(f"Entry not found: {path}", commit)
    return commit, entry


def git_file(repository: Repository, commit: str, entry: Entry) -> FileResponse:
    name = quote(entry.path.rpartition("/")[2])
    headers = {
        "X-Repo-Commit": commit,
        "ETag": f'"{entry.oid}"',
        "Content-Disposition": f"inline; filename*=UTF-8''{name}",
    }
    return FileResponse(repository.git.file(entry), media_type="text/plain; charset=utf-8", headers=headers)
