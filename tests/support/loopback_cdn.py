"""The host of a loopback Hub's large files: signed addresses, and no token."""

import hashlib
import hmac
import secrets
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse
from loopback_store import Store


class Cdn:
    """Stores and sends LFS objects. An address is good for one method and one object.

    Attributes:
        host: The start of all addresses; set when the port is known.
        app: What answers there.
    """

    def __init__(self, store: Store):
        self.host = ""
        self.app = FastAPI(openapi_url=None)
        self._store = store
        self._secret = secrets.token_bytes()
        self.app.get("/{kind}/{namespace}/{name}/{sha256}")(self.send)
        self.app.put("/{kind}/{namespace}/{name}/{sha256}")(self.keep)

    def _signature(self, method: str, path: str) -> str:
        return hmac.digest(self._secret, f"{method} {path}".encode(), "sha256").hex()

    def address(self, method: str, kind: str, repo_id: str, sha256: str) -> str:
        path = f"/{kind}/{repo_id}/{sha256}"
        return f"{self.host}{path}?signature={self._signature(method, path)}"

    def _place(self, request: Request, kind: str, repo_id: str, sha256: str) -> Path:
        # Like S3, which takes a signature or a header, not both.
        if "authorization" in request.headers:
            raise HTTPException(400, "Only one auth mechanism allowed")
        signature = self._signature(request.method, f"/{kind}/{repo_id}/{sha256}")
        if not hmac.compare_digest(signature, request.query_params.get("signature", "")):
            raise HTTPException(403, "SignatureDoesNotMatch")
        if (kind, repo_id) not in self._store.repositories:
            raise HTTPException(404, "NoSuchKey")
        return self._store.repositories[kind, repo_id].git.large_file(sha256)

    async def send(self, request: Request, kind: str, namespace: str, name: str, sha256: str) -> FileResponse:
        file = self._place(request, kind, f"{namespace}/{name}", sha256)
        return FileResponse(file, media_type="application/octet-stream", headers={"ETag": f'"{sha256}"'})

    async def keep(self, request: Request, kind: str, namespace: str, name: str, sha256: str) -> None:
        file = self._place(request, kind, f"{namespace}/{name}", sha256)
        content = await request.body()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise HTTPException(400, "BadDigest")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
