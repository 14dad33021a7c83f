"""What fresh processes do with the client libraries in the tests of the loopback Hub.

Run as `python loopback_clients.py FUNCTION ARGUMENTS...`; the result comes as JSON on standard output.
"""

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    CommitOperationDelete,
    HfApi,
    ModelCard,
    RepoCard,
    hf_hub_download,
    snapshot_download,
)

Result = dict[str, Any]


def raised(act: Callable[[], object]) -> list[str | int | None]:
    """The class of the error that an act ends in, and the HTTP status that caused it."""
    try:
        act()
    except Exception as error:
        response = getattr(error, "response", None)
        return [type(error).__name__, response.status_code if response is not None else None]
    return [None, None]


def publish(folder: str) -> Result:
    """Create org/model, upload a folder, the same again, then change it in commits, branches and tags."""
    api = HfApi()
    found: Result = {"me": api.whoami(), "url": str(api.create_repo("org/model"))}
    found["again"] = raised(lambda: api.create_repo("org/model"))
    found["exist_ok"] = str(api.create_repo("org/model", exist_ok=True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = api.upload_folder(
            repo_id="org/model", folder_path=folder, commit_message="Upload", commit_description="Two\nlines"
        )
        # An ignored file that is no no-op to the client would make an empty commit.
        same = api.upload_folder(repo_id="org/model", folder_path=folder, ignore_patterns="*.log")
    found["warnings"] = [str(warning.message) for warning in caught if "metadata" in str(warning.message)]
    found["first"], found["same"], found["commit_url"] = first.oid, same.oid, str(first.commit_url)
    api.create_tag("org/model", tag="v1", tag_message="First")
    api.create_tag("org/model", tag="light")
    found["tag_again"] = raised(lambda: api.create_tag("org/model", tag="v1"))
    api.create_branch("org/model", branch="try/this")
    found["branch_again"] = raised(lambda: api.create_branch("org/model", branch="try/this"))
    api.create_branch("org/model", branch="try/this", exist_ok=True)
    api.create_branch("org/model", branch="gone", revision="v1")
    api.delete_branch("org/model", branch="gone")
    found["delete_main"] = raised(lambda: api.delete_branch("org/model", branch="main"))
    api.delete_tag("org/model", tag="light")
    found["delete_tag"] = raised(lambda: api.delete_tag("org/model", tag="light"))
    operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
        CommitOperationDelete("vocab.txt"),
        CommitOperationDelete("sub/", is_folder=True),
        CommitOperationAdd("added.txt", b"added\n"),
        CommitOperationCopy(src_path_in_repo="model.safetensors", path_in_repo="copy.safetensors"),
    ]
    second = api.create_commit("org/model", operations, commit_message="Change", parent_commit=first.oid)
    found["second"] = second.oid
    stale = [CommitOperationAdd("late.txt", b"late\n")]
    found["stale"] = raised(
        lambda: api.create_commit("org/model", stale, commit_message="Late", parent_commit=first.oid)
    )
    missing = [CommitOperationDelete("nothing.txt")]
    found["delete_missing"] = raised(lambda: api.create_commit("org/model", missing, commit_message="No"))
    api.upload_file(path_or_fileobj=b"side\n", path_in_repo="side.txt", repo_id="org/model", revision="try/this")
    found["no_branch"] = raised(
        lambda: api.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id="org/model", revision="none")
    )
    proposal = api.upload_file(path_or_fileobj=b"idea\n", path_in_repo="idea.txt", repo_id="org/model", create_pr=True)
    found["pull_request"] = [proposal.pr_revision, proposal.pr_url]
    refs = api.list_repo_refs("org/model", include_pull_requests=True)
    found["refs"] = {
        "branches": {ref.name: ref.target_commit for ref in refs.branches},
        "tags": {ref.name: ref.target_commit for ref in refs.tags},
        "pull_requests": [ref.ref for ref in refs.pull_requests or []],
    }
    commits = api.list_repo_commits("org/model")
    found["commits"] = [[commit.title, commit.message, commit.authors, commit.commit_id] for commit in commits]
    found["dates"] = [commit.created_at.isoformat() for commit in commits]
    return found


def visit(cache_of_nothing: str) -> Result:
    """Read org/model without a token, in all ways, and what is missing."""
    api = HfApi(token=False)
    info = api.model_info("org/model", files_metadata=True)
    assert info.card_data is not None
    found: Result = {
        "sha": info.sha,
        "tags": info.tags,
        "pipeline_tag": info.pipeline_tag,
        "library_name": info.library_name,
        "config": info.config,
        "license": info.card_data.license,
        "results": [result.metric_value for result in info.card_data.eval_results or []],
        "siblings": {
            file.rfilename: [file.size, file.lfs and file.lfs.sha256, file.blob_id] for file in info.siblings or []
        },
        "expanded": api.model_info("org/model", expand=["sha"]).tags,
        "old_sha": api.model_info("org/model", revision="v1").sha,
        "files": api.list_repo_files("org/model"),
        "old_files": api.list_repo_files("org/model", revision="v1"),
        "top": sorted(entry.path for entry in api.list_repo_tree("org/model", revision="v1")),
        "inside": [entry.path for entry in api.list_repo_tree("org/model", "sub/deep", revision="v1")],
        "expanded_tree": [
            [entry.path, entry.last_commit and entry.last_commit.title]
            for entry in api.list_repo_tree("org/model", expand=True)
        ],
        "paths": [entry.path for entry in api.get_paths_info("org/model", ["config.json", "sub", "no"], revision="v1")],
        "listed": [model.id for model in api.list_models(author="org", search="MOD", filter=["bert"])],
        "unlisted": [model.id for model in api.list_models(filter="jax")],
        "exists": [api.repo_exists("org/model"), api.repo_exists("org/none"), api.repo_exists("none")],
        "revisions": [api.revision_exists("org/model", name) for name in ("v1", "try/this", "refs/pr/1", "no")],
        "file_exists": [api.file_exists("org/model", name) for name in ("config.json", "model.safetensors", "no")],
    }
    snapshot = Path(snapshot_download("org/model", revision="v1"))
    files = [path for path in snapshot.rglob("*") if path.is_file()]
    found["snapshot"] = {str(path.relative_to(snapshot)): path.read_bytes().hex() for path in files}
    found["branch_file"] = Path(hf_hub_download("org/model", "side.txt", revision="try/this")).read_text()
    found["pr_file"] = Path(hf_hub_download("org/model", "idea.txt", revision="refs/pr/1")).read_text()
    found["large"] = Path(hf_hub_download("org/model", "model.safetensors")).stat().st_size
    found["errors"] = {
        "file": raised(lambda: hf_hub_download("org/model", "no.txt")),
        "folder": raised(lambda: hf_hub_download("org/model", "sub", revision="v1")),
        "tree": raised(lambda: list(api.list_repo_tree("org/model", "additional_chat_templates"))),
        "revision": raised(lambda: hf_hub_download("org/model", "config.json", revision="no")),
        "info_revision": raised(lambda: api.model_info("org/model", revision="no")),
        "repository": raised(lambda: hf_hub_download("org/none", "config.json", cache_dir=cache_of_nothing)),
        "upload": raised(lambda: api.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id="org/model")),
        "whoami": raised(lambda: api.whoami(token="hf_nobody")),
        "wrong_token": raised(lambda: HfApi(token="hf_nobody").model_info("org/model")),
    }
    return found


def share(writer: str, reader: str, stranger: str) -> Result:
    """Private repositories, roles, data sets, Spaces, moving and deleting, with three tokens."""
    own, read, other, nobody = HfApi(token=writer), HfApi(token=reader), HfApi(token=stranger), HfApi(token=False)
    own.create_repo("org/open")
    own.create_repo("org/secret", private=True)
    own.upload_file(path_or_fileobj=b"\0" * 5000, path_in_repo="model.bin", repo_id="org/secret")
    apis = {"own": own, "read": read, "other": other, "nobody": nobody}
    found: Result = {
        "info": {name: raised(partial(api.model_info, "org/secret")) for name, api in apis.items()},
        "private": own.model_info("org/secret").private,
        "listed": {name: [model.id for model in api.list_models(author="org")] for name, api in apis.items()},
        "size": Path(hf_hub_download("org/secret", "model.bin", token=reader)).stat().st_size,
    }
    upload: Result = {"path_or_fileobj": b"x\n", "path_in_repo": "x.txt", "repo_id": "org/open"}
    found["writes"] = {name: raised(partial(api.upload_file, **upload)) for name, api in apis.items()}
    found["create"] = raised(lambda: other.create_repo("org/theirs"))
    found["exist_ok"] = str(other.create_repo("org/open", exist_ok=True))
    found["proposal"] = other.upload_file(**{**upload, "path_or_fileobj": b"y\n"}, create_pr=True).pr_num
    own.update_repo_settings("org/secret", private=False)
    found["published"] = raised(lambda: nobody.model_info("org/secret"))
    own.move_repo("org/secret", "ana/moved")
    found["moved"] = [own.repo_exists("org/secret"), own.list_repo_files("ana/moved")]
    own.delete_repo("ana/moved")
    found["deleted"] = own.repo_exists("ana/moved")
    found["delete_again"] = raised(lambda: own.delete_repo("ana/moved"))
    own.delete_repo("ana/moved", missing_ok=True)
    found["dataset_url"] = str(own.create_repo("rows", repo_type="dataset"))
    own.upload_file(path_or_fileobj=b"a,b\n", path_in_repo="rows.csv", repo_id="ana/rows", repo_type="dataset")
    found["dataset"] = Path(hf_hub_download("ana/rows", "rows.csv", repo_type="dataset")).read_text()
    found["datasets"] = [row.id for row in nobody.list_datasets(author="ana")]
    own.create_repo("ana/demo", repo_type="space", space_sdk="gradio")
    space = nobody.space_info("ana/demo")
    found["space"] = [space.sdk, [file.rfilename for file in space.siblings or []]]
    return found


def push_cards(good: str, bad: str) -> Result:
    """Validate and push model cards."""
    card = ModelCard(Path(good).read_text())
    card.validate()
    HfApi().create_repo("ana/card")
    card.push_to_hub("ana/card", commit_message="Card")
    return {
        "card": ModelCard.load("ana/card").content == card.content,
        "bad": raised(ModelCard(Path(bad).read_text(), ignore_metadata_errors=True).validate),
        "bad_push": raised(
            lambda: HfApi().upload_file(path_or_fileobj=bad, path_in_repo="README.md", repo_id="ana/card")
        ),
        "plain": raised(RepoCard("No metadata").validate),
    }


def survive(folder: str) -> Result:
    """Uploads and downloads that break on the way: the test has told the Hub which."""
    api = HfApi()
    api.create_repo("ana/shaky")
    api.upload_folder(repo_id="ana/shaky", folder_path=folder)
    large = Path(hf_hub_download("ana/shaky", "model.safetensors")).read_bytes()
    return {
        "large": large == (Path(folder) / "model.safetensors").read_bytes(),
        "commit": raised(lambda: api.upload_file(path_or_fileobj=b"x", path_in_repo="x.txt", repo_id="ana/shaky")),
        "files": len(api.list_repo_files("ana/shaky")),
    }


def reload_offline() -> Result:
    """What `visit` has left in the cache."""
    return {
        "snapshot": sorted(path.name for path in Path(snapshot_download("org/model", revision="v1")).iterdir()),
        "config": json.loads(Path(hf_hub_download("org/model", "config.json", revision="v1")).read_text()),
        "missing": raised(lambda: hf_hub_download("org/model", "never-asked.txt")),
        "known_missing": raised(lambda: hf_hub_download("org/model", "no.txt")),
    }


if __name__ == "__main__":
    result = globals()[sys.argv[1]](*sys.argv[2:])
    sys.stdout.write(json.dumps(result))
