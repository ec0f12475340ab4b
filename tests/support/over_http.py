"""The whole service on a port of its own, in a thread of the test's process: for clients that need
a socket, such as `openai`.

The shard, the gateway and the language model are real; embeddings are those of
tests/support/embedding.py.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import serve_app
from runtime.api.plugin import Plugin
from runtime.cluster import LocalShards
from runtime.http import build_asgi
from runtime.inference import Models, load_language_model
from runtime.installation import Secrets
from runtime.shard import Shard
from runtime.telemetry import Telemetry
from storage.store import Identity
from tests.support.embedding import WordEmbedder
from tests.support.in_process import PASSWORD
from tests.support.registry import registry_of
from tests.support.worlds import settings

WAIT_SECONDS_MAX = 60


class OverHttp:
    """url: the service's address, without /v1. `http` is a client of it; `calls` notes what reached
    the shards.
    """

    def __init__(self, directory: Path, plugins: Iterable[Plugin] | None, **overrides: Any):
        self.registry = serve_app.registry() if plugins is None else registry_of(plugins)
        self.settings = settings(
            **{
                "billing__default_tier": "enterprise",
                "auth__register_per_minute": 0,
                "auth__login_per_minute": 0,
                **overrides,
            }
        )
        self.secrets = Secrets.generate()
        self.embedder = WordEmbedder()
        self.directory = directory
        self._listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(512)
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._started.wait(WAIT_SECONDS_MAX)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.http = httpx.Client(base_url=self.url, timeout=WAIT_SECONDS_MAX)

    async def _serve(self) -> None:
        models = Models(self.embedder, load_language_model(self.settings))
        self.shard = Shard(
            self.directory,
            self.registry,
            self.settings,
            models,
            Identity("", 0, 1, 4096, 1),
            self.secrets,
        )
        await self.shard.open(create=True)
        shards = LocalShards([self.shard])
        application = build_asgi(
            self.registry, self.settings, shards, self.secrets, Telemetry(), models=models
        )
        self._server = uvicorn.Server(
            uvicorn.Config(application, log_config=None, proxy_headers=False, http="httptools")
        )
        self._loop = asyncio.get_running_loop()
        self._started.set()
        await self._server.serve(sockets=[self._listening])
        await self.shard.close()
        await models.close()

    def run(self, work: Any) -> Any:
        """Run a coroutine in the service's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS_MAX)

    def until(self, done: Callable[[], Any]) -> None:
        """Wait until the condition holds."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not done():
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.005)

    def settle(self) -> None:
        """Until no job waits."""

        async def idle() -> None:
            while (await self.shard.status())["jobs_waiting"]:
                await asyncio.sleep(0.002)

        self.run(idle())

    def register(self, email: str = "ada@example.com") -> str:
        """A new account's access token."""
        answer = self.http.post(
            "/v1/auth/register",
            json={"email": email, "password": PASSWORD, "full_name": "Ada Lovelace"},
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["access_token"]

    def post(self, path: str, body: Any, who: str, **headers: str) -> httpx.Response:
        sent = {
            "Authorization": f"Bearer {who}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return self.http.post(path, json=body, headers=sent)

    def get(self, path: str, who: str) -> httpx.Response:
        return self.http.get(path, headers={"Authorization": f"Bearer {who}"})

    def remember(self, who: str, *contents: str, **fields: Any) -> list[str]:
        """Store memories, searchable; -> their ids."""
        made = []
        for content in contents:
            answer = self.post(
                "/v1/memories", {"content": content, "wait_for_index": True, **fields}, who
            )
            assert answer.status_code == 201, answer.text
            made.append(answer.json()["id"])
        return made

    def close(self) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()


@contextmanager
def over_http(
    directory: Path, plugins: Iterable[Plugin] | None = None, **overrides: Any
) -> Iterator[OverHttp]:
    service = OverHttp(directory, plugins, **overrides)
    try:
        yield service
    finally:
        service.close()
