"""Real shards for tests: a directory, a registry, an account, and calls through the whole pipeline without HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
import types
from pathlib import Path
from typing import Any

import orjson

from runtime import auth, ids
from runtime.inference import Models
from runtime.operation import Call, Credential, Reply
from runtime.placement import slot_of_email
from runtime.plugin import Plugin, Registry
from runtime.secrets import Secrets
from runtime.settings import Settings
from runtime.shard import CORE_INDEXES, CORE_TABLES, Shard
from storage.table import Identity
from tests.plugins.embedding import WordEmbedder

ROOT = Path(__file__).resolve().parent.parent
SECRETS = Secrets(service=b"s" * 32, pepper=b"p" * 32, operator_token="operator-token-of-the-tests-0123456789")
FAST = {"auth.argon2_time_cost": 1, "auth.argon2_memory_kib": 64, "limits.requests_per_minute": 0, "limits.endpoint_caps": False, "storage.map_bytes": 16 << 20}


def settings(**overrides: Any) -> Settings:
    """Test settings with dotted overrides, written with two underscores: settings(write__ready_wait_ms=0)."""
    values = {**FAST, **{name.replace("__", "."): value for name, value in overrides.items()}}
    return Settings.load(None, [f"{name}={value}" for name, value in values.items()], {})


def example_plugin() -> Plugin:
    """The plugin of PLUGINS.md, exactly as printed there."""
    source = re.search(r"```python\n(.*?)```", (ROOT / "PLUGINS.md").read_text(), re.DOTALL)[1]
    module = types.ModuleType("example_bookmarks")
    sys.modules[module.__name__] = module
    exec(compile(source, "PLUGINS.md", "exec"), module.__dict__)
    return module.plugin


def registry_of(*plugins: Plugin) -> Registry:
    return Registry.build(plugins, core_tables=CORE_TABLES, core_indexes=CORE_INDEXES)


class World:
    """One shard on a directory. `async with World(path, registry) as world:` then `await world.call(...)`.

    An account is put straight into the auth tables, so worlds without the accounts plugin have one too.
    """

    def __init__(self, directory: Path, registry: Registry, **overrides: Any):
        self.registry = registry
        self.directory = directory
        self.settings = settings(**overrides)
        self.embedder = WordEmbedder()
        self.clock_ms: int | None = None
        self.email = "tester@example.com"

    async def __aenter__(self) -> World:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shard.close()

    async def open(self) -> None:
        models = Models(embedder=self.embedder)
        self.shard = Shard(self.directory, self.registry, self.settings, models, Identity("", 0, 1, 4096, 1), SECRETS)
        await self.shard.open(create=True)
        self.key = self.account(self.email)

    async def reopen(self) -> None:
        """Close in order and open the same directory again."""
        await self.shard.close()
        await self.open()

    def account(self, email: str, scopes: tuple[str, ...] = ("admin",), tier: str = "enterprise") -> Credential:
        """The credential of an account with an API key of these scopes; the account is made when it is new."""
        slot = slot_of_email(email)
        digest = ids.api_key_digest(SECRETS.pepper, email + ",".join(scopes))

        def work(transaction: Any) -> None:
            place = auth.Scope(slot, 0)
            tenants = transaction.bind(auth.TENANTS, place)
            number = next((key[0] for key, row in tenants.scan() if row.email == email), None)
            if number is None:
                number = tenants.count() + 1
                tenant_id = ids.make_id("usr", 1_700_000_000_000, b"\0\0\0\0", (email.encode() * 10)[:10])
                tag = ids.tenant_tag(SECRETS.service, tenant_id)
                key = (email.encode() * 32)[:32]
                row = auth.TenantRow(number, tenant_id, tag, key, email, "Tester", "", tier, 1_700_000_000_000)
                tenants.put((number,), row)
            transaction.bind(auth.CREDENTIALS, place).put((digest,), auth.CredentialRow("key_" + "0" * 32, number, scopes))

        self.shard.store.write(work)
        return Credential("key", digest=digest)

    async def call(self, operation: str, body: Any = None, *, credential: Credential | None = None, email: str | None = None, **fields: Any) -> Reply:
        """Validate and execute, as the gateway would. body and query are plain dicts."""
        declared = self.registry.operations[operation]
        query = fields.pop("query", {})
        call = Call(
            operation=operation,
            slot=slot_of_email(email or self.email),
            now_ms=fields.pop("now_ms", None) or self.clock_ms or int(time.time() * 1000),
            seed=os.urandom(32),
            request_id="test",
            credential=credential or self.key,
            body=declared.body.model_validate(body or {}) if declared.body else None,
            query=declared.query.model_validate(query) if declared.query else None,
            **fields,
        )
        if call.idempotency_key is not None:
            call.fingerprint = ids.hashlib.sha256(orjson.dumps([operation, body, call.path, query], option=orjson.OPT_SORT_KEYS)).digest()
        return await self.shard.execute(call)

    async def ok(self, operation: str, body: Any = None, **fields: Any) -> Any:
        """The decoded body of a call that must succeed."""
        reply = await self.call(operation, body, **fields)
        if reply.error is not None:
            raise reply.error
        return orjson.loads(reply.body) if reply.body else None

    async def idle(self) -> None:
        """Wait until no job is queued or running."""
        async with asyncio.timeout(10):
            while self.shard._jobs.depth:
                await asyncio.sleep(0.005)
