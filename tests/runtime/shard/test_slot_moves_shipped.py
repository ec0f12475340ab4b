"""Slots that move between shards which ship their logs: whatever is lost on the way, object storage
has each tenant once, and whole.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import runtime.shard.durability
from runtime.cli.recovery import restore_installation
from runtime.cluster import supervisor as cluster_supervisor
from runtime.cluster.supervisor import Supervisor
from runtime.errors import Unavailable
from runtime.limits import SLOTS
from runtime.placement import COPYING, ERASING, PlacementError
from runtime.shard import durability
from runtime.shard.slot_moves import MoveRefused
from runtime.tenancy import slot_of_email
from storage.replication import (
    ObjectStore,
    ObjectStoreFailed,
    RestoreFailed,
    shipper,
    snapshots,
)
from tests.support.clocks import next_millisecond
from tests.support.commands import admin
from tests.support.leases import waited_out
from tests.support.sharded import Apart, Sharded, Steps, emails, has_once, sharded, shipping
from tests.support.worlds import settings

WAIT_SECONDS = 0.4
FAILS, TWICE = "store fails", "store is slow and answers twice"


class Weather:
    """What the object stores of this process are like at the moment. Whoever holds `still` sees one
    moment of them.
    """

    fault = ""
    still = threading.Lock()
    chance = random.Random(7)

    @classmethod
    @contextmanager
    def of(cls, fault: str) -> Iterator[None]:
        cls.fault = fault
        try:
            yield
        finally:
            cls.fault = ""


class Weathered(ObjectStore):
    def _call(self, verb: Any, path: Any, *arguments: Any, **options: Any) -> Any:
        if Weather.fault == TWICE:
            time.sleep(0.02)
        if Weather.fault == FAILS:
            raise ObjectStoreFailed("the request was lost")
        with Weather.still:
            answer = super()._call(verb, path, *arguments, **options)
        if Weather.fault == TWICE and Weather.chance.random() < 0.5:
            raise ObjectStoreFailed("the answer was lost")
        return answer


@pytest.fixture(autouse=True)
def weather(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.shard.durability, "ObjectStore", Weathered)
    monkeypatch.setattr(shipper, "BACKOFF_SECONDS_MAX", 0.1)
    monkeypatch.setattr(snapshots, "RETRY_SECONDS_MAX", 0.2)
    monkeypatch.setattr(cluster_supervisor, "MOVE_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(
        durability, "BLOB_COPIES_PAUSE_SECONDS", 3_600
    )  # what a move has to wait for does not happen by itself


@asynccontextmanager
async def restored(
    service: Sharded, directory: Path, at: int | None = None, **options: Any
) -> AsyncIterator[Sharded]:
    """The installation as object storage has it at the moment, or had it at a time, with the moves
    that were under way at their end.

    options  of the restored one, which goes on as the owner when an object store is among them
    """
    shutil.copytree(service.settings.data_dir / "secrets", directory / "secrets")
    given = settings(data_dir=str(directory), object_store__url=service.settings.object_store.url)
    with waited_out():
        await asyncio.to_thread(
            restore_installation,
            given,
            cluster_id=None,
            at=at,
            take_over=bool(options),
            report=lambda *_: None,
        )
    async with sharded(directory, **options) as found:
        await found.operate("GET", "")
        await found.moved()
        yield found


class Stepwise(Steps):
    """How a supervisor reaches its shards in a test: at one of its steps, something goes wrong."""

    async def ask(self, number: int, step: str, *given: Any) -> Any:
        here = self.is_here(step)
        if here and self.fault.startswith("lost"):
            (move,) = self.service.table.load().moves
            await self.service.lose(move.source if self.fault == "lost source" else move.target)
        with Weather.of(self.fault if here and self.fault.startswith("store") else Weather.fault):
            return await self.service.opened[number].order(step, *given)


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        ("local", "lost source"),
        pytest.param("local", "lost target", marks=pytest.mark.long),
        pytest.param("replicated", "lost source", marks=pytest.mark.long),
        *(("replicated", each) for each in ("lost target", FAILS, TWICE)),
    ],
)
def test_whatever_is_lost_on_the_way_no_row_is(tmp_path: Path, mode: str, fault: str) -> None:
    """In `local` mode, too: rows that were stored long ago are not at risk because their slot
    moves.
    """

    async def work() -> None:
        async with shipping(tmp_path, mode) as service:
            (email,) = emails(0, 2, 1)
            slot, stored = slot_of_email(email), ["the first"]
            token = await service.register(email)
            await service.remember(token, stored[0])
            at = ended = 0
            while True:
                for shard in service.opened:
                    await shard.parts.durability.secured()
                    shard.parts.durability.wait_seconds = WAIT_SECONDS if fault == FAILS else 30
                script = Stepwise(service, at, fault)
                first = Supervisor(service.table, script.ask)
                await first.move([slot], 1 - service.table.load().owners[slot])
                (move,) = service.table.load().moves
                try:
                    await first.advance(
                        move
                    )  # the one attempt of a supervisor that lives as long as this
                except (MoveRefused, PlacementError, Unavailable):
                    assert fault != TWICE
                    ended += 1
                for shard in service.opened:
                    shard.parts.durability.wait_seconds = 30
                second = Supervisor(
                    service.table,
                    lambda number, step, *given: service.opened[number].order(step, *given),
                )
                second.start()
                await service.moved()
                await second.close()
                assert has_once(service, slot), script.steps
                assert sorted(await service.texts(token)) == sorted(stored)
                stored.append(f"after step {at}")
                assert (await service.remember(token, stored[-1])).status_code == 201
                at += 1
                if at > len(script.steps):
                    break
            assert at > 10 and bool(ended) == (fault != TWICE)
            async with restored(service, tmp_path / "restored") as found:
                assert has_once(found, slot)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("mode", "kind"), [("replicated", Sharded), ("local", Sharded), ("local", Apart)]
)
def test_what_is_lost_in_the_midst_of_a_move_comes_back_with_each_tenant_once(
    tmp_path: Path, mode: str, kind: type[Sharded]
) -> None:
    """Both machines are lost at once, before and after each step: the placement in object storage
    says whose the slot is.
    """

    async def work() -> None:
        async with shipping(tmp_path, mode, kind) as service:
            addresses = emails(0, 2, 2)
            slots = [slot_of_email(email) for email in addresses]
            tokens = [await service.register(email) for email in addresses]
            for token in tokens:
                for number in range(5):
                    await service.remember(token, f"the ferry {number} leaves at dawn")
            for shard in service.opened:
                await shard.parts.durability.secured()
            states, copies = [], []

            async def ask(number: int, step: str, *given: Any) -> Any:
                answer = await service.opened[number].order(step, *given)
                states.append(service.table.load().moves[0].state)
                with Weather.still:
                    copies.append(
                        shutil.copytree(tmp_path / "objects", tmp_path / f"objects-{len(copies)}")
                    )
                return answer

            supervisor = Supervisor(service.table, ask)
            await supervisor.move([slots[0]], 1)
            for _ in range(2):
                await supervisor.advance(service.table.load().moves[0])
            assert not service.table.load().moves and {COPYING, ERASING} <= set(states)
            owners = []
            for number, copy in enumerate(copies if mode == "replicated" else copies[::3]):
                service.settings = service.settings.model_copy(
                    update={
                        "object_store": service.settings.object_store.model_copy(
                            update={"url": f"file://{copy}"}
                        )
                    }
                )
                async with restored(service, tmp_path / f"restored-{number}") as found:
                    assert all(has_once(found, slot) for slot in slots)
                    assert [len(await found.texts(token)) for token in tokens] == [5, 5]
                    answer = await found.call(
                        "POST", "/v1/search", {"query": "the ferry 3"}, who=tokens[0]
                    )
                    assert "the ferry 3 leaves" in answer.text
                    owners.append(found.table.load().owners[slots[0]])
            assert owners == sorted(owners) and set(owners) == {1}, "what was begun is finished"

    asyncio.run(work())


def test_a_point_in_time_has_the_placement_of_that_time(tmp_path: Path) -> None:
    """Also where the clocks of the two machines differ, in either direction, since a slot moves
    there and back.
    """
    ahead_ms = 1_500

    async def work() -> None:
        async with shipping(tmp_path, "replicated") as service:
            (email,) = emails(0, 2, 1)
            slot, token = slot_of_email(email), await service.register(email)
            moments, wrote = [], []

            async def remember(text: str) -> None:
                begun = now_ms()
                assert (await service.remember(token, text)).status_code == 201
                wrote.append((begun, now_ms(), text))

            async def ask(number: int, step: str, *given: Any) -> Any:
                service.opened[1].store.log.not_before(now_ms() + ahead_ms)
                moments.append(now_ms())
                return await service.opened[number].order(step, *given)

            supervisor = Supervisor(service.table, ask)
            before = now_ms()
            next_millisecond()
            for target in (1, 0, 1):
                await remember(f"on the way to shard {target}")
                await supervisor.move([slot], target)
                for _ in range(2):
                    await supervisor.advance(service.table.load().moves[0])
                await remember(f"at shard {target}")
            assert not service.table.load().moves
            await asyncio.sleep(ahead_ms / 1000)
            for number, moment in enumerate([*moments[::4], now_ms()]):
                async with restored(service, tmp_path / f"restored-{number}", moment) as found:
                    assert has_once(found, slot)
                    texts = set(await found.texts(token))
                    assert texts <= {text for begun, _, text in wrote if begun <= moment}
                    assert texts >= {text for _, ended, text in wrote if ended <= moment - ahead_ms}
            # One that goes on from before the first move is the newest from then on, its placement
            # too.
            options = {
                "object_store__url": service.settings.object_store.url,
                "durability__mode": "replicated",
            }
            async with restored(service, tmp_path / "earlier", before, **options) as earlier:
                assert earlier.table.load().owners[slot] == 0 and not await earlier.texts(token)
                await earlier.shipped()
                assert (await earlier.remember(token, "another future")).status_code == 201
            async with restored(service, tmp_path / "later") as later:
                assert await later.texts(token) == ["another future"] and has_once(later, slot)

    asyncio.run(work())


def test_a_placement_that_the_shards_were_not_written_under_is_refused(tmp_path: Path) -> None:
    """Its newest versions are missing or altered, in the object store or in the data directory."""

    def places_of(directory: Path) -> list[Path]:
        return sorted(directory.rglob("placement/*.json"))

    def up_to(version: int) -> Callable[[Path], None]:
        return lambda directory: [path.unlink() for path in places_of(directory)[version:]] and None

    def altered(directory: Path) -> None:
        newest = places_of(directory)[-1]
        content = json.loads(newest.read_bytes())
        newest.write_text(json.dumps({**content, "owners": [[0, 0], [SLOTS // 2, 1]]}))

    def exchanged(directory: Path) -> None:
        first, *_, newest = places_of(directory)
        shutil.copyfile(first, newest)

    async def moved_once() -> None:
        async with shipping(tmp_path, "replicated") as service:
            (email,) = emails(0, 2, 1)
            slot, token = slot_of_email(email), await service.register(email)
            await service.remember(token, "the ferry leaves at dawn")
            supervisor = Supervisor(
                service.table,
                lambda number, step, *given: service.opened[number].order(step, *given),
            )
            await supervisor.move([slot], 1)
            for _ in range(2):
                await supervisor.advance(service.table.load().moves[0])
            await service.shipped()
            given.append(service.settings)

    given: list[Any] = []
    asyncio.run(moved_once())
    (served,) = given
    whole = tmp_path / "whole"
    shutil.copytree(tmp_path / "objects", whole)
    assert len(places_of(whole)) >= 3  # planned, copying, erasing
    for number, (damage, sentence) in enumerate(
        [
            (up_to(2), "missing or altered"),
            (up_to(1), "missing or altered"),
            (altered, "missing or altered"),
            (exchanged, "it says that it is version"),
        ]
    ):
        objects, directory = tmp_path / f"objects-{number}", tmp_path / f"restored-{number}"
        shutil.copytree(whole, objects)
        damage(objects)
        shutil.copytree(served.data_dir / "secrets", directory / "secrets")
        with pytest.raises(RestoreFailed, match=sentence):
            restore_installation(
                settings(data_dir=str(directory), object_store__url=f"file://{objects}"),
                cluster_id=None,
                at=None,
                take_over=False,
                report=lambda *_: None,
            )
        assert {path.name for path in directory.iterdir()} <= {"secrets", "serve.lock"}
        copy = tmp_path / f"data-{number}"
        shutil.copytree(served.data_dir, copy)
        assert admin("verify", copy)[0] == 0
        damage(copy)
        status, told, said = admin("verify", copy)
        assert status == 1 and ("missing or altered" in told or sentence in said), (told, said)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
