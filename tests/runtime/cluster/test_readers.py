"""Processes that read beside a shard's own: what they answer is what the shard would, of everything
that was acknowledged, and none that dies, stops or lags is noticed by a client.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import pytest

from plugins.search import SEARCH_COMPLETED, SearchBody
from runtime.api.operation import Call
from runtime.api.outbox import OUTBOX
from runtime.cluster import reader_count
from runtime.http.credentials import read_authorization
from runtime.limits import READER_HEAVY_LOAD_CALLS
from runtime.machine import usable_cores
from runtime.shard import readers as shard_readers
from runtime.shard import resolve
from runtime.tenancy import slot_of_email
from tests.support import ROOT
from tests.support.receivers import receiver
from tests.support.served import Served
from tests.support.sharded import Sharded
from tests.support.tiny_service import eventually
from tests.support.worlds import settings

pytestmark = pytest.mark.slow

T = TypeVar("T")
AT_ONCE = 6
PAUSE_SECONDS = 0.01  # between two searches of each


class Beside:
    """A service of one shard and one reader. A request that comes alone is read in the shard's own
    process, so `search` sends two at once, of which one goes to the reader.
    """

    def __init__(self, directory: Path, **overrides: Any):
        self.service = Sharded(directory, 1, readers=1, **overrides)
        self._runner = asyncio.Runner()
        self.run(self.service.open())
        assert self.readers()["ready"] == 0  # nobody has wanted any
        self.service.reading[0].want()
        self.run(self.ready())

    def close(self) -> None:
        self.run(self.service.close())
        self._runner.close()

    def run(self, work: Awaitable[T]) -> T:
        async def worked() -> T:
            return await work

        return self._runner.run(worked())

    async def ready(self) -> None:
        await self.service.until_all(lambda figures: figures["readers"]["ready"] == 1)

    def readers(self) -> dict[str, int]:
        return self.run(self.service.figures(0))["readers"]

    def register(self, name: str) -> str:
        return self.run(self.service.register(f"{name}@example.com"))

    def call(self, method: str, path: str, body: Any = None, *, who: str) -> httpx.Response:
        return self.run(self.service.call(method, path, body, who=who))

    def add(self, who: str, content: str, **fields: Any) -> str:
        made = self.call("POST", "/v1/memories", {"content": content, **fields}, who=who)
        assert made.status_code == 201, made.text
        return made.json()["id"]

    def both(self, method: str, path: str, body: Any = None, *, who: str) -> list[httpx.Response]:
        """What the shard's own process answers, and the reader."""
        return self.run(self._both(method, path, body, who))

    async def _both(self, method: str, path: str, body: Any, who: str) -> list[httpx.Response]:
        before = (await self.service.figures(0))["readers"]["calls_total"]
        answers = [self.service.call(method, path, body, who=who) for _ in range(2)]
        found = list(await asyncio.gather(*answers))
        assert (await self.service.figures(0))["readers"]["calls_total"] == before + 1
        return found

    def search(self, query: str, who: str, **fields: Any) -> list[str]:
        """The contents found, in which both processes agree."""
        answers = self.both("POST", "/v1/search", {"query": query, **fields}, who=who)
        own, other = (self.told(answer) for answer in answers)
        assert own == other
        return [hit["content"] for hit in own["results"]]

    @staticmethod
    def told(answer: httpx.Response) -> dict[str, Any]:
        """An answer without what no two have in common."""
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return {name: value for name, value in body.items() if name != "processing_time_ms"}

    async def searched_throughout(self, who: str, until: Callable[[], Awaitable[Any]]) -> int:
        """Search all the time, several at once, until `until` is through; -> how many were
        answered. Each has to be, and with the one memory that there is.
        """
        over, answered = asyncio.Event(), 0

        async def go_on() -> None:
            nonlocal answered
            while not over.is_set():
                found = await self.service.call("POST", "/v1/search", {"query": "lamp"}, who=who)
                assert found.status_code == 200, found.text
                assert [hit["content"] for hit in found.json()["results"]] == ["The lamp is green."]
                answered += 1
                await asyncio.sleep(PAUSE_SECONDS)

        async with asyncio.TaskGroup() as searching:
            for _ in range(AT_ONCE):
                searching.create_task(go_on())
            await until()
            over.set()
        return answered


def processes_of(parent: int) -> list[psutil.Process]:
    """The readers of a process, by their command."""
    return [
        each
        for each in psutil.Process(parent).children()
        if "runtime.cluster.reader_process" in each.cmdline()
    ]


def the_reader() -> psutil.Process:
    (found,) = processes_of(os.getpid())
    return found


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    opened = Beside(tmp_path_factory.mktemp("beside"), webhooks__allow_private_networks=True)
    yield opened
    opened.close()


def test_what_was_acknowledged_is_found_by_every_process(beside: Beside) -> None:
    me = beside.register("writes")
    beside.add(me, "The first key is under the mat.")
    assert beside.search("key", me) == ["The first key is under the mat."]  # it is in memory now
    for number in range(20):
        made = beside.add(me, f"Parcel {number} is at the post office.")
        found = beside.search(f"parcel {number}", me, limit=50)
        assert f"Parcel {number} is at the post office." in found
        changed = beside.call(
            "PATCH", f"/v1/memories/{made}", {"content": f"Parcel {number} was fetched."}, who=me
        )
        assert changed.status_code == 200, changed.text
        found = beside.search(f"parcel {number}", me, limit=50)
        assert f"Parcel {number} was fetched." in found
        assert f"Parcel {number} is at the post office." not in found
        if number % 2:
            gone = beside.call("DELETE", f"/v1/memories/{made}", who=me)
            assert gone.status_code in (200, 204), gone.text
            assert f"Parcel {number} was fetched." not in beside.search("parcel", me, limit=50)


def test_a_batch_of_an_account_in_memory_is_found_whole(beside: Beside) -> None:
    me = beside.register("batches")
    beside.add(me, "A boat called Ida.")
    assert beside.search("boat", me) == ["A boat called Ida."]
    boats = [f"A boat called number{number}." for number in range(60)]
    stored = beside.call(
        "POST",
        "/v1/memories/batch",
        {"memories": [{"content": boat} for boat in boats], "wait_for_index": True},
        who=me,
    )
    assert stored.status_code == 201, stored.text
    assert set(boats) <= set(beside.search("boat", me, limit=100))


def test_refusals_are_the_same(beside: Beside) -> None:
    me = beside.register("refused")
    beside.add(me, "Nothing to see.")
    found = {"query": "see"}
    missing = {"query": "see", "collection_id": "col_" + "0" * 40}

    async def ask(*bodies: dict[str, str]) -> list[httpx.Response]:
        asked = (beside.service.call("POST", "/v1/search", body, who=me) for body in bodies)
        return list(await asyncio.gather(*asked))

    before = beside.readers()["calls_total"]
    (own,) = beside.run(ask(missing))
    assert beside.readers()["calls_total"] == before
    _, other = beside.run(ask(found, missing))
    assert beside.readers()["calls_total"] == before + 1
    assert own.status_code == other.status_code == 404
    told = [{**answer.json()["error"], "request_id": ""} for answer in (own, other)]
    assert told[0] == told[1]


def test_heavy_reads_are_the_readers(beside: Beside) -> None:
    me = beside.register("heavy")
    ids = [beside.add(me, f"The {kind} tree has leaves.") for kind in ("oak", "elm", "ash")]
    before = beside.readers()["calls_total"]
    found = beside.call("GET", f"/v1/search/similar/{ids[0]}", who=me)
    assert found.status_code == 200, found.text
    assert {hit["content"] for hit in found.json()["results"]} == {
        "The elm tree has leaves.",
        "The ash tree has leaves.",
    }
    assert beside.readers()["calls_total"] == before + 1
    missing = beside.call("GET", "/v1/search/similar/" + ids[0][:-4] + "0000", who=me)
    assert missing.status_code == 404, missing.text


def test_what_a_reader_does_is_the_account_s_load(beside: Beside) -> None:
    me = beside.register("loads")
    oak = beside.add(me, "The oak tree has leaves.")
    own = beside.call("GET", "/v1/usage/load", who=me).json()
    before = beside.readers()["calls_total"]
    assert beside.call("GET", f"/v1/search/similar/{oak}", who=me).status_code == 200
    assert beside.readers()["calls_total"] == before + 1
    assert eventually(
        lambda: beside.call("GET", "/v1/usage/load", who=me).json()["read_ms"] > own["read_ms"]
    )


def test_a_search_does_not_go_where_a_heavy_read_is_under_way(beside: Beside) -> None:
    me = beside.register("waits-for-nobody")
    lamp = beside.add(me, "The lamp is green.")
    readers, process = beside.service.reading[0], the_reader()
    slot = slot_of_email("waits-for-nobody@example.com")

    async def look() -> None:
        assert readers.place((slot, 1), 1, heavy=False) is not None
        process.suspend()
        try:
            heavy = asyncio.create_task(
                beside.service.call("GET", f"/v1/search/similar/{lamp}", who=me)
            )
            await beside.service.until_all(lambda figures: figures["readers"]["under_way"] == 1)
            for here in range(1, READER_HEAVY_LOAD_CALLS + 1):
                assert readers.place((slot, 1), here, heavy=False) is None
            assert readers.place((slot, 1), READER_HEAVY_LOAD_CALLS + 1, heavy=False) is not None
        finally:
            process.resume()
        assert (await heavy).status_code == 200
        await beside.ready()

    beside.run(look())


def test_searches_cost_what_they_cost_wherever_they_are_read(beside: Beside) -> None:
    me = beside.register("charged")
    beside.add(me, "Rent is due on Monday.")
    before = beside.call("GET", "/v1/usage", who=me).json()
    for _ in range(3):
        assert beside.search("rent", me) == ["Rent is due on Monday."]
    after = beside.call("GET", "/v1/usage", who=me).json()
    assert after["credits"]["used"] == before["credits"]["used"] + 6


def test_events_of_what_a_reader_answered_are_written(beside: Beside) -> None:
    me = beside.register("events")
    beside.add(me, "The bus leaves at nine.")
    with receiver() as somebody:
        told = {"url": somebody.url, "events": [SEARCH_COMPLETED.kind]}
        made = beside.call("POST", "/v1/webhooks", told, who=me)
        assert made.status_code == 201, made.text
        assert beside.search("bus", me) == ["The bus leaves at nine."]
        slot = slot_of_email("events@example.com")

        def events() -> int:
            with beside.service.opened[0].store.snapshot() as snapshot:
                scopes = [each for each in snapshot.scopes(slot) if each.tenant]
                return sum(
                    row.kind == SEARCH_COMPLETED.kind
                    for scope in scopes
                    for _, row in snapshot.bind(OUTBOX, scope).scan()
                )

        beside.run(beside.service.until(lambda: events() == 2))


def test_a_reader_that_is_killed_costs_no_client_anything(beside: Beside) -> None:
    me = beside.register("killed")
    beside.add(me, "The lamp is green.")
    ended = beside.readers()["ended_total"]

    async def kill() -> None:
        for killed in range(2):
            calls = (await beside.service.figures(0))["readers"]["calls_total"]
            await beside.service.until_all(
                lambda figures, calls=calls: figures["readers"]["calls_total"] > calls + 20
            )
            the_reader().kill()
            await beside.service.until_all(
                lambda figures, n=killed: figures["readers"]["ended_total"] == ended + n + 1
            )
            await beside.ready()

    assert beside.run(beside.searched_throughout(me, kill)) > 40
    assert beside.search("lamp", me) == ["The lamp is green."]
    assert beside.service.opened[0].store.environment.reader_lag() == 0


def test_a_reader_that_cannot_be_begun_is_begun_as_soon_as_it_can_be(
    beside: Beside,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """As when the machine has no process or no memory to spare for a while."""
    me = beside.register("scarce")
    beside.add(me, "The lamp is green.")

    async def refused() -> None:
        await beside.service.until(
            lambda: any("could not be begun" in each for each in caplog.messages)
        )

    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(tmp_path / "nothing"))
        the_reader().kill()
        assert beside.run(beside.searched_throughout(me, refused)) > 0
    beside.run(beside.ready())
    assert beside.search("lamp", me) == ["The lamp is green."]


def test_a_reader_that_is_stopped_is_asked_nothing_until_it_goes_on(beside: Beside) -> None:
    me = beside.register("stopped")
    beside.add(me, "The lamp is green.")
    assert beside.search("lamp", me) == ["The lamp is green."]
    process = the_reader()

    async def stop() -> None:
        before = (await beside.service.figures(0))["readers"]
        process.suspend()
        try:
            await beside.service.until_all(lambda figures: figures["readers"]["ready"] == 0)
            assert (await beside.service.figures(0))["readers"]["ended_total"] == before[
                "ended_total"
            ]
        finally:
            process.resume()
        await beside.ready()
        after = (await beside.service.figures(0))["readers"]
        assert after["given_back_total"] > before["given_back_total"]

    beside.run(beside.searched_throughout(me, stop))
    # What was written while it stood still comes to it before the next call.
    process.suspend()
    beside.add(me, "Another lamp is red.")
    process.resume()
    beside.run(beside.ready())
    assert set(beside.search("lamp", me)) == {"The lamp is green.", "Another lamp is red."}
    assert process.pid == the_reader().pid


def test_an_account_with_much_in_memory_stays_with_the_shard(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = beside.register("large")
    beside.add(me, "The whale is large.")
    assert beside.search("whale", me) == ["The whale is large."]
    monkeypatch.setattr(shard_readers, "READER_ACCOUNT_BYTES_MAX", 0)
    before = beside.readers()["calls_total"]
    for _ in range(3):
        found = beside.run(_two_searches(beside.service, me, "whale"))
        assert [answer.status_code for answer in found] == [200, 200]
    assert beside.readers()["calls_total"] == before


async def _two_searches(service: Sharded, who: str, query: str) -> list[httpx.Response]:
    asked = (service.call("POST", "/v1/search", {"query": query}, who=who) for _ in range(2))
    return list(await asyncio.gather(*asked))


def test_an_erased_account_is_erased_for_readers_too(beside: Beside) -> None:
    """Past the shard, which lets nobody in any more: the reader itself has nothing left to answer
    from.
    """
    me = beside.register("erased")
    beside.add(me, "The safe opens with 1234.")
    assert beside.search("safe", me) == ["The safe opens with 1234."]
    shard = beside.service.opened[0]
    credential, slot = read_authorization(f"Bearer {me}", beside.service.secrets, 0)
    now_ms = shard.parts.now_ms()
    with shard.store.snapshot() as snapshot:
        principal, scope = resolve(snapshot, slot, credential, now_ms, beside.service.secrets)
    call = Call(
        operation="search.search",
        slot=slot,
        now_ms=now_ms,
        seed=hashlib.sha256(b"seed").digest(),
        request_id="past-the-shard",
        body=SearchBody(query="safe"),
    )
    asked = beside.service.reading[0].place((scope.slot, scope.tenant), 1, heavy=False)
    assert asked is not None
    answered = beside.run(asked.ask(call, principal, scope))
    assert answered is not None and b"1234" in answered.reply.body

    erased = beside.call("DELETE", "/v1/account?confirm=erase-account", who=me)
    assert erased.status_code in (200, 202), erased.text
    assert beside.call("POST", "/v1/search", {"query": "safe"}, who=me).status_code == 401

    async def until_gone() -> None:
        async with asyncio.timeout(60):
            while answered := await asked.ask(call, principal, scope):
                if b"1234" not in (answered.reply.body or b""):
                    break

    beside.run(until_gone())


_SHARD = """
import asyncio, sys
from pathlib import Path
from tests.support.served import Served
from tests.support.sharded import Sharded
from tests.support.worlds import settings

async def main():
    service = Sharded(Path(sys.argv[1]), 1, readers=2)
    await service.open()
    service.reading[0].want()
    await service.until_all(lambda figures: figures["readers"]["ready"] == 2)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_readers_end_with_their_shard_however_it_ends(tmp_path: Path) -> None:
    shard = subprocess.Popen(
        [sys.executable, "-c", _SHARD, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert shard.stdout is not None and shard.stdout.readline() == "ready\n"
        readers = processes_of(shard.pid)
        assert len(readers) == 2
        readers[0].send_signal(signal.SIGSTOP)  # even one that does not run
    finally:
        shard.kill()
        shard.wait()
    gone, alive = psutil.wait_procs(readers, timeout=60)
    assert not alive and len(gone) == 2


def test_how_many_there_are_is_set_or_none_on_engine_local(tmp_path: Path) -> None:
    assert reader_count(settings(data_dir=str(tmp_path)), 0) == 0
    assert reader_count(settings(data_dir=str(tmp_path), shards__readers=3), 0) == 3


def test_all_processes_of_a_shard_keep_what_one_would() -> None:
    chosen = settings(memory__resident_bytes_max=2**30)
    assert shard_readers.own_bytes_max(chosen, 0) == 2**30
    for readers in (1, 3, 8):
        own, each = (
            share(chosen, readers)
            for share in (shard_readers.own_bytes_max, shard_readers.reader_bytes_max)
        )
        assert 0.99 * 2**30 < own + readers * each <= 2**30 and own >= 0.7 * 2**30
        assert 2 * shard_readers.account_bytes_max(chosen, readers) <= each


@pytest.mark.ray
def test_on_ray_there_is_one_for_each_core_that_the_shards_leave(service_on_ray: Served) -> None:
    """Begun by the first searches that come at once."""
    head = {"Authorization": f"Bearer {service_on_ray.register()}"}
    wanted = min(8, usable_cores() - 1)
    shard = service_on_ray.shard_process()

    def search(_: int) -> int:
        return service_on_ray.http.post(
            "/v1/search", json={"query": "any lamp"}, headers=head
        ).status_code

    def begun() -> int:
        return sum("reader_process" in " ".join(each.cmdline()) for each in shard.children())

    def searched() -> bool:
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(search, range(16))) == {200}
        return begun() == wanted

    assert eventually(searched)
