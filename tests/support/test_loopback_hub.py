"""The loopback Hub against the real client libraries, in fresh processes, and against plain git and HTTP."""

import base64
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback_cards import check_card
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.slow  # most of what uses the Hub would fail with it

CLIENTS = Path(__file__).with_name("loopback_clients.py")
WRITER, READER, STRANGER = "hf_ana", "hf_ana_read", "hf_bob"
CARD = """---
language: en
license: apache-2.0
library_name: transformers
pipeline_tag: text-classification
tags: [nli]
datasets: [stanfordnlp/snli]
model-index:
- name: tiny
  results:
  - task: {type: text-classification}
    dataset: {type: stanfordnlp/snli, name: SNLI}
    metrics: [{type: accuracy, value: 0.5}]
---
# Tiny
"""
Result = dict[str, Any]


def bytes_of(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


FILES: dict[str, bytes] = {
    "README.md": CARD.encode(),
    ".gitignore": b"*.log\n",
    "config.json": json.dumps({"model_type": "bert", "auto_map": {"AutoModel": "m.M"}, "x": 1}).encode(),
    "model.safetensors": bytes_of(300_000, 1),
    "weights.dat": bytes_of(2_000, 2),
    "vocab.txt": b"a\nb\n",
    "empty.txt": b"",
    "sub/deep/naïve näme.txt": b"tiefer Text\n",
}
LARGE = {"model.safetensors", "weights.dat"}


def write_files(folder: Path) -> Path:
    for name, content in {**FILES, "run.log": b"not to be uploaded\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def run_client(hub: LoopbackHub, home: Path, token: str | None, *words: str | Path, **variables: str) -> Result:
    """What a function of loopback_clients returns in a process of its own."""
    command = [sys.executable, str(CLIENTS), *map(str, words)]
    environment = hub.environment(home, token) | variables
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    result: Result = json.loads(done.stdout)
    return result


def git(*words: str | Path) -> str:
    done = subprocess.run(["git", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path_factory.mktemp("hub")) as running:
        running.add_user("ana", WRITER, orgs=["org"])
        running.add_user("ana", READER, role="read", orgs=["org"])
        running.add_user("bob", STRANGER)
        yield running


@pytest.fixture(scope="module")
def published(hub: LoopbackHub, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run_client(hub, tmp_path_factory.mktemp("writer"), WRITER, "publish", folder)


@pytest.fixture(scope="module")
def visitor_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("visitor")


@pytest.fixture(scope="module")
def visited(hub: LoopbackHub, published: Result, visitor_home: Path) -> Result:
    return run_client(hub, visitor_home, None, "visit", visitor_home / "nothing")


@pytest.fixture
def web(hub: LoopbackHub, published: Result) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=hub.endpoint, headers={"Authorization": f"Bearer {WRITER}"}, trust_env=False) as client:
        yield client


def test_a_repository_is_created_once(hub: LoopbackHub, published: Result) -> None:
    assert published["me"]["name"] == "ana"
    assert published["me"]["orgs"] == [{"type": "org", "name": "org"}]
    assert published["url"] == published["exist_ok"] == f"{hub.endpoint}/org/model"
    assert published["again"] == ["HfHubHTTPError", 409]


def test_unchanged_files_make_no_commit(hub: LoopbackHub, published: Result) -> None:
    assert published["same"] == published["first"]
    assert hub.commits("org/model") == ["Change", "Upload", "initial commit"]
    assert published["commit_url"] == f"{hub.endpoint}/org/model/commit/{published['first']}"
    sent = [request for request in hub.requests if request.method == "PUT" and "/org/model/" in request.path]
    assert len(sent) == len(LARGE)


def test_a_good_card_brings_no_warning(published: Result) -> None:
    assert published["warnings"] == []


def test_commits_as_the_client_sees_them(published: Result) -> None:
    assert published["commits"] == [
        ["Change", "", ["ana"], published["second"]],
        ["Upload", "Two\nlines", ["ana"], published["first"]],
        ["initial commit", "", ["ana"], published["commits"][2][3]],
    ]
    assert all(date.endswith("+00:00") for date in published["dates"])


def test_branches_tags_and_pull_requests(hub: LoopbackHub, published: Result) -> None:
    refs = published["refs"]
    assert refs["branches"].keys() == {"main", "try/this"}
    assert refs["branches"]["main"] == published["second"]
    assert refs["tags"] == {"v1": published["first"]}
    assert refs["pull_requests"] == ["refs/pr/1"]
    assert published["pull_request"] == ["refs/pr/1", f"{hub.endpoint}/org/model/discussions/1"]
    assert published["tag_again"] == published["branch_again"] == ["HfHubHTTPError", 409]
    assert published["delete_tag"] == published["no_branch"] == ["RevisionNotFoundError", 404]
    assert published["delete_main"] == ["HfHubHTTPError", 403]


def test_a_commit_on_a_stale_parent_is_refused(published: Result) -> None:
    assert published["stale"] == ["HfHubHTTPError", 412]
    assert published["delete_missing"] == ["RemoteEntryNotFoundError", 404]


def test_the_folder_comes_back(published: Result, visited: Result) -> None:
    snapshot = {name: bytes.fromhex(content) for name, content in visited["snapshot"].items()}
    attributes = snapshot.pop(".gitattributes").decode()
    assert snapshot == FILES
    assert attributes.endswith(
        "*tfevents* filter=lfs diff=lfs merge=lfs -text\nweights.dat filter=lfs diff=lfs merge=lfs -text\n"
    )
    assert visited["branch_file"] == "side\n"
    assert visited["pr_file"] == "idea\n"
    assert visited["large"] == len(FILES["model.safetensors"])


def test_files_of_each_revision(published: Result, visited: Result) -> None:
    gone = {"vocab.txt", "sub/deep/naïve näme.txt"}
    assert set(visited["old_files"]) == {*FILES, ".gitattributes"}
    assert set(visited["files"]) == {*FILES, ".gitattributes", "added.txt", "copy.safetensors"} - gone
    assert visited["top"] == sorted([*(name for name in FILES if "/" not in name), ".gitattributes", "sub"])
    assert visited["inside"] == ["sub/deep/naïve näme.txt"]
    assert visited["paths"] == ["config.json", "sub"]
    assert dict(visited["expanded_tree"])["added.txt"] == "Change"
    assert dict(visited["expanded_tree"])["config.json"] == "Upload"
    assert visited["old_sha"] == published["first"]
    assert visited["expanded"] is None


def test_what_a_page_says(published: Result, visited: Result) -> None:
    assert visited["sha"] == published["second"]
    assert visited["pipeline_tag"] == "text-classification"
    assert visited["library_name"] == "transformers"
    assert visited["license"] == "apache-2.0"
    assert visited["results"] == [0.5]
    assert visited["config"] == {"model_type": "bert", "auto_map": {"AutoModel": "m.M"}}
    expected = {"transformers", "safetensors", "bert", "nli", "custom_code", "license:apache-2.0", "model-index", "en"}
    assert expected <= set(visited["tags"])
    assert "dataset:stanfordnlp/snli" in visited["tags"]
    large = FILES["model.safetensors"]
    assert visited["siblings"]["model.safetensors"][:2] == [len(large), hashlib.sha256(large).hexdigest()]
    assert visited["siblings"]["copy.safetensors"] == visited["siblings"]["model.safetensors"]
    assert visited["siblings"]["config.json"][:2] == [len(FILES["config.json"]), None]


def test_what_is_there(visited: Result) -> None:
    assert visited["listed"] == ["org/model"]
    assert visited["unlisted"] == []
    assert visited["exists"] == [True, False, False]
    assert visited["revisions"] == [True, True, True, False]
    assert visited["file_exists"] == [True, True, False]


def test_errors_have_their_classes(visited: Result) -> None:
    assert visited["errors"] == {
        "file": ["RemoteEntryNotFoundError", 404],
        "folder": ["RemoteEntryNotFoundError", 404],
        "tree": ["RemoteEntryNotFoundError", 404],
        "revision": ["RevisionNotFoundError", 404],
        "info_revision": ["RevisionNotFoundError", 404],
        "repository": ["RepositoryNotFoundError", 401],
        "upload": ["HfHubHTTPError", 401],
        "whoami": ["HfHubHTTPError", 401],
        "wrong_token": ["HfHubHTTPError", 401],
    }


def test_the_cache_serves_offline(hub: LoopbackHub, visited: Result, visitor_home: Path) -> None:
    before = len(hub.requests)
    offline = run_client(hub, visitor_home, None, "reload_offline", HF_HUB_OFFLINE="1")
    assert len(hub.requests) == before
    assert offline["config"] == json.loads(FILES["config.json"])
    assert "model.safetensors" in offline["snapshot"]
    assert offline["missing"][0] == "LocalEntryNotFoundError"
    assert offline["known_missing"][0] == "LocalEntryNotFoundError"


def test_no_token_reaches_the_cdn(hub: LoopbackHub, published: Result, visited: Result) -> None:
    cdn = [request for request in hub.requests if request.host.startswith("localhost")]
    assert {request.method for request in cdn} == {"GET", "PUT"}
    assert not any(request.authorized for request in cdn)
    assert any(request.authorized for request in hub.requests)


def test_rights(hub: LoopbackHub, tmp_path: Path) -> None:
    shared = run_client(hub, tmp_path, WRITER, "share", WRITER, READER, STRANGER)
    fine = [None, None]
    assert shared["private"] is True
    assert shared["info"] == {
        "own": fine,
        "read": fine,
        "other": ["RepositoryNotFoundError", 404],
        "nobody": ["RepositoryNotFoundError", 401],
    }
    assert {name for name, ids in shared["listed"].items() if "org/open" in ids} == {"own", "read", "other", "nobody"}
    assert {name for name, ids in shared["listed"].items() if "org/secret" in ids} == {"own", "read"}
    assert shared["size"] == 5000
    refused = ["HfHubHTTPError", 403]
    assert shared["writes"] == {"own": fine, "read": refused, "other": refused, "nobody": ["HfHubHTTPError", 401]}
    assert shared["create"] == refused
    assert shared["exist_ok"] == f"{hub.endpoint}/org/open"
    assert shared["proposal"] == 1
    assert shared["published"] == fine
    assert shared["moved"] == [False, [".gitattributes", "model.bin"]]
    assert shared["deleted"] is False
    assert shared["delete_again"] == ["RepositoryNotFoundError", 404]
    assert shared["dataset_url"] == f"{hub.endpoint}/datasets/ana/rows"
    assert shared["dataset"] == "a,b\n"
    assert shared["datasets"] == ["ana/rows"]
    assert shared["space"] == ["gradio", [".gitattributes", "README.md"]]


def test_cards_are_checked(hub: LoopbackHub, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(CARD)
    (tmp_path / "bad.md").write_text(CARD.replace("apache-2.0", "my own"))
    cards = run_client(hub, tmp_path / "home", WRITER, "push_cards", tmp_path / "good.md", tmp_path / "bad.md")
    assert cards == {
        "card": True,
        "bad": ["ValueError", None],
        "bad_push": ["ValueError", None],
        "plain": [None, None],
    }
    assert hub.commits("ana/card") == ["Card", "initial commit"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("---\nlicense: [\n---\n", "Invalid YAML in README.md: "),
        ("---\njust words\n---\n", "The YAML metadata of your README.md is invalid."),
        ("---\n- a\n---\n", '"value" must be of type object'),
        ("---\nlicense: mine\n---\n", '"license" must be one of [apache-2.0, mit, '),
        ("---\nlanguage: english\n---\n", '"language" with value "english" is not valid.'),
        ("---\ndatasets: [a b]\n---\n", '"datasets[0]" with value "a b" is not valid.'),
        ("---\nbase_model: /tmp/mine/x\n---\n", '"base_model" with value "/tmp/mine/x" is not valid.'),
        ("---\ntags: [1]\n---\n", '"tags[0]" must be a string'),
        ("---\nwidget: [text]\n---\n", '"widget[0]" must be of type object'),
        ("---\nmodel-index: [{name: x}]\n---\n", '"model-index[0].results" is required'),
        (CARD.replace(", value: 0.5", ""), '"model-index[0].results[0].metrics[0].value" is required'),
    ],
)
def test_errors_in_cards(text: str, error: str) -> None:
    errors, warnings = check_card(text, "model")
    assert [found[: len(error)] for found in errors] == [error]
    assert warnings == []


def test_warnings_of_cards() -> None:
    assert check_card("# Words", "model") == ([], ["empty or missing yaml metadata in repo card"])
    errors, warnings = check_card("---\npipeline_tag: nonsense\n---\n", "model")
    assert errors == []
    assert warnings[0].startswith('The pipeline_tag "nonsense" is not in the official list: text-classification, ')
    assert check_card("---\ncolorFrom: black\n---\n", "space")[0][0].startswith('"colorFrom" must be one of [red, ')


def test_plain_git_takes_the_repository(hub: LoopbackHub, published: Result, tmp_path: Path) -> None:
    bare = hub.git_folder("org/model")
    assert git(f"--git-dir={bare}", "fsck", "--strict", "--full") == ""
    git("clone", "--quiet", "--branch", "v1", "-c", "filter.lfs.smudge=cat", bare, tmp_path / "clone")
    assert git("-C", tmp_path / "clone", "rev-parse", "HEAD").strip() == published["first"]
    for name, content in FILES.items():
        digest = hashlib.sha256(content).hexdigest()
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n".encode()
        assert (tmp_path / "clone" / name).read_bytes() == (pointer if name in LARGE else content)
        if name in LARGE:
            assert (bare / "lfs" / "objects" / digest[:2] / digest[2:4] / digest).read_bytes() == content
    names = git(f"--git-dir={bare}", "show", "--name-status", "--format=", published["second"]).splitlines()
    assert {"D\tvocab.txt", "A\tadded.txt"} < set(names)


def test_a_small_file_over_http(web: httpx.Client, published: Result) -> None:
    path = "/org/model/resolve/main/config.json"
    head, whole = web.head(path), web.get(path)
    blob = hashlib.sha1(b"blob %d\0" % len(FILES["config.json"]) + FILES["config.json"]).hexdigest()
    assert head.content == b""
    for answer in (head, whole):
        assert answer.status_code == 200
        assert answer.headers["etag"] == f'"{blob}"'
        assert answer.headers["x-repo-commit"] == published["second"]
        assert int(answer.headers["content-length"]) == len(FILES["config.json"])
    part = web.get(path, headers={"Range": "bytes=2-5"})
    assert (part.status_code, part.content) == (206, FILES["config.json"][2:6])
    assert web.get(path, headers={"Range": "bytes=9999-"}).status_code == 416


def test_a_large_file_over_http(web: httpx.Client, published: Result) -> None:
    content = FILES["model.safetensors"]
    head = web.head("/org/model/resolve/v1/model.safetensors")
    assert head.status_code == 302
    assert head.headers["x-repo-commit"] == published["first"]
    assert head.headers["x-linked-etag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert int(head.headers["x-linked-size"]) == len(content)
    location = head.headers["location"]
    assert location.startswith("http://localhost:")
    assert httpx.get(location, trust_env=False).content == content
    part = httpx.get(location, headers={"Range": "bytes=100-"}, trust_env=False)
    assert (part.status_code, part.content) == (206, content[100:])
    assert part.headers["content-range"] == f"bytes 100-{len(content) - 1}/{len(content)}"
    assert httpx.get(location, headers={"Authorization": "Bearer x"}, trust_env=False).status_code == 400
    assert httpx.get(location.partition("?")[0], trust_env=False).status_code == 403


def test_head_works_on_every_get_route(web: httpx.Client) -> None:
    paths = [
        "/revision/HEAD",
        "",
        "/tree/main",
        "/tree/main?recursive=true",
        "/refs",
        "/commits/main",
        "/auth-check/write",
    ]
    for path in ["/api/whoami-v2", "/api/models", *(f"/api/models/org/model{path}" for path in paths)]:
        head, whole = web.head(path), web.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert whole.status_code == 200
        assert head.headers["content-length"] == whole.headers["content-length"]


@pytest.mark.parametrize(
    ("path", "token", "status", "code", "commit"),
    [
        ("/org/model/resolve/main/none", WRITER, 404, "EntryNotFound", True),
        ("/org/model/resolve/main/%E2%86%92.txt", WRITER, 404, "EntryNotFound", True),
        ("/org/model/resolve/none/config.json", WRITER, 404, "RevisionNotFound", False),
        ("/org/none/resolve/main/config.json", WRITER, 404, "RepoNotFound", False),
        ("/org/none/resolve/main/config.json", None, 401, "RepoNotFound", False),
        ("/bert-base/resolve/main/config.json", None, 401, "RepoNotFound", False),
        ("/datasets/org/model/resolve/main/config.json", WRITER, 404, "RepoNotFound", False),
        ("/api/models/org/model/tree/main/none", WRITER, 404, "EntryNotFound", True),
        ("/api/models/org/model/tree/main/config.json", WRITER, 404, "EntryNotFound", True),
        ("/api/models/org/model/revision/main~1", WRITER, 404, "RevisionNotFound", False),
        ("/api/models/org/model", "hf_nobody", 401, None, False),
        ("/api/models/org/model/xet-write-token/main", WRITER, 404, None, False),
        ("/api/agent-harnesses", None, 404, None, False),
    ],
)
def test_errors_over_http(
    web: httpx.Client, published: Result, path: str, token: str | None, status: int, code: str | None, commit: bool
) -> None:
    web.headers.pop("authorization")
    answer = web.get(path, headers={"Authorization": f"Bearer {token}"} if token else {})
    assert answer.status_code == status
    assert answer.headers.get("x-error-code") == code
    assert answer.headers.get("x-repo-commit") == (published["second"] if commit else None)
    assert "x-error-message" in answer.headers or path == "/api/agent-harnesses"


def test_what_javascript_asks_differently(web: httpx.Client, published: Result) -> None:
    pointer = web.get("/org/model/raw/main/model.safetensors")
    assert pointer.text.startswith("version https://git-lfs.github.com/spec/v1\noid sha256:")
    assert web.head("/org/model/raw/main/none").status_code == 404
    assert web.get("/api/models/org/model/revision/HEAD").json()["sha"] == published["second"]
    asked = web.post("/api/models/org/model/paths-info/main", json={"paths": ["model.safetensors"], "expand": True})
    assert asked.json()[0]["lfs"]["size"] == len(FILES["model.safetensors"])
    assert asked.json()[0]["lastCommit"]["title"] == "Upload"


def test_preupload_decides_by_name_size_and_bytes(web: httpx.Client) -> None:
    files = {"a.bin": (1, b"x"), "big.txt": (11 * 2**20, b"x"), "odd.xyz": (9, b"\xff\xfe"), "cut.txt": (600, b"\xc3")}
    rows = [
        {"path": path, "size": size, "sample": base64.b64encode(sample).decode()}
        for path, (size, sample) in files.items()
    ]
    rows.append({"path": "tmp/x.txt", "size": 1, "sample": "eA=="})
    asked = web.post("/api/models/org/model/preupload/main", json={"files": rows, "gitIgnore": "tmp/\n"}).json()[
        "files"
    ]
    assert [row["uploadMode"] for row in asked] == ["lfs", "lfs", "lfs", "regular", "regular"]
    assert [row["shouldIgnore"] for row in asked] == [False, False, False, False, True]
    assert web.post("/api/models/org/model/preupload/main", json={"files": rows * 60}).status_code == 400


def upload_address(web: httpx.Client, repo_id: str, content: bytes) -> dict[str, Any]:
    wanted = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
    body = {"operation": "upload", "transfers": ["basic"], "objects": [wanted], "hash_algo": "sha256"}
    answer = web.post(f"/{repo_id}.git/info/lfs/objects/batch", json=body).json()
    assert answer["transfer"] == "basic"
    row: dict[str, Any] = answer["objects"][0]
    return row


def commit_of(*lines: tuple[str, Any], **header: Any) -> str:
    rows = [{"key": "header", "value": {"summary": "By hand", "description": "", **header}}]
    return "\n".join(json.dumps(row) for row in [*rows, *({"key": key, "value": value} for key, value in lines)])


def test_only_whole_objects_are_committed(hub: LoopbackHub, web: httpx.Client) -> None:
    web.post("/api/repos/create", json={"name": "hand", "organization": "org"})
    content = bytes_of(5000, 3)
    row = upload_address(web, "org/hand", content)
    upload, verify = row["actions"]["upload"]["href"], row["actions"]["verify"]["href"]
    known = {"oid": row["oid"], "size": row["size"]}
    pointer = ("lfsFile", {"path": "late.bin", "algo": "sha256", **known})
    commit = "/api/models/org/hand/commit/main"
    assert httpx.put(upload, content=content[:-1], trust_env=False).status_code == 400
    assert web.post(verify, json=known).status_code == 404
    assert web.post(commit, content=commit_of(pointer)).status_code == 400
    assert httpx.put(upload, content=content, trust_env=False).status_code == 200
    assert httpx.put(upload.partition("?")[0], content=content, trust_env=False).status_code == 403
    assert web.post(verify, json={**known, "size": 1}).status_code == 404
    assert web.post(verify, json=known).status_code == 200
    assert "actions" not in upload_address(web, "org/hand", content)
    assert web.post(commit, content=commit_of(pointer)).json()["success"] is True
    assert hub.commits("org/hand") == ["By hand", "initial commit"]


@pytest.mark.parametrize("path", ["../x", "a//b", "/x", ".git/config", "a/../b", "a\nb"])
def test_a_commit_stays_inside_its_repository(web: httpx.Client, path: str) -> None:
    line = ("file", {"path": path, "content": "eA==", "encoding": "base64"})
    assert web.post("/api/models/org/model/commit/main", content=commit_of(line)).status_code == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/repos/create", {"name": "a--b"}),
        ("/api/repos/create", {"name": "../b"}),
        ("/api/repos/create", {"name": "a.git"}),
        ("/api/repos/create", {"name": "a", "type": "kernel"}),
        ("/api/repos/create", {"name": "a", "type": "space"}),
        ("/api/models/org/model/branch/a..b", {}),
        ("/api/models/org/model/tag/main", {"tag": "a..b"}),
        ("/api/models/org/model/commit/main", {"key": "file", "value": {"path": "x", "content": "x"}}),
        ("/api/validate-yaml", {"content": "---\nlicense: mine\n---\n", "repoType": "model"}),
    ],
)
def test_bad_requests_are_refused(web: httpx.Client, path: str, body: Any) -> None:
    assert web.post(path, json=body).status_code == 400


def test_a_bad_card_is_not_committed(web: httpx.Client) -> None:
    line = ("file", {"path": "README.md", "content": "---\nlicense: mine\n---\n", "encoding": "utf-8"})
    answer = web.post("/api/models/org/model/commit/main", content=commit_of(line))
    assert (answer.status_code, answer.json()["error"][:9]) == (400, '"license"')


def test_long_lists_come_in_pages(web: httpx.Client) -> None:
    web.post("/api/repos/create", json={"name": "many", "organization": "org"})
    lines = [("file", {"path": f"f{index}", "content": "", "encoding": "utf-8"}) for index in range(1005)]
    web.post("/api/models/org/many/commit/main", content=commit_of(*lines)).raise_for_status()
    first = web.get("/api/models/org/many/tree/main")
    assert len(first.json()) == 1000
    second = web.get(first.links["next"]["url"])
    assert "next" not in second.links
    paths = {row["path"] for row in [*first.json(), *second.json()]}
    assert paths == {".gitattributes", *(f"f{index}" for index in range(1005))}


def test_clients_survive_broken_connections(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    hub.fail(1, method="POST", path_contains="/ana/shaky/preupload")
    hub.fail(1, method="PUT", path_contains="/ana/shaky/", how="503")
    hub.fail(1, method="GET", path_contains="/ana/shaky/")
    before = len(hub.requests)
    result = run_client(hub, tmp_path, WRITER, "survive", folder)
    assert result["large"] is True
    assert result["commit"] == [None, None]
    assert result["files"] == len(FILES) + 2
    broken = [(request.method, request.status) for request in hub.requests[before:] if request.status in (None, 503)]
    assert broken == [("POST", None), ("PUT", 503), ("GET", None)]


@pytest.mark.parametrize(("how", "status"), [("503", 503), ("500", 500)])
def test_broken_requests_change_nothing(hub: LoopbackHub, web: httpx.Client, how: Any, status: int) -> None:
    hub.fail(1, method="POST", path_contains="/repos/create", how=how)
    body = {"name": f"broken{how}", "organization": "org"}
    assert web.post("/api/repos/create", json=body).status_code == status
    hub.fail(2, path_contains="/repos/create")
    for _ in range(2):
        with pytest.raises(httpx.TransportError):
            web.post("/api/repos/create", json=body)
    assert web.get(f"/api/models/org/broken{how}").status_code == 404
    assert web.post("/api/repos/create", json=body).status_code == 200
