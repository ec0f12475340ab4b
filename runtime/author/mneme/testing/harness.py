"""A whole service in the test's own process: every built-in plugin and those of the test, the real
gateway and a real shard in a directory, reached over HTTP without a socket.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import httpx
import numpy as np

from runtime.api.call import Principal
from runtime.api.plugin import Plugin, Registry, sections_of
from runtime.cluster import LocalShards
from runtime.http import build_asgi, read_authorization
from runtime.inference import Embedding, Models, language
from runtime.installation import FORMAT_VERSION, Layout, Secrets
from runtime.placement import PlacementTable
from runtime.settings import composed, tiers_with
from runtime.shard import CORE_INDEXES, CORE_TABLES, Shard, resolve
from runtime.telemetry import Telemetry
from storage.store import Identity, Scope

# What a test has no use for: limits, and passwords that take long to check.
CHEAP: Mapping[str, Any] = {
    "billing.default_tier": "enterprise",
    "auth.argon2_time_cost": 1,
    "auth.argon2_memory_kib": 64,
    "auth.register_per_minute": 0,
    "auth.login_per_minute": 0,
    "limits.requests_per_minute": 0,
    "limits.endpoint_caps": False,
}
JOBS_SECONDS_MAX = 60
POLL_SECONDS = 0.002
WIDTH = 64
PASSWORD = "correct horse battery staple"


class WordEmbedder:
    """An embedder that takes no time: texts that share words are near each other."""

    space = f"words/{WIDTH}"
    width = WIDTH

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.lower().split() or [""]:
                row[zlib.crc32(word.strip(".,;:!?").encode()) % WIDTH] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    async def embed_words(
        self, texts: Sequence[str], words: Sequence[Any], *, is_query: bool = False
    ) -> list[Embedding]:
        return [Embedding(vector, None) for vector in await self.embed(texts)]

    async def read_language(self, texts: Sequence[str]) -> list[language.Reading]:
        return [language.unread(text) for text in texts]

    async def embed_read(
        self, texts: Sequence[str], words: Sequence[Any]
    ) -> list[tuple[Embedding, language.Reading]]:
        embeddings = await self.embed_words(texts, words)
        return list(zip(embeddings, await self.read_language(texts), strict=True))

    def makes(self, space: str) -> bool:
        return space == self.space

    def knows(self, word: str) -> bool:
        return True

    def spellings(self, word: str) -> list[str]:
        return []

    def slips_undone(self, word: str) -> dict[str, float]:
        return {}

    def readable(self, text: str) -> str:
        return text

    @property
    def words_of_one_language(self) -> bool:
        return False

    def taught(self, language: str) -> bool:
        return True

    def yield_to_reads(self, reads_wait: bool) -> None:
        """Ignore it: this one takes no time."""

    def stats(self) -> dict[str, float]:
        return {}

    async def close(self) -> None:
        """Do nothing: it holds nothing."""


class Harness:
    """One service with these plugins beside the built-in ones. The service runs while a request
    does, and while `settle` or `until` waits.

    settings  dotted name -> value, over settings without limits
    """

    def __init__(
        self, directory: Path, *plugins: Plugin, settings: Mapping[str, Any] | None = None
    ):
        everything = (*import_module("serve_app").PLUGINS, *plugins)
        self.registry = Registry.build(
            everything, core_tables=CORE_TABLES, core_indexes=CORE_INDEXES
        )
        given = {**CHEAP, **(settings or {}), "data_dir": str(directory)}
        tiers = tiers_with(kept for plugin in everything for kept in plugin.keeps)
        sections = {**sections_of(everything), "tiers": tiers}
        self.settings = composed(sections).load(None, given)
        self.secrets = Secrets.generate()
        loaded = {name: load(self.settings) for name, load in self.registry.models.items()}
        models = Models(WordEmbedder(), of_plugins=loaded)
        identity = Identity("", 0, 1, 4096, FORMAT_VERSION)
        self._runner = asyncio.Runner()
        self.shard = Shard(directory, self.registry, self.settings, models, identity, self.secrets)
        self._runner.run(self.shard.open(create=True))
        Layout.load_or_create(directory, 1)
        shards = LocalShards([self.shard], table=PlacementTable(directory))
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(
                build_asgi(
                    self.registry, self.settings, shards, self.secrets, Telemetry(), models=models
                )
            ),
            base_url="http://mneme.test",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.run(self.shard.close())
        self._runner.close()

    def register(self, email: str = "ada@example.com") -> str:
        """A new account; -> its access token."""
        answer = self.request(
            "POST",
            "/v1/auth/register",
            {"email": email, "password": PASSWORD, "full_name": "Ada Lovelace"},
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["access_token"]

    def request(
        self, method: str, path: str, body: Any = None, *, who: str | None = None, **headers: str
    ) -> httpx.Response:
        """One request. body: JSON; who: the credential, an access token or an API key; header names
        are written with underscores.
        """
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if who is not None:
            sent["Authorization"] = f"Bearer {who}"
        content: dict[str, Any] = {} if body is None else {"json": body}
        return self._runner.run(self._client.request(method, path, headers=sent, **content))

    def settle(self) -> None:
        """Run the background jobs until none waits."""
        self.until(lambda: self._runner.run(self.shard.status())["jobs_waiting"] == 0)

    def until(self, done: Callable[[], bool]) -> None:
        """Let the service run until the condition holds. Raises TimeoutError after a minute."""
        deadline = time.monotonic() + JOBS_SECONDS_MAX
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError("the condition did not come true")
            self._runner.run(asyncio.sleep(POLL_SECONDS))

    def account_of(self, token: str) -> tuple[Principal, Scope]:
        """Who an access token speaks for, and where the rows of that account live."""
        now_ms = int(time.time() * 1000)
        credential, slot = read_authorization(f"Bearer {token}", self.secrets, now_ms)
        with self.shard.store.snapshot() as snapshot:
            return resolve(snapshot, slot, credential, now_ms, self.secrets)
