"""The whole service in the test's own process: every plugin, the real gateway and a real shard,
reached over ASGI.

What a socket and a second process would add is tested elsewhere (tests/support/served.py); here a
request costs about a millisecond.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import httpx

import serve_app
from runtime.api.operation import Call, Reply
from runtime.cluster import LocalShards
from runtime.http import build_asgi
from runtime.inference import Models, load_language_model, load_recogniser, load_transcriber
from runtime.installation import FORMAT_VERSION, Layout, Secrets
from runtime.placement import PlacementTable
from runtime.shard import Shard
from runtime.telemetry import Telemetry
from storage.store import Identity
from tests.support.embedding import WordEmbedder
from tests.support.worlds import settings

POLL_SECONDS = 0.002
WAIT_SECONDS_MAX = 120
PASSWORD = "correct horse battery staple"


class FaultyShards(LocalShards):
    """Shards as ever, which raise the exception in `fault`, once it is set, instead of
    answering.
    """

    fault: Exception | None = None

    async def execute(self, call: Call) -> Reply:
        if self.fault is not None:
            raise self.fault
        return await super().execute(call)


class InProcess:
    """One service on a directory. `request` is synchronous; the service runs while a request
    does.
    """

    def __init__(
        self,
        directory: Path,
        *,
        secrets: Secrets | None = None,
        embedder: Any = None,
        **overrides: Any,
    ):
        self.registry = serve_app.registry()
        basics = {
            "billing__default_tier": "enterprise",
            "auth__register_per_minute": 0,
            "auth__login_per_minute": 0,
        }
        self.settings = settings(**{"data_dir": str(directory), **basics, **overrides})
        self.secrets = secrets or Secrets.generate()
        self.embedder = embedder or WordEmbedder()
        self._runner = asyncio.Runner()
        identity = Identity("", 0, 1, 4096, FORMAT_VERSION)
        readers = load_transcriber(self.settings), load_recogniser(self.settings)
        self.models = models = Models(self.embedder, load_language_model(self.settings), *readers)
        self.shard = Shard(directory, self.registry, self.settings, models, identity, self.secrets)
        self._runner.run(self.shard.open(create=True))
        Layout.load_or_create(directory, 1)
        self.table = PlacementTable(directory)
        self.shards = FaultyShards([self.shard], table=self.table)
        self.application = build_asgi(
            self.registry, self.settings, self.shards, self.secrets, Telemetry(), models=models
        )
        forgetful = CookieJar(
            DefaultCookiePolicy(allowed_domains=[])
        )  # a request brings what the test says and nothing else
        transport = httpx.ASGITransport(self.application)
        self.client = httpx.AsyncClient(
            transport=transport, base_url="http://mneme.test", cookies=forgetful
        )

    def close(self) -> None:
        self._runner.run(self.client.aclose())
        self._runner.run(self.shard.close())
        self._runner.run(self.models.close())
        self._runner.close()

    def request(
        self, method: str, path: str, body: Any = None, *, who: str | None = None, **headers: str
    ) -> httpx.Response:
        """`body` becomes JSON, bytes are sent as they are; `who` is the credential; header names
        are written with underscores.
        """
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if who is not None:
            sent["Authorization"] = f"Bearer {who}"
        content = (
            {"content": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        )
        return self._runner.run(self.client.request(method, path, headers=sent, **content))

    def upload(
        self,
        filename: str,
        content: bytes,
        *,
        who: str,
        headers: dict[str, str] | None = None,
        content_type: str | None = None,
        **fields: str,
    ) -> httpx.Response:
        """POST /v1/documents/upload with these form fields; content_type: what the file's part says
        that it is.
        """
        sent = {**(headers or {}), "Authorization": f"Bearer {who}"}
        file = (filename, content, content_type) if content_type else (filename, content)
        form = {"files": {"file": file}, "data": fields, "headers": sent}
        return self._runner.run(self.client.post("/v1/documents/upload", **form))

    def processed(
        self, filename: str, content: bytes, *, who: str, **fields: str
    ) -> dict[str, Any]:
        """The document of this upload, once it is completed or failed."""
        return self._ended(self.upload(filename, content, who=who, **fields), who)

    def ingested(self, body: dict[str, Any], *, who: str) -> dict[str, Any]:
        """The result of POST /v1/memories/process, once its job is completed. The first one of a
        process loads dictionaries, which on a busy machine takes longer than a request may wait.
        """
        path = "/v1/memories/process"
        job = self._ended(self.request("POST", path, body, who=who, Prefer="wait=30"), who)
        assert job["status"] == "completed", job
        return job["result"]

    def _ended(self, begun: httpx.Response, who: str) -> dict[str, Any]:
        """What this answer's status_url says, once it is completed or failed."""
        assert begun.status_code in (200, 202), begun.text
        url = begun.json()["status_url"]
        self.until(
            lambda: self.request("GET", url, who=who).json()["status"] in ("completed", "failed")
        )
        return self.request("GET", url, who=who).json()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Something else in the service's loop."""
        return self._runner.run(work)

    def status(self) -> dict[str, Any]:
        """What the shard says of itself."""
        return self.run(self.shard.status())

    def log(self) -> dict[str, Any]:
        """What the shard says of its log in object storage."""
        return self.status()["log"]

    def settle(self) -> None:
        """Run the background jobs until none is left."""
        self.until(lambda: self.status()["jobs_waiting"] == 0)

    def until(self, done: Callable[[], bool]) -> None:
        """Let the service run until the condition holds."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not done():
            assert time.monotonic() < deadline, "the condition did not come true"
            self._runner.run(asyncio.sleep(POLL_SECONDS))

    def register(self, email: str) -> str:
        """A new account's access token."""
        answer = self.request(
            "POST",
            "/v1/auth/register",
            {"email": email, "password": PASSWORD, "full_name": "Ada Lovelace"},
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["access_token"]

    def mint(self, token: str, *scopes: str) -> dict[str, Any]:
        """A new API key with these scopes: its id, its text (`key`) and the rest."""
        answer = self.request(
            "POST", "/v1/auth/api-keys", {"name": "of a test", "scopes": scopes}, who=token
        )
        assert answer.status_code == 201, answer.text
        return answer.json()


@contextmanager
def in_process(directory: Path, **overrides: Any) -> Iterator[InProcess]:
    service = InProcess(directory, **overrides)
    try:
        yield service
    finally:
        service.close()
