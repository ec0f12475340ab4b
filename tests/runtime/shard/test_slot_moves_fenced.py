"""Two supervisors at work at once: one stops anywhere, the other goes on, the first wakes up. No
row is lost, doubled or brought back.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import serve_app
from runtime.api.operation import Reply
from runtime.cluster.supervisor import Different, Supervisor
from runtime.errors import Moved, Unavailable
from runtime.placement import UNDOING, Placement, PlacementError
from runtime.shard import slot_comparison, slot_moves
from runtime.shard.slot_moves import MoveOver, MoveRefused
from runtime.shard.writer import WriteOutcome
from runtime.tenancy import slot_of_email
from storage.store import Hold, Scope, Transaction
from tests.support.sharded import Sharded, emails, has_once, sharded, shipping

MEMORIES = 6
BEFORE, INSIDE, AFTER = "before", "inside", "after"


class Stop:
    """Where a supervisor stops: at its step number `at` (counted from 0, publications included), or
    at the first that `chosen` names.

    where  before the step arrives; inside, between what the shard checks and what it writes; after,
           when nobody has heard the answer
    """

    def __init__(self, at: int = -1, where: str = BEFORE, chosen: str = ""):
        self.at, self.where, self.chosen = at, where, chosen
        self.steps: list[str] = []
        self.reached, self.woken = asyncio.Event(), asyncio.Event()

    def is_here(self, step: str) -> bool:
        self.steps.append(step)
        return len(self.steps) == self.at + 1 or (step == self.chosen and not self.reached.is_set())

    async def wait(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await self.woken.wait()


INSIDE_OF: ContextVar[Stop | None] = ContextVar("inside_of", default=None)


class Stopping(Supervisor):
    """A supervisor that stops once."""

    def __init__(self, service: Sharded, stop: Stop):
        super().__init__(service.table, self._ask_stopping)
        self.service, self.stop = service, stop

    async def _ask_stopping(self, number: int, step: str, *given: Any) -> Any:
        here = self.stop.is_here(step)
        if here and self.stop.where == BEFORE:
            await self.stop.wait()
        INSIDE_OF.set(self.stop if here and self.stop.where == INSIDE else None)
        answer = await self.service.opened[number].order(step, *given)
        INSIDE_OF.set(None)
        if here and self.stop.where == AFTER:
            await self.stop.wait()
        return answer

    async def _change(self, change: Callable[[Placement], Placement]) -> Placement:
        here = self.stop.is_here("publish")
        if here and self.stop.where == BEFORE:
            await self.stop.wait()
        published = await super()._change(change)
        if here and self.stop.where == AFTER:
            await self.stop.wait()
        return published

    async def work(self) -> None:
        """Advance what is to be done until nothing is, through failures as a supervisor goes on
        through them.
        """
        while moves := self._table.load().moves:
            with suppress(Exception):
                await self.advance(moves[0])


def turns_can_stop(service: Sharded) -> None:
    """Between a step's checks and its turn in the writer, its supervisor may stop."""
    for shard in service.opened:
        writer = shard.parts.writer

        async def submit(
            work: Any, label: str, *others: Any, taken: Any = writer.submit, **named: Any
        ) -> Reply:
            if label == "slots" and (stop := INSIDE_OF.get()) is not None:
                await stop.wait()
            return await taken(work, label, *others, **named)

        writer.submit = submit


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_moves, "SLOT_PIECE_BYTES", 5_000)
    monkeypatch.setattr(slot_moves, "SLOT_ROWS_ERASED_PER_STEP", 100)


def plain(directory: Path) -> AbstractAsyncContextManager[Sharded]:
    return sharded(directory)


def replicated(directory: Path) -> AbstractAsyncContextManager[Sharded]:
    return shipping(directory, "replicated")


@asynccontextmanager
async def filled(
    opened: AbstractAsyncContextManager[Sharded],
) -> AsyncIterator[tuple[Sharded, str, int]]:
    """A service with an account of some memories, the account's token, and its slot."""
    async with opened as service:
        turns_can_stop(service)
        (email,) = emails(0, 2, 1)
        token = await service.register(email)
        for number in range(MEMORIES):
            assert (
                await service.remember(
                    token, f"the ferry {number} leaves at {number} in the morning"
                )
            ).status_code == 201
        yield service, token, slot_of_email(email)


END, HALF_WAY, AT_ONCE = "to its end", "half way", "beside it"


async def both(one: Stopping, two: Stopping, until: str) -> None:
    """The first works until it stops, then the second one `until`; the first wakes up and goes on
    as far as it can; then all end.

    until  to its end; half way, to where it has a part of the slot, and stands still while the
           first goes on; beside it: does not
    """
    async with asyncio.timeout(120):
        first = asyncio.create_task(one.work())
        await reached(one, first)
        second = asyncio.create_task(two.work())
        await (second if until == END else reached(two, second))
        one.stop.woken.set()
        if until == HALF_WAY:
            await first
        two.stop.woken.set()
        await asyncio.gather(first, second)


async def reached(supervisor: Stopping, task: asyncio.Task[None]) -> None:
    """Wait until it stops, or is done because it comes to no such place."""
    stopped = asyncio.create_task(supervisor.stop.reached.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


WAKES_EACH_TIME = [  # each way to wake, each moment, and both stores; the others with --long
    *((plain, HALF_WAY, where) for where in (BEFORE, INSIDE, AFTER)),
    (plain, END, BEFORE),
    (plain, AT_ONCE, AFTER),
    (replicated, HALF_WAY, INSIDE),
]


@pytest.mark.parametrize(
    ("opened", "until", "where"),
    [
        pytest.param(*case, marks=() if case in WAKES_EACH_TIME else pytest.mark.long)
        for case in itertools.product(
            (plain, replicated), (END, HALF_WAY, AT_ONCE), (BEFORE, INSIDE, AFTER)
        )
    ],
)
def test_a_supervisor_that_wakes_late_erases_nothing(
    tmp_path: Path, opened: Any, until: str, where: str
) -> None:
    """It stops at each of its steps in turn."""

    async def work() -> None:
        async with filled(opened(tmp_path)) as (service, token, slot):
            stored, at = sorted(await service.texts(token)), 0
            while True:
                one = Stopping(service, Stop(at, where))
                two = Stopping(service, Stop(where=AFTER, chosen="" if until == END else "take"))
                await one.move([slot], 1 - service.table.load().owners[slot])
                await both(one, two, until)
                assert has_once(service, slot), (one.stop.steps, two.stop.steps)
                assert sorted(await service.texts(token)) == stored
                if len(one.stop.steps) <= at:
                    break
                at += 1
            assert at > 18 and one.stop.steps.count("take") > 3

    asyncio.run(work())


TAKEN, ENDED, GONE_ON = "taken again", "ended", "gone on with"


@pytest.mark.parametrize("meanwhile", [TAKEN, ENDED, GONE_ON])
def test_rows_that_were_held_up_before_they_were_written_are_not_written_later(
    tmp_path: Path, meanwhile: str
) -> None:
    """Whatever became of the slot meanwhile: it is on its way here again, it stayed where it was,
    or it is here and was written to.
    """

    async def work() -> None:
        async with filled(plain(tmp_path)) as (service, token, slot):
            one = Stopping(service, Stop(where=INSIDE, chosen="take"))
            two = Stopping(
                service,
                Stop(where=AFTER, chosen={TAKEN: "take", ENDED: "erase", GONE_ON: ""}[meanwhile]),
            )
            await one.move([slot], 1)
            first = asyncio.create_task(one.advance(service.table.load().moves[0]))
            await reached(one, first)
            second = asyncio.create_task(two.work())
            if meanwhile == GONE_ON:
                await second
                for memory in (await service.call("GET", "/v1/memories", who=token)).json()[
                    "items"
                ]:
                    assert (
                        await service.call("DELETE", f"/v1/memories/{memory['id']}", who=token)
                    ).status_code == 200
            else:
                await reached(two, second)

            def found() -> tuple[Any, list[bytes]]:
                """The slot's rows, and whom the keys are of that are here."""
                rows, keys = service.rows(1, slot), service.opened[1].store.keys
                assert keys is not None
                return (
                    rows.get("memories") if meanwhile == GONE_ON else rows,
                    sorted(keys.scopes(slot)),
                )  # what counts its use goes on

            before = found()
            assert bool(before[0]) == (meanwhile == TAKEN)
            assert bool(before[1]) == (meanwhile != ENDED)
            one.stop.woken.set()
            with pytest.raises((MoveRefused, PlacementError)):
                await first
            assert found() == before
            two.stop.woken.set()
            await second
            assert has_once(service, slot) and service.table.load().owners[slot] == 1
            assert len(await service.texts(token)) == (0 if meanwhile == GONE_ON else MEMORIES)

    asyncio.run(work())


def test_a_source_gives_up_as_soon_as_the_placement_can_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the supervisor and the store of the placement are away at once, while slots are
    frozen.
    """
    monkeypatch.setattr(slot_moves, "SLOT_FROZEN_MS_MAX", 50)

    async def work() -> None:
        async with filled(plain(tmp_path)) as (service, token, slot):
            one = Stopping(service, Stop(where=AFTER, chosen="freeze"))
            await one.move([slot], 1)
            (move,) = service.table.load().moves
            attempt = asyncio.create_task(one.advance(move))
            await reached(one, attempt)
            away, tried = tmp_path / "away", []
            give_up = service.opened[0].parts.gate.give_up

            def counted(*given: Any) -> Placement:
                tried.append(given)
                return give_up(*given)

            monkeypatch.setattr(service.opened[0].parts.gate, "give_up", counted)
            (tmp_path / "placement").rename(away)
            await service.until(lambda: len(tried) >= 2)
            assert (await service.figures(0))["slots"]["frozen"] == 1
            away.rename(tmp_path / "placement")
            await service.until_all(lambda figures: figures["slots"]["frozen"] == 0, 0)
            assert service.table.load().move(move.id).state == UNDOING
            assert (await service.remember(token, "after it")).status_code == 201
            one.stop.woken.set()
            with pytest.raises(MoveOver):
                await attempt

    asyncio.run(work())


def test_a_move_that_is_given_up_while_its_source_begins_has_it_keep_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would let go of it, where the supervisor has ended, too."""

    async def work() -> None:
        async with filled(plain(tmp_path)) as (service, token, slot):
            source = service.opened[0]
            one = Stopping(service, Stop(chosen="begin"))
            await one.move([slot], 1)
            lost = asyncio.create_task(one.advance(service.table.load().moves[0]))
            await reached(one, lost)
            kept, may_go_on = source.store.log, threading.Event()
            hold, asked = kept.hold, threading.Event()

            def held_up(*given: Any) -> Hold:
                asked.set()
                may_go_on.wait()
                return hold(*given)

            monkeypatch.setattr(kept, "hold", held_up)
            (move,) = service.table.load().moves
            beginning = asyncio.create_task(source.order("begin", move.attempt, 1, (slot,)))
            await service.until(asked.is_set)
            source.parts.gate.give_up(move.attempt)
            await source.order("refresh")
            may_go_on.set()
            with pytest.raises(MoveOver):
                await beginning
            assert (await service.remember(token, "after it")).status_code == 201
            assert kept.size()["records"] == 0
            lost.cancel()

    asyncio.run(work())


def lose_a_row(transaction: Transaction, scope: Scope) -> None:
    rows = transaction.bind(TABLES["memories"], scope)
    rows.delete(*next(iter(rows.keys())))


def change_a_row(transaction: Transaction, scope: Scope) -> None:
    rows = transaction.bind(TABLES["memories"], scope)
    keys = list(rows.keys())
    rows.put_raw(keys[0], rows.get_raw(*keys[1]))


def add_a_row(transaction: Transaction, scope: Scope) -> None:
    """In a table of which the account has none."""
    transaction.bind(TABLES["jobs"], scope).put_raw(("stray",), b"stray")


TABLES = serve_app.registry().tables


HARMED_EACH_TIME = {  # each harm, and after each step; the others with --long
    "build": add_a_row,
    "compare": change_a_row,
    "changed": add_a_row,
    "freeze": lose_a_row,
    "secured": change_a_row,
}


@pytest.mark.parametrize(
    ("harm", "step"),
    [
        pytest.param(harm, step, marks=() if HARMED_EACH_TIME[step] is harm else pytest.mark.long)
        for harm in (lose_a_row, change_a_row, add_a_row)
        for step in HARMED_EACH_TIME
    ],
)
def test_a_slot_whose_rows_are_not_all_there_is_not_given_away(
    tmp_path: Path, harm: Any, step: str
) -> None:
    """Whatever did it, and whenever: after a step in the copy, or in the freeze."""

    async def work() -> None:
        async with filled(plain(tmp_path)) as (service, token, slot):
            stored, harmed = sorted(await service.texts(token)), []

            async def ask(number: int, asked: str, *given: Any) -> Any:
                answer = await service.opened[number].order(asked, *given)
                if asked == step and not harmed:
                    with service.opened[1].store.snapshot() as snapshot:
                        (scope,) = [scope for scope in snapshot.scopes(slot) if scope.tenant]
                    harmed.append(
                        await asyncio.to_thread(
                            service.opened[1].store.write,
                            lambda transaction: harm(transaction, scope),
                        )
                    )
                return answer

            supervisor = Supervisor(service.table, ask)
            await supervisor.move([slot], 1)
            (move,) = service.table.load().moves
            with pytest.raises(
                Different,
                match=(
                    f"^Rows of {'jobs' if harm is add_a_row else 'memories'} differ between shards "
                    "0 and 1.$"
                ),
            ):
                await supervisor.advance(move)
            assert harmed and service.table.load().owners[slot] == 0
            assert (await service.remember(token, "at home")).status_code == 201
            while service.table.load().moves:  # another attempt, which nothing happens to
                await supervisor.advance(service.table.load().moves[0])
            assert service.table.load().owners[slot] == 1 and has_once(service, slot)
            assert sorted(await service.texts(token)) == sorted([*stored, "at home"])

    asyncio.run(work())


@pytest.mark.parametrize("late", ["expect", "take"])
def test_a_step_that_comes_once_more_at_the_end_changes_nothing(tmp_path: Path, late: str) -> None:
    """Copies of what the target was asked arrive when both sides have agreed; the account was
    written to since the first of them.
    """

    async def work() -> None:
        async with filled(plain(tmp_path)) as (service, token, slot):
            stored, sent = sorted(await service.texts(token)), list[tuple[Any, ...]]()
            steps: list[str] = []

            async def ask(number: int, step: str, *given: Any) -> Any:
                if step == "build":
                    assert (await service.remember(token, "at home")).status_code == 201
                answer = await service.opened[number].order(step, *given)
                if step == late:
                    sent.append((number, step, *given))
                if step == "secured" and "freeze" in steps:
                    for target, *what in reversed(sent):  # the oldest is the last that comes
                        with suppress(MoveOver):
                            await service.opened[target].order(*what)
                steps.append(step)
                return answer

            supervisor = Supervisor(service.table, ask)
            to = 1 - service.table.load().owners[slot]
            await supervisor.order("move", slots=[slot], shard=to)
            await service.moved()
            await supervisor.close()
            assert sent and service.table.load().owners[slot] == to and has_once(service, slot)
            assert sorted(await service.texts(token)) == sorted([*stored, "at home"])
            assert service.findings(to) == []

    asyncio.run(work())


STEPS = {
    *("begin", "read", "digests", "changed", "recount", "freeze"),
    *("expect", "take", "build", "compare", "secured"),
}  # of an attempt, at its source and at its target


@pytest.mark.parametrize("again", [{"begin"}, STEPS], ids=["the first", "all"])
def test_steps_that_come_once_more_whenever_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: set[str]
) -> None:
    """Before each step copies of earlier ones arrive, whose answers nobody hears; the account is
    written to when all its rows were read and digested.
    """
    monkeypatch.setattr(slot_moves, "SLOT_TAIL_ROWS_MAX", 2)  # so that there is more to ask for
    monkeypatch.setattr(slot_comparison, "SLOT_SPANS_MAX", 2)

    async def work() -> None:
        async with filled(plain(tmp_path)) as (service, token, slot):
            stored, sent = sorted(await service.texts(token)), list[tuple[Any, ...]]()
            steps = Counter[str]()

            async def ask(number: int, step: str, *given: Any) -> Any:
                if step == "compare" and step not in steps:
                    assert (await service.remember(token, "at home")).status_code == 201
                for shard, *what in reversed(sent):
                    with suppress(MoveOver, Moved):
                        await service.opened[shard].order(*what)
                if step in again:
                    sent.append((number, step, *given))
                steps[step] += 1
                return await service.opened[number].order(step, *given)

            supervisor = Supervisor(service.table, ask)
            to = 1 - service.table.load().owners[slot]
            await supervisor.order("move", slots=[slot], shard=to)
            await service.moved()
            await supervisor.close()
            assert sorted(await service.texts(token)) == sorted([*stored, "at home"])
            assert service.table.load().owners[slot] == to and has_once(service, slot)
            assert (await service.figures(1 - to))["slots"]["given_up_total"] == 0
            assert steps.keys() >= STEPS and min(steps["changed"], steps["recount"]) > 1

    asyncio.run(work())


def test_a_piece_whose_commit_failed_is_taken_when_it_comes_once_more(tmp_path: Path) -> None:
    async def work() -> None:
        async with filled(plain(tmp_path)) as (service, token, slot):
            stored, failed = sorted(await service.texts(token)), list[int]()

            def fails(shard: Any) -> None:
                """The next transaction of the shard that stores something is undone."""
                writer = shard.parts.writer
                submit = writer.submit

                async def undone(work: Any, label: str, *others: Any, **named: Any) -> Reply:
                    def broken(transaction: Transaction) -> WriteOutcome:
                        outcome = work(transaction)
                        if transaction.dirty:
                            writer.submit = submit
                            raise Unavailable("The disk is away.")
                        return outcome

                    return await submit(broken, label, *others, **named)

                writer.submit = undone

            async def ask(number: int, step: str, *given: Any) -> Any:
                if step == "take" and given[2].rows and not failed:
                    failed.append(number)
                    fails(service.opened[number])
                    with pytest.raises(Unavailable):
                        await service.opened[number].order(step, *given)
                return await service.opened[number].order(step, *given)

            supervisor = Supervisor(service.table, ask)
            to = 1 - service.table.load().owners[slot]
            await supervisor.order("move", slots=[slot], shard=to)
            await service.moved()
            await supervisor.close()
            assert failed and service.table.load().owners[slot] == to and has_once(service, slot)
            assert sorted(await service.texts(token)) == stored
            status = await service.opened[1 - to].status()
            assert status["slots"]["given_up_total"] == 0

    asyncio.run(work())
