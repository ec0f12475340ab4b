"""Several real shards in the test's own process, one gateway before them, and the placement of a
real data directory; reader processes beside each shard where they are asked for.

Everything is asynchronous, so that requests and moves overlap as they do in a service.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

import serve_app
from runtime.cluster import LocalShards, ReaderProcesses
from runtime.http import build_asgi
from runtime.inference import Models, load_language_model
from runtime.installation import (
    Layout,
    Secrets,
    make_shared_layout,
    shard_directory,
    shard_place,
    shared_objects,
)
from runtime.placement import PlacementTable, SlotGate
from runtime.shard import Shard, verification
from runtime.telemetry import Telemetry
from runtime.tenancy import slot_of_email
from storage.replication import ObjectStore, restore
from tests.support.embedding import WordEmbedder
from tests.support.in_process import PASSWORD
from tests.support.leases import waited_out
from tests.support.reading import OPENER
from tests.support.worlds import settings

WAIT_SECONDS_MAX = 120


class Sharded:
    """See the module docstring. `restart` opens a shard again as its next process would, from its
    directory. reading: by shard, its reader processes.
    """

    def __init__(self, data_dir: Path, shards: int, readers: int = 0, **overrides: Any):
        basics = {
            "billing__default_tier": "enterprise",
            "auth__register_per_minute": 0,
            "auth__login_per_minute": 0,
        }
        self.settings = settings(
            **{"data_dir": str(data_dir), "limits__endpoint_caps": False, **basics, **overrides}
        )
        self.layout = Layout.load_or_create(data_dir, shards)
        self._readers = readers
        self.reading: dict[int, ReaderProcesses] = {}
        self.table = PlacementTable(data_dir)
        self.secrets = Secrets.load(data_dir / "secrets", create=True)
        self.models = Models(WordEmbedder(), load_language_model(self.settings))
        self.opened: list[Shard] = []
        self.shards = LocalShards(self.opened, table=self.table)

    async def open(self) -> None:
        for number in range(len(self.table.load().shards)):
            self.opened.append(await self._open(number, create=True))
        registry = serve_app.registry()
        self.application = build_asgi(
            registry, self.settings, self.shards, self.secrets, Telemetry(), models=self.models
        )
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.application),
            base_url="http://mneme.test",
            timeout=60,
        )

    async def close(self) -> None:
        await self.http.aclose()
        await self.shards.drain()
        await self.shards.close()
        await self.models.close()

    async def restart(self, number: int) -> None:
        await self.opened[number].close()
        self.opened[number] = await self._open(number, create=False)

    async def lose(self, number: int) -> None:
        """Lose a shard's machine: what is not in object storage by now is gone. Another machine
        goes on from there.
        """
        lost = self.opened[number]
        lost.parts.durability.shipper.fenced = True  # nothing of it arrives any more
        await lost.close()
        shutil.rmtree(lost.directory)
        place = ObjectStore(self.settings.object_store.url).below(
            shard_place(self.layout.cluster_id, number)
        )
        with waited_out():
            await asyncio.to_thread(restore, place, lost.directory, take_over=True, owner="a test")
        self.opened[number] = await self._open(number, create=False)

    async def _open(self, number: int, *, create: bool) -> Shard:
        directory, registry = shard_directory(self.settings.data_dir, number), serve_app.registry()
        gate = SlotGate(number, self.table)
        shard = Shard(
            directory,
            registry,
            self.settings,
            self.models,
            self.layout.identity(number),
            self.secrets,
            gate,
            readers=self._read_beside(number),
        )
        await shard.open(create=create)
        return shard

    def _read_beside(self, number: int) -> ReaderProcesses | None:
        if not self._readers:
            return None
        made = ReaderProcesses(self.settings, number, OPENER, self._readers)
        self.reading[number] = made
        return made

    async def call(
        self, method: str, path: str, body: Any = None, *, who: str | None = None, **headers: str
    ) -> httpx.Response:
        """Header names are written with underscores."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if who is not None:
            sent["Authorization"] = f"Bearer {who}"
        return await self.http.request(
            method, path, headers=sent, **({} if body is None else {"json": body})
        )

    async def operate(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """An internal request that succeeds."""
        answer = await self.call(
            method, f"/v1/internal/cluster{path}", body, who=self.secrets.operator_token
        )
        assert answer.is_success, answer.text
        return answer.json()

    async def register(self, email: str) -> str:
        """A new account's access token."""
        answer = await self.call(
            "POST", "/v1/auth/register", {"email": email, "password": PASSWORD, "full_name": "Ada"}
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["access_token"]

    async def remember(self, who: str, text: str, **headers: str) -> httpx.Response:
        return await self.call(
            "POST",
            "/v1/memories",
            {"messages": [{"role": "user", "content": text}]},
            who=who,
            **headers,
        )

    async def texts(self, who: str) -> list[str]:
        """What the account remembers, newest first, page by page."""
        found, cursor = [], None
        while True:
            answer = await self.call(
                "GET", "/v1/memories?limit=100" + (f"&cursor={cursor}" if cursor else ""), who=who
            )
            assert answer.status_code == 200, answer.text
            page = answer.json()
            found += [memory["content"] for memory in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    async def until(self, done: Callable[[], Any]) -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while not done():
                await asyncio.sleep(0.005)

    async def figures(self, number: int) -> dict[str, Any]:
        """What a shard says of itself."""
        return await self.opened[number].status()

    async def until_all(self, done: Callable[[dict[str, Any]], bool], *numbers: int) -> None:
        """Wait until the condition holds of what these shards say of themselves, or all of them."""
        for number in numbers or range(len(self.opened)):
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                while not done(await self.figures(number)):
                    await asyncio.sleep(0.005)

    async def idle(self, *numbers: int) -> None:
        """Wait until no job of these shards, or of any, is under way or soon due."""
        await self.until_all(lambda figures: figures["jobs_waiting"] == 0, *numbers)

    async def shipped(self) -> None:
        """Wait until object storage has every shard whole."""
        await self.until_all(lambda figures: figures["log"]["complete"])

    async def moved(self) -> None:
        """Wait until no move is left."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while self.table.load().moves:
                await asyncio.sleep(0.02)

    def rows(self, number: int, slot: int) -> dict[str, list[tuple[Any, bytes]]]:
        """Every row of a slot in a shard's store, opened: table -> [((tenant, key …), bytes)]."""
        found: dict[str, list[tuple[Any, bytes]]] = {}
        tables = serve_app.registry().tables.values()
        with self.opened[number].store.snapshot() as snapshot:
            scopes = list(snapshot.scopes(slot))
            for scope in scopes:
                for table in tables:
                    if table.level == "slot" and scope.tenant:
                        continue
                    bound = snapshot.bind(table, scope)
                    for key in list(bound.keys()):
                        raw = bound.get_raw(*key)
                        found.setdefault(table.name, []).append(
                            ((scope.tenant, *key), raw[8:] if table.stamped else raw)
                        )
        return found

    def findings(self, number: int) -> list[str]:
        """What verification finds wrong in a shard."""
        shard = self.opened[number]
        found = []
        with shard.store.snapshot() as snapshot:
            for account in verification.accounts(snapshot):
                found += [
                    str(each)
                    for each in verification.examine(
                        snapshot, shard.environment, account, shard.parts.now_ms()
                    )
                ]
        return found


class Apart(Sharded):
    """The last shard lies on another machine, whose data directory is its own; what both know is in
    the object store.
    """

    def __init__(self, data_dir: Path, shards: int, **overrides: Any):
        super().__init__(data_dir, shards, **overrides)
        cluster = self.settings.cluster.model_copy(update={"name": self.layout.cluster_id})
        self.settings = self.settings.model_copy(update={"cluster": cluster})
        make_shared_layout(shared_objects(self.settings), self.layout.cluster_id, shards)
        self.table = PlacementTable.of(self.settings)
        self.shards = LocalShards(self.opened, table=self.table)

    async def _open(self, number: int, *, create: bool) -> Shard:
        here = self.settings
        if number == self.layout.shards - 1:
            self.settings = here.model_copy(
                update={"data_dir": here.data_dir.with_name("elsewhere")}
            )
        try:
            return await super()._open(number, create=create)
        finally:
            self.settings = here


@asynccontextmanager
async def sharded(
    data_dir: Path, shards: int = 2, kind: type[Sharded] = Sharded, **overrides: Any
) -> AsyncIterator[Sharded]:
    service = kind(data_dir, shards, **overrides)
    await service.open()
    try:
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def shipping(
    directory: Path, mode: str, kind: type[Sharded] = Sharded
) -> AsyncIterator[Sharded]:
    """Two shards with an object store, each with its first snapshot."""
    options = {
        "object_store__url": f"file://{directory}/objects",
        "durability__mode": mode,
        "durability__wait_seconds_max": 30,
    }
    async with sharded(directory / "data", kind=kind, **options) as service:
        service.layout.completed(directory / "data")
        await service.shipped()
        yield service


def has_once(service: Sharded, slot: int) -> bool:
    """Whether the slot's rows are at its owner, nowhere else, and agree with themselves."""
    owner = service.table.load().owners[slot]
    return (
        bool(service.rows(owner, slot))
        and not service.rows(1 - owner, slot)
        and not service.findings(owner)
    )


def emails(shard: int, shards: int, count: int) -> list[str]:
    """Addresses of accounts that the even placement gives to a shard, each in a slot of its own."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < count:
        email = f"user{number}@example.com"
        slot = slot_of_email(email)
        if slot * shards // 4096 == shard:
            found.setdefault(slot, email)
        number += 1
    return list(found.values())


class Steps:
    """How a supervisor reaches its shards in a test, one step after another: at the one with number
    `at`, `fault` happens.
    """

    def __init__(self, service: Sharded, at: int, fault: str):
        self.service, self.at, self.fault = service, at, fault
        self.steps: list[str] = []

    def is_here(self, step: str) -> bool:
        """Take note of a step; -> whether it is the one."""
        self.steps.append(step)
        return len(self.steps) == self.at + 1
