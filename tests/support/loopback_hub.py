"""A small Hugging Face Hub on 127.0.0.1, on real git repositories, for the real client libraries.

It serves the requests that the tests' clients make, and large files under another host name (`localhost`), as the Hub's
CDN is another host. It has no Xet storage: clients run with HF_HUB_DISABLE_XET=1. They read such settings at import:
a process of their own gets them as variables (`LoopbackHub.environment`), and a test's own process by `connected`.
"""

import contextlib
import os
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from huggingface_hub import constants
from loopback_cdn import Cdn
from loopback_git import MissingEntryError, MissingRevisionError
from loopback_routes import routes
from loopback_store import Caller, HubError, Role, Store
from loopback_uploads import uploads
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

CLIENT_VARIABLE = re.compile(r"(HF|HUGGING_?FACE|TRANSFORMERS|DATASETS|GIT)_.*|.*_proxy", re.IGNORECASE)


@dataclass(frozen=True)
class Logged:
    """A request as it came: `status` is None where the connection was dropped, `authorized` whether a token came."""

    method: str
    host: str
    path: str
    status: int | None
    authorized: bool


@dataclass
class Failure:
    """Requests that are to break."""

    times: int
    method: str | None
    path_contains: str
    how: str


def error_answer(status: int, message: str, code: str | None = None, commit: str | None = None) -> JSONResponse:
    """An error as the Hub sends it, in body and headers."""
    line = " ".join(message.split()).encode("ascii", "replace").decode()
    named = {"X-Error-Code": code, "X-Error-Message": line, "X-Repo-Commit": commit}
    return JSONResponse({"error": message}, status, {key: value for key, value in named.items() if value})


def hub_app(store: Store, cdn: Cdn) -> FastAPI:
    """What answers under the Hub's own host name."""
    app = FastAPI(openapi_url=None)
    app.state.store, app.state.cdn = store, cdn
    app.include_router(uploads)
    app.include_router(routes)

    @app.exception_handler(HubError)
    async def refuse(_: Request, error: HubError) -> JSONResponse:
        return error_answer(error.status, str(error), error.code)

    @app.exception_handler(MissingRevisionError)
    async def miss_revision(_: Request, error: MissingRevisionError) -> JSONResponse:
        return error_answer(404, str(error), "RevisionNotFound")

    @app.exception_handler(MissingEntryError)
    async def miss_entry(_: Request, error: MissingEntryError) -> JSONResponse:
        return error_answer(404, str(error), "EntryNotFound", error.commit)

    @app.exception_handler(RequestValidationError)
    async def refuse_form(_: Request, error: RequestValidationError) -> JSONResponse:
        return error_answer(400, str(error.errors()))

    return app


class LoopbackHub:
    """The server; a context manager that runs it in a thread.

    Args:
        folder: Where the repositories lie.

    Attributes:
        endpoint: Its address, once it runs.
        requests: What was asked so far.
    """

    def __init__(self, folder: Path):
        self.endpoint = ""
        self.requests: list[Logged] = []
        self._store = Store(folder)
        self._cdn = Cdn(self._store)
        self._hub_app = hub_app(self._store, self._cdn)
        self._failures: list[Failure] = []
        # h11 alone shows its connections to `_drop`.
        config = uvicorn.Config(
            self._answer,
            http="h11",
            interface="asgi3",
            lifespan="off",
            log_level="error",
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)

    def __enter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        self._cdn.host = f"http://localhost:{port}"
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()

    def add_user(self, name: str, token: str, *, role: Role = "write", orgs: Iterable[str] = ()) -> None:
        """A user, or another token of one; `orgs` are the organisations whose repositories are the user's, too."""
        self._store.callers[token] = Caller(name, frozenset(orgs), role)

    def environment(self, home: Path, token: str | None = None) -> dict[str, str]:
        """All variables of a fresh client process, which keeps its cache in `home`."""
        own = {name: value for name, value in os.environ.items() if not CLIENT_VARIABLE.fullmatch(name)}
        settings = {
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        return own | settings | ({"HF_TOKEN": token} if token else {})

    @contextlib.contextmanager
    def connected(self, token: str | None = None) -> Iterator[None]:
        """This process's uploads go to this Hub. Downloads need a process with a cache of its own."""
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if CLIENT_VARIABLE.fullmatch(name)]:
                patch.delenv(name)
            if token:
                patch.setenv("HF_TOKEN", token)
            patch.setattr(constants, "HF_TOKEN_PATH", os.devnull)
            patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
            patch.setattr(constants, "ENDPOINT", self.endpoint)
            yield

    def git_folder(self, repo_id: str) -> Path:
        """The bare repository of a model."""
        return self._store.repositories["models", repo_id].git.folder

    def commits(self, repo_id: str, revision: str = "main") -> list[str]:
        """The titles of a branch's commits, newest first."""
        git = self._store.repositories["models", repo_id].git
        return [commit.title for commit in git.history(git.commit_id(revision))]

    def fail(
        self,
        times: int,
        *,
        method: str | None = None,
        path_contains: str = "",
        how: Literal["disconnect", "403", "500", "503"] = "disconnect",
    ) -> None:
        """Break the next requests that match.

        A broken request changes nothing on the Hub. A dropped GET ends in the middle of its body, any other request
        without an answer.
        """
        self._failures.append(Failure(times, method, path_contains, how))

    def _failure(self, scope: Scope) -> Failure | None:
        for failure in self._failures:
            if failure.times and failure.method in (None, scope["method"]) and failure.path_contains in scope["path"]:
                failure.times -= 1
                return failure
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode()

        def log(status: int | None) -> None:
            authorized = b"authorization" in headers
            self.requests.append(Logged(scope["method"], host, scope["path"], status, authorized))

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                log(message["status"])
            await send(message)

        failure = self._failure(scope)
        app: ASGIApp = self._cdn.app if f"http://{host}" == self._cdn.host else self._hub_app
        if failure is None:
            # FastAPI serves GET alone; uvicorn leaves out the body of an answer to HEAD.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            await app({**scope, "method": method, "path": scope["raw_path"].decode()}, receive, watch)
        elif failure.how == "disconnect":
            log(None)
            await self._drop(app, scope, receive, send)
        else:
            await PlainTextResponse("broken by a test", int(failure.how))(scope, receive, watch)

    async def _drop(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Close the connection: a GET's after half of the first piece of its body."""

        async def halve(message: Message) -> None:
            if message["type"] == "http.response.body":
                half = message.get("body", b"")[: len(message.get("body", b"")) // 2]
                await send({"type": "http.response.body", "body": half, "more_body": True})
                raise ConnectionAbortedError
            await send(message)

        if scope["method"] == "GET":
            with contextlib.suppress(ConnectionAbortedError):
                await app({**scope, "path": scope["raw_path"].decode()}, receive, halve)
        for connection in self._server.server_state.connections:
            if isinstance(connection, H11Protocol) and connection.client == scope["client"]:
                connection.transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass
