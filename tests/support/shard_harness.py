"""Drives operations against a real shard in a directory of the test's own, the way the gateway
would.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from runtime.api.operation import Call, Reply
from runtime.api.plugin import Plugin
from runtime.errors import ApiError
from runtime.http.credentials import read_authorization
from runtime.inference import Models
from runtime.installation import FORMAT_VERSION, Secrets
from runtime.shard import Shard, auth
from serve_app import Settings
from storage.store import Identity, Scope
from tests.support.registry import registry_of

CHEAP = {
    "billing": {"default_tier": "enterprise"},
    "auth": {
        "argon2_time_cost": 1,
        "argon2_memory_kib": 64,
        "register_per_minute": 0,
        "login_per_minute": 0,
        "failed_login_wait_seconds_max": 0,
    },
    "limits": {"requests_per_minute": 0, "endpoint_caps": False},
    "graph": {"reading_share": 1},
}
JOBS_SECONDS_MAX = 60


@dataclass(frozen=True)
class Answer:
    """A reply with its JSON body decoded."""

    status: int
    body: Any
    headers: dict[str, str]


class ShardHarness:
    """One shard that owns all slots, with the given plugins, and a clock that moves by a
    millisecond with each call.

    The clock starts a minute ago: jobs, which go by the real one, find every delay of theirs
    already over. `models` may stay None where no plugin asks a model.
    """

    def __init__(
        self,
        directory: Path,
        plugins: Iterable[Plugin],
        models: Models | None = None,
        settings: Settings | None = None,
        secrets: Secrets | None = None,
    ):
        self.settings = settings or Settings.load(CHEAP, {"data_dir": str(directory)})
        self.secrets = secrets or Secrets.generate()
        self.registry = registry_of(plugins)
        self.now_ms = int(time.time() * 1000) - 60_000
        self._seeds = 0
        self._runner = asyncio.Runner()
        self._directory = directory
        self._models = models
        self.open(create=True)

    def open(self, *, create: bool) -> None:
        identity = Identity("", 0, 1, 4096, FORMAT_VERSION)
        self.shard = Shard(
            self._directory, self.registry, self.settings, self._models, identity, self.secrets
        )
        self._runner.run(self.shard.open(create=create))

    def close(self) -> None:
        self._runner.run(self.shard.close())
        self._runner.close()

    def reopen(self) -> None:
        """Close the shard and open its directory again."""
        self._runner.run(self.shard.close())
        self.open(create=False)

    def ask(self, models: Models | None) -> None:
        """Have the open shard ask these models from now on."""
        self.shard.parts.models = self.shard.reads.prepared.models = models

    def __call__(
        self,
        operation: str,
        body: Any = None,
        *,
        who: str | None = None,
        key: str | None = None,
        query: Any = None,
        **path: str,
    ) -> Answer:
        """Execute one operation: `who` is the bearer credential, `key` the Idempotency-Key."""
        return self.together([self.form(operation, body, who=who, key=key, query=query, **path)])[0]

    def together(self, calls: list[Call | ApiError]) -> list[Answer]:
        """Execute calls at the same time."""
        return [answer_of(reply) for reply in self.replies(calls)]

    def replies(self, calls: list[Call | ApiError]) -> list[Reply]:
        """Execute calls at the same time; their replies as the gateway gets them."""
        return self._runner.run(self._together(calls))

    def status(self) -> dict[str, Any]:
        """What the shard says of itself."""
        return self._runner.run(self.shard.status())

    async def _together(self, calls: list[Call | ApiError]) -> list[Reply]:
        return await asyncio.gather(*(self._reply(call) for call in calls))

    async def _reply(self, call: Call | ApiError) -> Reply:
        return (
            Reply(call.status, error=call)
            if isinstance(call, ApiError)
            else await self.shard.execute(call)
        )

    def form(
        self,
        operation: str,
        body: Any = None,
        *,
        who: str | None = None,
        key: str | None = None,
        query: Any = None,
        **path: str,
    ) -> Call | ApiError:
        """The Call a gateway would make of this request, or the error it would answer itself."""
        declared = self.registry.operations[operation]
        self.now_ms += 1
        self._seeds += 1
        credential, slot = None, 0
        if declared.scope != "public" or declared.internal:
            try:
                credential, slot = read_authorization(
                    None if who is None else f"Bearer {who}", self.secrets, self.now_ms
                )
                if declared.internal:
                    auth.authorise_operator(credential)
            except ApiError as refused:
                return refused
        parsed = None if declared.body is None else declared.body.model_validate(body)
        return Call(
            operation=operation,
            slot=declared.slot_of(parsed) if declared.slot_of else slot,
            now_ms=self.now_ms,
            seed=hashlib.sha256(self._seeds.to_bytes(8, "big")).digest(),
            request_id=f"test-{self._seeds}",
            credential=credential,
            body=parsed,
            query=None if declared.query is None else declared.query.model_validate(query or {}),
            path=path,
            idempotency_key=key,
            fingerprint=hashlib.sha256(orjson.dumps([operation, path, query, body])).digest()
            if key
            else b"",
        )

    def settle(self) -> None:
        """Run the background jobs until none is left."""
        self._runner.run(self._idle())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Something else in the shard's loop, such as closing a model."""
        return self._runner.run(work)

    def breathe(self) -> None:
        """Let the background jobs run for a moment."""
        self._runner.run(asyncio.sleep(0.002))

    def until(self, done: Callable[[], bool]) -> None:
        """Let the shard run until the condition holds."""
        deadline = time.monotonic() + JOBS_SECONDS_MAX
        while not done():
            assert time.monotonic() < deadline, "the condition did not come true"
            self._runner.run(asyncio.sleep(0.01))

    async def _idle(self) -> None:
        async with asyncio.timeout(JOBS_SECONDS_MAX):
            while (await self.shard.status())["jobs_waiting"]:
                await asyncio.sleep(0.002)

    def register(self, email: str = "ada@example.com", full_name: str = "Ada Lovelace") -> str:
        """A new account's access token."""
        answer = self(
            "auth.register", {"email": email, "password": "correct horse", "full_name": full_name}
        )
        assert answer.status == 201, answer
        return answer.body["access_token"]

    def scope_of(self, token: str) -> Scope:
        """Where the rows of an access token's tenant live."""
        credential, slot = read_authorization(f"Bearer {token}", self.secrets, self.now_ms)
        with self.shard.store.snapshot() as snapshot:
            return auth.resolve(snapshot, slot, credential, self.now_ms, self.secrets)[1]


def answer_of(reply: Reply) -> Answer:
    if reply.error is not None:
        error = reply.error
        return Answer(
            error.status,
            {
                "code": error.code,
                "param": error.param,
                "message": error.message,
                "details": error.details,
            },
            error.headers,
        )
    return Answer(
        reply.status, None if reply.body is None else orjson.loads(reply.body), reply.headers
    )
