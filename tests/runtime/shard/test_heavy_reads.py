"""Heavy reads: beside the event loop and the other reads, in turns, and within bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.api.operation import Body, Call, Read, Write
from runtime.api.plugin import Plugin
from runtime.errors import ApiError, RateLimited, Unavailable, ValidationFailed
from runtime.limits import CALL_SECONDS_MAX, HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX
from runtime.long_work import Cores
from runtime.shard import writes
from runtime.shard.heavy_reads import Bounds, HeavyReads
from storage.store import Store, Table
from tests.support.shard_harness import Answer, ShardHarness, answer_of
from tests.support.worlds import shard_harness

ADA, EVE, BOB = (1, 1), (1, 2), (2, 1)
WAIT_SECONDS_MAX = 20
NUMBERS: Table[bytes] = Table("numbers", key=("number",), row=bytes, doc="numbers")
CALL = Call("numbers.sum", 0, 0, b"", "r")


class Numbers(Body):
    heavy: bool = True


class Witness:
    """A plugin with a read that is heavy if its body says so; it notes on which threads it ran."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.loaded_on: list[str] = []
        self.may_end = threading.Event()
        self.plugin = Plugin(
            name="numbers",
            operations=(
                self._read("numbers.sum"),
                self._read("numbers.loaded", load=self._load),
                self._read("numbers.prepared", load=self._load, prepare=self._prepare),
                Read("numbers.light", "GET", "/light", self._release, "", None),
            ),
        )

    def _read(self, name: str, **steps: object) -> Read:
        return Read(
            name, "POST", f"/{name}", self._sum, "", None,
            body=Numbers, heavy=lambda call: call.body.heavy, **steps,
        )  # fmt: skip

    def _load(self, ctx, body) -> str:
        self.loaded_on.append(threading.current_thread().name)
        return "loaded"

    async def _prepare(self, call, loaded, models) -> str:
        assert loaded == "loaded"
        return "prepared"

    def _sum(self, ctx, body) -> dict:
        self.threads.append(threading.current_thread().name)
        assert self.may_end.wait(WAIT_SECONDS_MAX), "nobody was answered meanwhile"
        return {"found": ctx.prepared}

    def _release(self, ctx, body) -> dict:
        self.may_end.set()
        return {}


@pytest.mark.parametrize(
    ("operation", "found"),
    [("numbers.sum", None), ("numbers.loaded", "loaded"), ("numbers.prepared", "prepared")],
)
def test_others_are_answered_while_a_heavy_read_runs(
    tmp_path: Path, operation: str, found: str | None
) -> None:
    """The heavy one ends only when a light one of another account has been answered."""
    witness = Witness()
    with shard_harness(tmp_path, witness.plugin) as harness:
        ada, eve = harness.register(), harness.register("eve@example.com", "Eve")
        answers = harness.together(
            [harness.form(operation, {}, who=ada), harness.form("numbers.light", who=eve)]
        )
        assert [answer.status for answer in answers] == [200, 200]
        assert answers[0].body == {"found": found}
        assert all(name.startswith("mneme-heavy") for name in witness.threads + witness.loaded_on)
        assert len(witness.loaded_on) == (operation != "numbers.sum")


def test_a_read_that_is_not_heavy_this_time_runs_as_any_other(tmp_path: Path) -> None:
    witness = Witness()
    witness.may_end.set()
    with shard_harness(tmp_path, witness.plugin) as harness:
        me = harness.register()
        assert harness("numbers.sum", {"heavy": False}, who=me).status == 200
        assert witness.threads == [threading.current_thread().name]


def test_a_batch_with_a_heavy_read_answers_the_others_meanwhile(tmp_path: Path) -> None:
    """Calls that came together: the heavy one does not keep the batch from going on."""
    witness = Witness()
    with shard_harness(tmp_path, witness.plugin) as harness:
        me = harness.register()
        calls = [harness.form("numbers.sum", {}, who=me), harness.form("numbers.light", who=me)]
        assert [answer.status for answer in _batch(harness, calls)] == [200, 200]


def _batch(harness: ShardHarness, calls: list[Call | ApiError]) -> list[Answer]:
    return [answer_of(reply) for reply in harness.run(harness.shard.execute_many(calls))]


class Turns:
    """Heavy reads on one thread, each of which ends when it is told to; and the order they ran."""

    def __init__(self, store: Store) -> None:
        self.heavy = HeavyReads(store, threads=1)
        self.order: list[str] = []
        self.first_may_end = threading.Event()

    def ask(self, account: tuple[int, int], name: str) -> asyncio.Task:
        return asyncio.create_task(self.heavy.run(account, CALL, lambda _: self._note(name)))

    def _note(self, name: str) -> None:
        if not self.order:
            assert self.first_may_end.wait(WAIT_SECONDS_MAX)
        self.order.append(name)


def test_accounts_take_turns(tmp_path: Path) -> None:
    with shard_harness(tmp_path) as harness:
        turns = Turns(harness.shard.store)

        async def ask() -> None:
            asked = [turns.ask(ADA, f"ada {number}") for number in range(4)]
            await asyncio.sleep(0)
            asked += [turns.ask(EVE, "eve"), turns.ask(BOB, "bob")]
            await asyncio.sleep(0)
            turns.first_may_end.set()
            await asyncio.gather(*asked)

        asyncio.run(ask())
        turns.heavy.close()
        assert turns.order == ["ada 0", "eve", "bob", "ada 1", "ada 2", "ada 3"]


def test_an_account_has_only_so_many_waiting_and_others_still_come_in(tmp_path: Path) -> None:
    with shard_harness(tmp_path) as harness:
        turns = Turns(harness.shard.store)

        async def ask() -> list:
            asked = [
                turns.ask(ADA, f"ada {number}")
                for number in range(HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX + 3)
            ]
            asked.append(turns.ask(EVE, "eve"))
            await asyncio.sleep(0)
            turns.first_may_end.set()
            return await asyncio.gather(*asked, return_exceptions=True)

        ended = asyncio.run(ask())
        turns.heavy.close()
        refused = [error for error in ended if error is not None]
        assert len(refused) == 2 and all(isinstance(error, RateLimited) for error in refused)
        assert "eve" in turns.order


def test_at_a_stop_what_runs_ends_and_what_waits_is_refused(tmp_path: Path) -> None:
    with shard_harness(tmp_path) as harness:
        turns = Turns(harness.shard.store)

        async def ask() -> list:
            asked = [turns.ask(ADA, "runs"), turns.ask(ADA, "waits"), turns.ask(EVE, "waits, too")]
            await asyncio.sleep(0)
            turns.heavy.begin_no_more()
            asked.append(turns.ask(BOB, "comes late"))
            await asyncio.sleep(0)
            turns.first_may_end.set()
            return await asyncio.gather(*asked, return_exceptions=True)

        ran, *refused = asyncio.run(ask())
        assert (ran, turns.heavy.depth) == (None, 0)
        turns.heavy.close()
        assert turns.order == ["runs"]
        assert [type(error) for error in refused] == [Unavailable] * 3


def test_who_leaves_while_waiting_or_running_holds_nothing(tmp_path: Path) -> None:
    with shard_harness(tmp_path) as harness:
        turns = Turns(harness.shard.store)

        async def ask() -> None:
            running, waiting = turns.ask(ADA, "ada"), turns.ask(ADA, "ada again")
            await asyncio.sleep(0)
            running.cancel()
            waiting.cancel()
            await asyncio.gather(running, waiting, return_exceptions=True)
            later = turns.ask(EVE, "eve")
            await asyncio.sleep(0)
            turns.first_may_end.set()
            await later
            assert turns.heavy.depth == 0

        asyncio.run(ask())
        turns.heavy.close()
        assert turns.order == ["ada", "eve"]


def test_a_lengthy_write_waits_for_its_turn_and_others_come_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty of one account and a small one of another, all at once: it is not behind them all."""
    monkeypatch.setattr(writes, "LENGTHY_WRITES_REST_SECONDS_MAX", 0.0)
    order: list[str] = []

    def noting(name: str) -> Callable[..., dict]:
        def handler(ctx, body) -> dict:
            order.append(name)
            return {}

        return handler

    plugin = Plugin(
        name="numbers",
        operations=(
            Write(
                "numbers.long", "POST", "/long", noting("long"), "", None,
                scope="write", lengthy=True,
            ),
            Write("numbers.short", "POST", "/short", noting("short"), "", None, scope="write"),
        ),
    )  # fmt: skip
    with shard_harness(tmp_path, plugin) as harness:
        ada, eve = harness.register(), harness.register("eve@example.com", "Eve")
        calls = [harness.form("numbers.long", who=ada) for _ in range(20)]
        answers = harness.together([*calls, harness.form("numbers.short", who=eve)])
        assert order.index("short") <= 1
        let_in = 1 + HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX
        statuses = [answer.status for answer in answers]
        assert statuses == [200] * let_in + [429] * (20 - let_in) + [200]

        async def stopping() -> list[int]:
            asked = [asyncio.create_task(harness.shard.execute(call)) for call in calls[:3]]
            await asyncio.sleep(0)
            await harness.shard.drain()
            return [reply.status for reply in await asyncio.gather(*asked)]

        assert harness.run(stopping()) == [200, 503, 503]


def test_lengthy_writes_rest_while_several_accounts_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "LENGTHY_WRITES_SHARE_MAX", 1e-9)
    monkeypatch.setattr(writes, "LENGTHY_WRITES_REST_SECONDS_MAX", CALL_SECONDS_MAX)
    crowd = [False]
    monkeypatch.setattr(Cores, "are_crowded", lambda cores: crowd[0])

    def handler(ctx, body) -> dict:
        return {}

    plugin = Plugin(
        name="numbers",
        operations=(
            Write("numbers.long", "POST", "/long", handler, "", None, scope="write", lengthy=True),
            Write("numbers.short", "POST", "/short", handler, "", None, scope="write"),
        ),
    )
    with shard_harness(tmp_path, plugin) as harness:
        ada, eve = harness.register(), harness.register("eve@example.com", "Eve")

        def form(name: str, who: str) -> Call:
            return harness.form(f"numbers.{name}", who=who)

        alone = harness.together([form("long", ada) for _ in range(3)])
        assert [reply.status for reply in alone] == [200] * 3

        async def ask() -> list[int]:
            execute = harness.shard.execute
            first = await execute(form("long", ada))
            second = asyncio.create_task(execute(form("long", eve)))
            shorts = await asyncio.gather(
                *(execute(form("short", who)) for who in (ada, eve) for _ in range(5))
            )
            assert not second.done()
            await harness.shard.drain()
            return [reply.status for reply in (first, *shorts, await second)]

        crowd[0] = True
        assert harness.run(ask()) == [200] * 11 + [503]


WAYS = {
    "scan": lambda table: list(table.scan()),
    "backwards": lambda table: list(table.scan(reverse=True)),
    "keys": lambda table: list(table.keys()),
    "keys backwards": lambda table: list(table.keys(reverse=True)),
    "get": lambda table: [table.get(number) for number in range(100)],
    "get_many": lambda table: table.get_many([(number,) for number in range(100)]),
    "raw_under": lambda table: table.raw_under(),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_reads_beyond_a_bound_is_refused_while_it_runs(tmp_path: Path, way: str) -> None:
    def put(ctx, body) -> None:
        for number in range(100):
            ctx[NUMBERS].put((number,), b"0123456")

    plugin = Plugin(
        name="numbers",
        tables=(NUMBERS,),
        operations=(Write("numbers.put", "POST", "/put", put, "", None, scope="write"),),
    )
    with shard_harness(tmp_path, plugin) as harness:
        me = harness.register()
        harness("numbers.put", who=me)
        scope = harness.scope_of(me)

        def count(**bounds) -> int:
            heavy = HeavyReads(harness.shard.store, Bounds(**bounds))
            work = lambda snapshot: len(WAYS[way](snapshot.bind(NUMBERS, scope)))  # noqa: E731
            try:
                return asyncio.run(heavy.run(ADA, CALL, work))
            finally:
                heavy.close()

        assert count(rows=110) == 100
        for bounds in ({"rows": 50}, {"cpu_seconds": 0}, {"size": 100}):
            if "keys" in way and "size" in bounds:
                continue  # no byte of a row was read
            with pytest.raises(ValidationFailed, match="ask for less") as refused:
                count(**bounds)
            assert refused.value.details[0]["type"] == "too_costly"
